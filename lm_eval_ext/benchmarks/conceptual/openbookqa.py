"""OpenBookQA: questions with four options, each based on one fact whose root is the concept.

The root is the first token that a dependency parse marks as ROOT, in lower case (paper, section
3.2, and the authors' code). The user names the spaCy pipeline that parses.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.errors import OptionError, require_extra
from lm_eval_ext.text import one_line

IN_ARCHIVE = tuple(
    f"OpenBookQA-V1-Sep2018/Data/Additional/{part}_complete.jsonl" for part in ("dev", "test")
)
"""The parts that the paper uses, validation and test, in the published archive."""

_BATCH = 256


def read(
    files: Iterable[Path | zipfile.Path], roots: Callable[[Sequence[str]], Mapping[str, str]]
) -> list[Sample]:
    """Reads files of one question per line.

    Args:
        files: On disk or in an archive.
        roots: From facts to the root of each, such as :func:`roots`.
    """
    lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")]
    rows = [json.loads(line) for line in lines if line.strip()]
    root_of = roots([row["fact1"] for row in rows])
    samples = []
    for row in rows:
        options = tuple(Option(one["label"], one["text"]) for one in row["question"]["choices"])
        (answer,) = (option.text for option in options if option.label == row["answerKey"])
        samples.append(
            Sample(
                id=row["id"],
                question=row["question"]["stem"],
                answer=answer,
                concepts=frozenset([root_of[row["fact1"]]]),
                options=options,
                answer_label=row["answerKey"],
            )
        )
    return samples


@lru_cache(maxsize=1)
def pipeline(named: str) -> Any:
    """Loads a spaCy pipeline by its package's name or its folder.

    Raises:
        OptionError: spaCy or the pipeline is not installed; the message says how to install it.
    """
    require_extra("concepts", "OpenBookQA, whose concepts are roots of parses,", "spacy")
    import spacy

    try:
        return spacy.load(Path(named).expanduser() if "/" in named else named)
    except (OSError, ValueError, ImportError) as error:
        raise OptionError(
            f"conceptual_pipeline: {named!r} cannot be loaded "
            f"({one_line(str(error), limit=200)}); python -m spacy download en_core_web_sm, or "
            "name another installed pipeline, or its folder"
        ) from None


def label(nlp: Any) -> str:
    """For signatures: name, version and a digest of the files of a pipeline, not its location."""
    digest = hashlib.sha256()
    for path in sorted(path for path in nlp.path.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(nlp.path).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    meta = nlp.meta
    return f"{meta['lang']}_{meta['name']}-{meta['version']}-{digest.hexdigest()[:8]}"


def roots(texts: Iterable[str], nlp: Any) -> dict[str, str]:
    """The root of each text.

    Raises:
        OptionError: The pipeline does not parse.
    """
    from tqdm import tqdm

    distinct = sorted(set(texts))
    found = {}
    parsed = nlp.pipe(distinct, batch_size=_BATCH)
    for document in tqdm(parsed, total=len(distinct), desc="parsing facts", disable=None):
        root = next((token for token in document if token.dep_ == "ROOT"), None)
        if root is None:
            raise OptionError(
                f"the spaCy pipeline {nlp.meta['name']} finds no root in {document.text!r}; name "
                "one with a dependency parser, such as en_core_web_sm"
            )
        found[document.text] = root.text.lower()
    return found
