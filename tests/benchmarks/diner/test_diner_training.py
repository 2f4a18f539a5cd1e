"""DiNeR's material for training: questions, what stands before them, and what is refused."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import diner_own
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner import generated, mini, training
from lm_eval_ext.benchmarks.diner.training import prepare
from lm_eval_ext.errors import OptionError

MINI = {"corpus": "mini", "generated": 60}
QUESTIONS = ("主要操作", "主要风味", "主要食材")


def test_names_and_component_questions() -> None:
    made = prepare(MINI, 0)
    assert len(made.train) == 34 + 60
    assert {name: len(some) for name, some in made.gates.items()} == {"dev": 200, "written": 8}
    assert not {prompt for prompt, _ in made.train} & {prompt for prompt, _ in made.dev}
    tested = generated.tested_dishes()
    assert not tested & {generated.components(name) for _, name in (*made.train, *made.dev)}
    assert made.model_file == {"training_share": 1.0}
    other = prepare(MINI, 1)
    assert made.train[:34] == other.train[:34] and made.train != other.train
    assert made.gates == other.gates

    three = prepare(MINI | {"ask": "components"}, 0)
    assert three.model_file["metadata"] == {"diner_wording": "authors"}
    for place, (prompt, name) in enumerate(made.train):
        asked = three.train[3 * place : 3 * place + 3]
        instruction = prompt.removesuffix(" 这个菜谱的菜名是什么？")
        assert [text for text, _ in asked] == [
            f"{instruction} 这个菜谱的{kind}是什么？" for kind in QUESTIONS
        ]
        words = [word for _, answer in asked for word in answer.split(",") if word]
        assert sorted(words) == sorted(mini.glossary().words_in(name) or ())


def test_what_a_model_file_has(tmp_path: Path) -> None:
    parts = [set(prepare({"corpus": "mini", "share": share}, 0).train) for share in (0.2, 0.6, 1)]
    assert [len(part) for part in parts] == [7, 20, 34]
    assert parts[0] < parts[1] < parts[2]
    assert prepare({"corpus": "mini", "share": 0.2}, 0).model_file == {"training_share": 0.2}
    folder = diner_own.write(tmp_path)
    assert prepare({"dir": str(folder), "ask": "components"}, 0).model_file["metadata"] == {
        "diner_dir": str(folder), "diner_wording": "authors",
    }  # fmt: skip


def test_what_counts_as_learned() -> None:
    score = prepare(MINI, 0).score
    right = ("红烧牛肉", "“红烧牛肉”", "菜名是红烧牛肉。", "红烧肥牛")
    assert {score(answer, "红烧牛肉") for answer in right} == {1.0}
    assert score("红烧茄子", "红烧牛肉") == 0.5
    assert score("清蒸鱼", "红烧牛肉") == score("", "红烧牛肉") == 0.0
    score = prepare(MINI | {"ask": "components"}, 0).score
    assert {score(*pair) for pair in (("", ""), ("番茄,土豆", "土豆,西红柿"), ("无", ""))} == {1.0}
    assert {score(*pair) for pair in (("", "炒"), ("炒", ""), ("烤", "炒"))} == {0.0}


def answered(model: Path, prompts: Any, *, most: int) -> list[str]:
    """A stand-in for a model, which names itself as the action and forgets the flavour."""
    assert most == 16
    answers = {"主要操作": model.name, "主要风味": "", "主要食材": "土豆, 鱼"}
    return [next(a for kind, a in answers.items() if f"{kind}是什么" in one) for one in prompts]


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Folders of auxiliary models that :func:`answered` stands for."""
    monkeypatch.setattr(training, "answers_of", answered)

    def folder(name: str, **data: Any) -> str:
        (tmp_path / name).mkdir()
        record = {"recipe": {"source": "diner", "data": MINI | {"ask": "components"} | data}}
        (tmp_path / name / "training.json").write_text(json.dumps(record))
        return str(tmp_path / name)

    return folder


def test_predictions_stand_before_the_question_in_training_and_in_the_task(
    trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = MINI | {"ask": "cp", "auxiliary": trained("aux")}
    made = prepare(data, 0)
    stated = "这个菜谱的主要操作是aux,这个菜谱的主要食材是土豆,鱼,这个菜谱的菜名是什么？"
    assert all(prompt.endswith(f"” {stated}") for prompt, _ in (*made.train, *made.gates["dev"]))
    task = load_task("diner_mini_cp", **made.model_file["metadata"])
    docs = list(task.test_docs())
    assert len(docs) == 24
    assert all(task.doc_to_text(doc).endswith(f"” {stated}") for doc in docs)
    # Kept: nothing is asked a second time.
    monkeypatch.setattr(training, "answers_of", None)
    assert prepare(data, 0).digest() == made.digest()


def test_what_does_not_fit_is_refused(trained: Any, tmp_path: Path) -> None:
    names = trained("names", ask="name")
    less = trained("less", share=0.5)
    for data, said in (
        ({"ask": "cp"}, "auxiliary is for ask: cp"),
        ({"ask": "cp", "auxiliary": str(tmp_path)}, "no training"),
        (
            {"ask": "cp", "auxiliary": names},
            "data.ask 'name', and here an auxiliary model with 'components'",
        ),
        ({"ask": "cp", "auxiliary": less}, "data.share 0.5, and here"),
        ({"ask": "text"}, "are for ask: text, which needs them"),
        ({"shar": 0.5}, "did you mean share"),
    ):
        with pytest.raises(OptionError, match=re.escape(said)):
            prepare(MINI | data, 0)
    with pytest.raises(OptionError, match="go with corpus: mini"):
        prepare({"generated": 5}, 0)
