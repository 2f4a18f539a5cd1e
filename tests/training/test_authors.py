"""Model files for what the papers' authors trained: stand-ins get the prompts that theirs got."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from pathlib import Path
from typing import Any

import pytest
from lm_eval.models.huggingface import HFLM
from support import families
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.cogs.tokens import add_tokens
from lm_eval_ext.benchmarks.diner import mini as diner_mini
from lm_eval_ext.runs.model_files import read_model_files

AUTHORS = Path(__file__).resolve().parents[2] / "examples" / "authors"
FILES = {file.name: file for file in read_model_files([AUTHORS])}


def prompts_of(
    name: str, folder: Path, task_name: str, limit: int | None, **metadata: Any
) -> list[str]:
    """Return a task's prompts for the model of a file, whose folder this one stands in for.

    The model must get them whole and with EOS, as in the authors' training.
    """
    settings = FILES[name].settings
    task = load_task(task_name, **settings.get("metadata", {}) | metadata)
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    prompts = [instance.arguments[0] for instance in task.instances]
    model = HFLM(**settings["model_args"] | {"pretrained": str(folder), "device": "cpu"})
    assert type(model.tokenizer).__name__ == "T5Tokenizer"
    room = model.max_length - model.max_gen_toks
    ids, _ = model.tok_batch_encode(prompts, left_truncate_len=room)
    assert ids.shape[1] == max(map(len, model.tokenizer(prompts)["input_ids"]))
    # Padding is on the left.
    assert set(ids[:, -1].tolist()) == {1}, "EOS"
    return prompts


PREFIX = "translate English to English: "


def test_cogs_has_the_prefix_of_the_training(tmp_path: Path) -> None:
    """Sentences of common words come after the prefix of the authors' script."""
    families.make("unigram", tmp_path / "t5")
    prompts = prompts_of(
        "cogs", tmp_path / "t5", "cogs_mini_testlex", None, cogs_lexicon="unmodified"
    )
    sentences = [example.sentence for example in cogs_mini.examples("testlex")]
    assert sorted(prompts) == sorted(PREFIX + sentence for sentence in sentences)


def test_cogs_has_a_space_before_a_novel_token_that_comes_first(tmp_path: Path) -> None:
    """Sentences that begin with a novel token have two spaces after the prefix."""
    families.make("unigram", tmp_path / "t5")
    add_tokens(tmp_path / "t5", tmp_path / "novel", init="random")
    prompts = prompts_of(
        "cogs-tokens", tmp_path / "novel", "cogs_mini_testlex", None, cogs_lexicon="tokens"
    )
    tokens = {word: f"[w_{number}]" for number, word in enumerate(cogs_mini.items())}
    expected = []
    starts_with_token = 0
    for example in cogs_mini.examples("testlex"):
        sentence = " ".join(tokens.get(word, word) for word in example.sentence.split())
        if sentence.startswith("[w_"):
            sentence = f" {sentence}"
            starts_with_token += 1
        expected.append(PREFIX + sentence)
    assert starts_with_token > 0
    assert sorted(prompts) == sorted(expected)


NAME_QUESTION = "这个菜谱的菜名是什么？"
COMPONENT_QUESTIONS = [
    "这个菜谱的主要操作是什么？",
    "这个菜谱的主要风味是什么？",
    "这个菜谱的主要食材是什么？",
]


@pytest.mark.parametrize(
    ("name", "task", "questions"),
    [
        ("diner", "diner_mini_name", [NAME_QUESTION]),
        ("diner-components", "diner_mini_components", COMPONENT_QUESTIONS),
    ],
)
def test_diner_has_the_questions_of_the_script(
    tmp_path: Path, kept_cache: Path, name: str, task: str, questions: list[str]
) -> None:
    """Each instruction is quoted before each question of the authors' training."""
    instructions = diner_mini.split("tmcd")["test"]["instructions"]
    text = "".join([*instructions, NAME_QUESTION, *COMPONENT_QUESTIONS, "“”"])
    families.make("unigram", tmp_path / "t5", letters="".join(sorted(set(text))))
    prompts = prompts_of(name, tmp_path / "t5", task, 4)
    assert len(prompts) == 4 * len(questions)
    expected: set[str] = set()
    for instruction in instructions:
        expected.update(f"“{instruction}” {question}" for question in questions)
    assert set(prompts) <= expected


@pytest.mark.parametrize("name", ["tk-random-1b", "tk-coat-1b"])
def test_in_context_learners_get_all_four_examples(tmp_path: Path, name: str) -> None:
    """Their prompts hold three demonstrations and the question."""
    families.make("unigram", tmp_path / "t5", letters=":()?")
    for prompt in prompts_of(name, tmp_path / "t5", "conceptual_mini", 3):
        assert prompt.count("Input:") == 4
        assert prompt.count("Prediction:") == 4
