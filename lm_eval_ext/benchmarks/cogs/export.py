"""Files for users: cogs_mini for fine-tuning, and the logs of two runs as recorded answers."""

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
"""File names by split, as in COGS."""


def export_mini(
    folder: Path, words: Mapping[str, str], *, leading_space: bool = False
) -> dict[str, int]:
    """Writes every split of cogs_mini in COGS's format; returns the number of lines per file.

    Raises:
        OptionError: The folder is not empty or cannot be written.
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
    """Writes both runs' answers for ``--model recorded``; returns the number of examples.

    The paper fine-tunes one model per lexicon, so each model answers its own task. Both logs
    (``samples_*.jsonl``) together are the answers to ``cogs_overestimation_<lexicon>``.

    Raises:
        DataError: A file is not such a log, or the logs have different examples.
        OptionError: ``out`` cannot be written.
    """
    first, second = answers(without), answers(with_)
    alone = sorted(first.keys() ^ second.keys())
    if alone:
        raise DataError(
            f"{len(alone)} examples, such as {alone[0]}, are in only one of {without} and "
            f"{with_}; give the logs of two runs on the same split"
        )
    with atomic_text(out) as file:
        for id_ in first:
            for index, answer in enumerate((first[id_], second[id_])):
                row = {"doc": {"id": id_}, "idx": index, "response": answer}
                file.write(json.dumps(row) + "\n")
    return len(first)


def answers(log: Path) -> dict[str, str]:
    """A model's answers, by the example's id.

    Raises:
        DataError: As :func:`pair`; the message names file and line.
    """
    found: dict[str, str] = {}
    try:
        with log.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                found.update([_answer(line, f"{log}:{number}")])
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{log}: cannot be read ({error})") from None
    if not found:
        raise DataError(f"{log}: no samples; log them with lm_eval --log_samples")
    return found


def _answer(line: str, place: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
        (response,) = row["resps"]
        id_, text = row["doc"]["id"], response[0]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise DataError(
            f"{place}: not a row of samples_cogs_*.jsonl from lm_eval ({error!r})"
        ) from None
    if not isinstance(id_, str) or not isinstance(text, str):
        raise DataError(f"{place}: the example's id and the answer must be text")
    return id_, text
