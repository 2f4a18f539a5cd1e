"""Model files for what the papers' authors trained: stand-ins get the prompts that theirs got."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from pathlib import Path
from typing import Any

from lm_eval.models.huggingface import HFLM
from support import families
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.cogs.tokens import add_tokens
from lm_eval_ext.benchmarks.diner import mini as diner_mini
from lm_eval_ext.runs.model_files import read_model_files

AUTHORS = Path(__file__).resolve().parents[2] / "examples" / "authors"
FILES = {one.name: one for one in read_model_files([AUTHORS])}


def asked(name: str, folder: Path, task: str, limit: int | None, **metadata: Any) -> list[str]:
    """What the model of a file is asked, in a folder for what it names: whole, and with EOS."""
    settings = FILES[name].settings
    made = load_task(task, **settings.get("metadata", {}) | metadata)
    made.build_all_requests(limit=limit, rank=0, world_size=1)
    texts = [one.arguments[0] for one in made.instances]
    model = HFLM(**settings["model_args"] | {"pretrained": str(folder), "device": "cpu"})
    assert type(model.tokenizer).__name__ == "T5Tokenizer"
    ids, _ = model.tok_batch_encode(texts, left_truncate_len=model.max_length - model.max_gen_toks)
    assert ids.shape[1] == max(map(len, model.tokenizer(texts)["input_ids"]))
    assert set(ids[:, -1].tolist()) == {1}, "EOS, as in their training; padding is on the left"
    return texts


def test_cogs_with_the_prefix_and_with_the_space_before_a_novel_token(tmp_path: Path) -> None:
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
        found = asked(name, tmp_path / folder, "cogs_mini_testlex", None, cogs_lexicon=lexicon)
        assert sorted(found) == sorted(f"translate English to English: {one}" for one in texts)


def test_diner_with_the_questions_of_the_script(tmp_path: Path, kept_cache: Path) -> None:
    instructions = diner_mini.split("tmcd")["test"]["instructions"]
    questions = [f"这个菜谱的{one}是什么？" for one in ("菜名", "主要操作", "主要风味", "主要食材")]
    letters = "".join(sorted({*"".join([*instructions, *questions]), *"“”"}))
    families.make("unigram", tmp_path / "t5", letters=letters)
    for name, task, each in (
        ("diner", "diner_mini_name", questions[:1]),
        ("diner-components", "diner_mini_components", questions[1:]),
    ):
        found = asked(name, tmp_path / "t5", task, 4)
        assert len(found) == 4 * len(each)
        assert {*found} <= {f"“{one}” {ask}" for one in instructions for ask in each}


def test_in_context_learners_get_all_four_examples(tmp_path: Path) -> None:
    families.make("unigram", tmp_path / "t5", letters=":()?")
    for name in ("tk-random-1b", "tk-coat-1b"):
        for text in asked(name, tmp_path / "t5", "conceptual_mini", 3):
            assert text.count("Input:") == text.count("Prediction:") == 4
