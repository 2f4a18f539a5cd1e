"""OpenBookQA: questions with four options, each resting on one stated fact."""

import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.errors import DataError

PARTS = ("dev", "test")
"""What the paper uses of the dataset's parts: validation and test."""

IN_ARCHIVE = "OpenBookQA-V1-Sep2018/Data/Additional/{part}_complete.jsonl"


def read_archive(path: Path) -> list[tuple[str, Mapping[str, object]]]:
    """Reads both parts out of the published archive, with places for messages.

    Raises:
        DataError: It does not hold them.
    """
    rows = []
    try:
        with zipfile.ZipFile(path) as archive:
            for part in PARTS:
                name = IN_ARCHIVE.format(part=part)
                rows += _parsed(archive.read(name).decode("utf-8"), f"{path}/{name}")
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not the archive of OpenBookQA ({error!r})") from None
    return rows


def read_files(paths: Iterable[Path]) -> list[tuple[str, Mapping[str, object]]]:
    """Reads files of one question per line, with places for messages."""
    return [row for path in paths for row in _parsed(path.read_text(encoding="utf-8"), str(path))]


def _parsed(text: str, place: str) -> list[tuple[str, Mapping[str, object]]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                rows.append((f"{place}:{number}", json.loads(line)))
            except ValueError:
                raise DataError(f"{place}:{number}: no JSON") from None
    return rows


def samples(
    rows: Iterable[tuple[str, Mapping[str, object]]],
    roots: Callable[[list[str]], Mapping[str, str]],
) -> list[Sample]:
    """Makes samples of rows, in the files' own form or in the hub's.

    Args:
        rows: Places and contents: ``question`` (``stem``, ``choices``) or ``question_stem`` and
            ``choices``, then ``fact1`` and ``answerKey``.
        roots: Gives the root of each fact.

    Raises:
        DataError: A row is not of that form; its place is named.
    """
    read = []
    for place, row in rows:
        try:
            stem, options = _question(row)
            fact, label = str(row["fact1"]), str(row["answerKey"])
            (answer,) = [option.text for option in options if option.label == label]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{place}: no question of OpenBookQA ({error!r})") from None
        read.append((str(row["id"]), stem, options, fact, label, answer))
    root_of = roots([fact for _, _, _, fact, _, _ in read])
    return [
        Sample(
            id=name,
            question=stem,
            answer=answer,
            concepts=frozenset([root_of[fact]]),
            options=options,
            answer_label=label,
        )
        for name, stem, options, fact, label, answer in read
    ]


def _question(row: Mapping[str, object]) -> tuple[str, tuple[Option, ...]]:
    question = row.get("question")
    if isinstance(question, Mapping):
        stem, choices = question["stem"], question["choices"]
        pairs = [(choice["label"], choice["text"]) for choice in choices]
    else:  # the hub's
        stem, choices = row["question_stem"], row["choices"]
        if not isinstance(choices, Mapping):
            raise TypeError("choices")
        pairs = list(zip(choices["label"], choices["text"], strict=True))
    return str(stem), tuple(Option(str(label), str(text)) for label, text in pairs)
