"""Model files for what the papers' authors trained: stand-ins get the prompts that theirs got."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from support import families

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.cogs.tokens import add_tokens
from lm_eval_ext.benchmarks.diner import mini as diner_mini
from lm_eval_ext.runs.model_files import read_model_files
from lm_eval_ext.runs.tasks import own_manager

AUTHORS = Path(__file__).resolve().parents[2] / "examples" / "authors"
FILES = {one.name: one for one in read_model_files([AUTHORS])}
Asked = list[tuple[str, list[int]]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Asks the model of a file, with a folder for what it names; returns text and token ids."""

    def ask(name: str, folder: Path, task: str, limit: int | None, **metadata: Any) -> Asked:
        import torch

        settings = FILES[name].settings
        arguments = {**settings["model_args"], "pretrained": str(folder), "device": "cpu"}
        model = HFLM(**arguments, batch_size=8)
        assert type(model.tokenizer).__name__ == "T5Tokenizer"
        found: Asked = []

        def generate(context: Any, attention_mask: Any = None, **_: Any) -> Any:
            for row, mask in zip(context.tolist(), attention_mask.tolist(), strict=True):
                ids = [one for one, shown in zip(row, mask, strict=True) if shown]
                found.append((model.tok_decode(ids), ids))
                assert ids[-1] == 1, "EOS, as in their training"
            return torch.ones((len(context), 1), dtype=torch.long)

        monkeypatch.setattr(model, "_model_generate", generate)
        manager = own_manager(metadata={**settings.get("metadata", {}), **metadata})
        simple_evaluate(
            model=model, tasks=[task], task_manager=manager, limit=limit, bootstrap_iters=0
        )
        return found

    return ask


def same(asked: Asked, texts: list[str], folder: Path) -> None:
    from transformers import AutoTokenizer

    expected = AutoTokenizer.from_pretrained(folder)(texts)["input_ids"]
    assert sorted(ids for _, ids in asked) == sorted(expected)


def test_cogs_with_the_prefix_and_with_the_space_before_a_novel_token(
    ask: Any, tmp_path: Path
) -> None:
    families.make("unigram", tmp_path / "t5")
    add_tokens(tmp_path / "t5", tmp_path / "novel", init="random")
    words = dict(zip(cogs_mini.items(), (f"[w_{n}]" for n in range(21)), strict=False))
    plain = [one.sentence for one in cogs_mini.examples("testlex")]
    novel = [" ".join(words.get(word, word) for word in one.split()) for one in plain]
    spaced = [" " * one.startswith("[w_") + one for one in novel]
    assert spaced != novel
    for name, folder, lexicon, texts in (
        ("cogs", "t5", "unmodified", plain), ("cogs-tokens", "novel", "tokens", spaced)
    ):  # fmt: skip
        asked = ask(name, tmp_path / folder, "cogs_mini_testlex", None, cogs_lexicon=lexicon)
        same(asked, [f"translate English to English: {one}" for one in texts], tmp_path / folder)


def test_diner_with_the_questions_of_the_script(ask: Any, tmp_path: Path, kept_cache: Path) -> None:
    instructions = diner_mini.split("tmcd")["test"]["instructions"]
    questions = [f"这个菜谱的{one}是什么？" for one in ("菜名", "主要操作", "主要风味", "主要食材")]
    letters = "".join(sorted({*"".join([*instructions, *questions]), *"“”"}))
    families.make("unigram", tmp_path / "diner", letters=letters)
    for name, task, each in (
        ("diner", "diner_mini_name", questions[:1]),
        ("diner-components", "diner_mini_components", questions[1:]),
    ):
        asked = ask(name, tmp_path / "diner", task, 4)
        assert len(asked) == 4 * len(each)
        assert dict(asked).keys() <= {f"“{one}” {ask}" for one in instructions for ask in each}


def test_in_context_learners_get_all_four_examples(ask: Any, tmp_path: Path) -> None:
    families.make("unigram", tmp_path / "t5", letters=":()?")
    for name in ("tk-random-1b", "tk-coat-1b"):
        for text, _ in ask(name, tmp_path / "t5", "conceptual_mini", 3):
            assert text.count("Input:") == text.count("Prediction:") == 4


def test_every_file_is_asked_here() -> None:
    assert FILES.keys() == {
        "cogs", "cogs-tokens", "diner", "diner-components", "diner-cp", "tk-coat-1b",
        "tk-random-1b",
    }, "diner-cp asks as diner_tiny_cpft does"  # fmt: skip
