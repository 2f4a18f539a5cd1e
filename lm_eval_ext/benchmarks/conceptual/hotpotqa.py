"""HotpotQA with R4C: questions about paragraphs, and three annotators' explanations as triples."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.conceptual.records import Sample
from lm_eval_ext.errors import DataError


def read(questions: Path, annotations: Path) -> list[Sample]:
    """Joins HotpotQA's questions with R4C's annotations by id; skips questions without any.

    Raises:
        DataError: A file is not valid.
    """
    explained = concepts_of(annotations)
    samples = []
    for number, row in enumerate(_json(questions, list)):
        try:
            name = str(row["_id"])
            if name in explained:
                samples.append(
                    Sample(
                        id=name,
                        question=row["question"],
                        answer=row["answer"],
                        concepts=explained[name],
                        context=paragraphs(row["context"]),
                    )
                )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{questions}: row {number} is not a question of HotpotQA ({error!r})"
            ) from None
    return samples


def concepts_of(annotations: Path) -> dict[str, frozenset[str]]:
    """Reads R4C: for each question, all pairs "relation object" of its three annotations.

    Some annotators wrote None for both. That pair counts like any other: without it there are
    fewer samples than in the paper (``docs/fidelity.md``).

    Raises:
        DataError: The file is not valid; the message names the id.
    """
    found = {}
    for name, derivations in _json(annotations, dict).items():
        try:
            found[name] = frozenset(
                f"{relation} {thing}"
                for derivation in derivations
                for _, _, (_, relation, thing) in derivation
            )
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{annotations}: {name} has something other than triples ({error!r})"
            ) from None
    return found


def paragraphs(context: Iterable[Any]) -> str:
    """The context as text: one line per paragraph, with its title first."""
    return "\n".join(f"{title}: {''.join(sentences).strip()}" for title, sentences in context)


def _json(path: Path, kind: type) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(content, kind):
        raise DataError(f"{path}: not {'an object' if kind is dict else 'a list'} in JSON")
    return content
