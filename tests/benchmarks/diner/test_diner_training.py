"""DiNeR's material for training: questions, what stands before them, and what is refused."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections import defaultdict
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
    assert not dict(made.train).keys() & dict(made.dev).keys()
    tested = generated.tested_dishes()
    assert not tested & {generated.components(name) for _, name in (*made.train, *made.dev)}
    other = prepare(MINI, 1)
    assert made.train[:34] == other.train[:34] and made.train != other.train
    assert made.gates == other.gates

    three = prepare(MINI | {"ask": "components"}, 0)
    asked = ((prompt, name, kind) for prompt, name in made.train for kind in QUESTIONS)
    words: defaultdict[str, list[str]] = defaultdict(list)
    for (text, answer), (prompt, _, kind) in zip(three.train, asked, strict=True):
        assert text == prompt.replace("菜名", kind)
        words[prompt] += filter(None, answer.split(","))
    for prompt, name in made.train:
        assert sorted(words[prompt]) == sorted(mini.glossary().words_in(name) or ())


def test_what_a_model_file_has(tmp_path: Path) -> None:
    made = [prepare({"corpus": "mini", "share": share}, 0) for share in (0.2, 0.6, 1)]
    assert [len(one.train) for one in made] == [7, 20, 34]
    assert set(made[0].train) < set(made[1].train) < set(made[2].train)
    assert made[0].model_file == {"training_share": 0.2}
    folder = str(diner_own.write(tmp_path))
    own = prepare({"dir": folder, "ask": "components"}, 0)
    assert own.model_file["metadata"] == {"diner_dir": folder, "diner_wording": "authors"}


def test_what_counts_as_learned() -> None:
    score = prepare(MINI, 0).score
    answers = ("红烧牛肉", "菜名是“红烧牛肉”。", "红烧肥牛", "红烧茄子", "清蒸鱼", "")
    assert [score(one, "红烧牛肉") for one in answers] == [1.0, 1.0, 1.0, 0.5, 0.0, 0.0]
    score = prepare(MINI | {"ask": "components"}, 0).score
    right, wrong = (
        [("", ""), ("番茄,土豆", "土豆,西红柿"), ("无", "")],
        [("", "炒"), ("炒", ""), ("烤", "炒")],
    )
    assert [score(*pair) for pair in (*right, *wrong)] == [1.0] * 3 + [0.0] * 3


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
    docs = load_task("diner_mini_cp", **made.model_file["metadata"]).eval_docs
    assert len(docs) == 24
    assert all(doc["input"].endswith(f"” {stated}") for doc in docs)
    # Kept: nothing is asked a second time.
    monkeypatch.setattr(training, "answers_of", None)
    assert prepare(data, 0).digest() == made.digest()


def test_what_does_not_fit_is_refused(trained: Any, tmp_path: Path) -> None:
    names, less = trained("names", ask="name"), trained("less", share=0.5)
    for data, said in (
        ({"ask": "cp"}, "auxiliary is for ask: cp"),
        ({"ask": "cp", "auxiliary": str(tmp_path)}, "no training"),
        ({"ask": "cp", "auxiliary": names}, "data.ask 'name', and here an auxiliary model with 'c"),
        ({"ask": "cp", "auxiliary": less}, "data.share 0.5, and here"),
        ({"ask": "text"}, "are for ask: text, which needs them"),
        ({"shar": 0.5}, "did you mean share"),
        ({"corpus": "published"}, "go with corpus: mini"),
    ):
        with pytest.raises(OptionError, match=said):
            prepare(MINI | data, 0)
