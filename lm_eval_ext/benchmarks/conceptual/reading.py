"""Questions about texts: from files that the user names, and short ones that are generated."""

import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lm_eval_ext.errors import DataError

FORMAT = (
    'SQuAD\'s JSON, or a line for each question, {"question": ..., "context": ..., "answer": ...} '
    'with "answers": {"text": [...]} or ["..."] instead of "answer", and a "category" if it has one'
)


class Question(NamedTuple):
    """A question about a text.

    Attributes:
        category: What questions of one concept have in common.
    """

    question: str
    context: str
    answer: str
    category: str


def category_of(question: str) -> str:
    """As in the published script: the first word; after "To", the first two."""
    words = question.split()
    return " ".join(words[: 2 if words[:1] == ["To"] else 1])


def read(file: Path) -> list[Question]:
    """The questions of a file; the first of several answers counts.

    Raises:
        DataError: It cannot be read, or is in another format; the line is named.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error}); it must be {FORMAT}") from None
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    found = []
    for place, row in enumerate(_rows(whole) if _is_squad(whole) else _lines(file, text), start=1):
        if (one := _question(row)) is None:
            raise DataError(f"{file}: question {place} is not as it must be: {FORMAT}")
        found.append(one)
    if not found:
        raise DataError(f"{file}: no questions; it must be {FORMAT}")
    return found


def _is_squad(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("data"), list)


def _rows(content: Any) -> Iterator[Any]:
    for article in content["data"]:
        for paragraph in _list(article, "paragraphs"):
            for row in _list(paragraph, "qas"):
                yield {"context": paragraph.get("context"), **row} if row else None


def _list(content: Any, key: str) -> list[Any]:
    """The mappings of a list, None where something else stands."""
    found = content.get(key) if isinstance(content, dict) else None
    rows = found if isinstance(found, list) else [None]
    return [one if isinstance(one, dict) else None for one in rows]


def _lines(file: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                raise DataError(f"{file}, line {number}: not JSON; it must be {FORMAT}") from None


def _question(row: Any) -> Question | None:
    if not isinstance(row, Mapping):
        return None
    answer: Any = row.get("answer", row.get("answers"))
    if isinstance(answer, Mapping):
        answer = answer.get("text")
    if isinstance(answer, list):
        answer = answer[0] if answer else None
        answer = answer.get("text") if isinstance(answer, Mapping) else answer
    found = [row.get("question"), row.get("context"), answer]
    if not all(isinstance(one, str) and one.strip() for one in found):
        return None
    question, context, answer = (" ".join(one.split()) for one in found)
    return Question(question, context, answer, str(row.get("category") or category_of(question)))


@cache
def _parts() -> Any:
    file = resources.files(__package__).joinpath("mini_reading.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def generated(seed: object, facts: int) -> Iterator[Question]:
    """Questions without end about texts of so many facts; no two facts share a word's place."""
    rng = random.Random(f"generated questions, {seed}")
    words, kinds = _parts()["words"], _parts()["facts"]
    while True:
        drawn = {kind: rng.sample(some, facts) for kind, some in words.items()}
        filled = [{kind: some[place] for kind, some in drawn.items()} for place in range(facts)]
        of_fact = [rng.choice(kinds) for _ in range(facts)]
        stated = (fact["sentence"].format(**own) for fact, own in zip(of_fact, filled, strict=True))
        context = " ".join(stated)
        place = rng.randrange(facts)
        chosen = rng.choice(list(of_fact[place]["questions"].items()))
        asked, answer = (text.format(**filled[place]) for text in chosen)
        yield Question(asked, context, answer, category_of(asked))
