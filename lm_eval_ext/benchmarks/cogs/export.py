"""cogs_mini as files, in COGS's format and in the words of any lexicon, for fine-tuning.

Two runs as recorded answers to an overestimation task.

Where the models with and without substitution are two (the paper fine-tunes one per lexicon),
each answers its own task. What lm-eval logged of both together answers
``cogs_overestimation_<lexicon>``, through ``--model recorded``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.benchmarks.cogs.lexicons import substitute_lines
from lm_eval_ext.errors import DataError, OptionError

FILES = MappingProxyType(
    {"train": "train", "dev": "dev", "id": "test", "testlex": "test_lex", "gen": "gen"}
)
"""What the files of the splits are called."""


def export_mini(
    folder: Path, words: Mapping[str, str], *, leading_space: bool = False
) -> dict[str, int]:
    """Writes every split of cogs_mini.

    Args:
        folder: Must be absent or empty.
        words: What the key words become.
        leading_space: Whether a text that starts with a new word gets a space before it.

    Returns:
        How many examples each file has, by its name.

    Raises:
        OptionError: If the folder holds something or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OptionError(f"{folder} is not empty; name another folder")
    except OSError as error:
        raise OptionError(f"cannot write to {folder}: {error.strerror}") from None
    counts = {}
    for split, name in FILES.items():
        examples = mini.examples(split)
        lines = (f"{one.sentence}\t{one.form}\t{one.type}\n" for one in examples)
        with atomic_text(folder / f"{name}.tsv") as out:
            out.writelines(substitute_lines(lines, words, leading_space=leading_space))
        counts[f"{name}.tsv"] = len(examples)
    return counts


def pair(without: Path, with_: Path, out: Path) -> int:
    """Writes answers in the format of ``--model recorded``.

    Args:
        without: ``samples_*.jsonl`` of a run on unmodified words.
        with_: The same of a run on another lexicon's; of the same split.
        out: The file to write.

    Returns:
        How many examples there are.

    Raises:
        DataError: If a file is no such log, or the two are not about the same examples.
        OptionError: If ``out`` cannot be written.
    """
    first, second = answers(without), answers(with_)
    alone = sorted(first.keys() ^ second.keys())
    if alone:
        raise DataError(
            f"{len(alone)} examples, such as {alone[0]}, are in one of {without} and {with_} "
            "only; give the logs of two runs on the same split"
        )
    with atomic_text(out) as file:
        for id_ in first:
            for index, answer in enumerate((first[id_], second[id_])):
                row = {"doc": {"id": id_}, "idx": index, "response": answer}
                file.write(json.dumps(row) + "\n")
    return len(first)


def answers(log: Path) -> dict[str, str]:
    """What a model wrote, by the id of the example.

    Raises:
        DataError: As :func:`pair`; file and line are named.
    """
    found: dict[str, str] = {}
    try:
        with log.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                found.update([_answer(line, f"{log}:{number}")])
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{log}: cannot be read ({error})") from None
    if not found:
        raise DataError(f"{log}: nothing is logged here")
    return found


def _answer(line: str, place: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
        (response,) = row["resps"]
        id_, text = row["doc"]["id"], response[0]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise DataError(
            f"{place}: not a row of samples_cogs_*.jsonl, as lm_eval logs them ({error!r})"
        ) from None
    if not isinstance(id_, str) or not isinstance(text, str):
        raise DataError(f"{place}: the example's id and its answer must be texts")
    return id_, text
