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

from lm_eval_ext.benchmarks.conceptual.records import Option, Sample, text_of
from lm_eval_ext.errors import OptionError, require_extra
from lm_eval_ext.text import one_line

_FOLDER = "OpenBookQA-V1-Sep2018/Data/Additional"

IN_ARCHIVE = (f"{_FOLDER}/dev_complete.jsonl", f"{_FOLDER}/test_complete.jsonl")
"""The parts that the paper uses, validation and test, in the published archive."""

_BATCH = 256


def read(
    files: Iterable[Path | zipfile.Path], roots: Callable[[Sequence[str]], Mapping[str, str]]
) -> list[Sample]:
    """Read files of one question per line.

    Args:
        files: On disk or in an archive.
        roots: Given facts, returns the root of each, as :func:`roots` does.
    """
    rows = []
    for file in files:
        for line in file.read_text(encoding="utf-8").split("\n"):
            if line.strip():
                rows.append(json.loads(line))
    root_of_fact = roots([row["fact1"] for row in rows])
    samples = []
    for row in rows:
        choices = row["question"]["choices"]
        options = tuple(Option(choice["label"], choice["text"]) for choice in choices)
        sample = Sample(
            id=row["id"],
            question=row["question"]["stem"],
            answer=text_of(row["answerKey"], options),
            concepts=frozenset([root_of_fact[row["fact1"]]]),
            options=options,
            answer_label=row["answerKey"],
        )
        samples.append(sample)
    return samples


@lru_cache(maxsize=1)
def pipeline(package_or_folder: str) -> Any:
    """Load a spaCy pipeline by its package's name or its folder.

    Raises:
        OptionError: spaCy or the pipeline is not installed; the message says how to install it.
    """
    require_extra("concepts", "OpenBookQA, whose concepts are roots of parses,", "spacy")
    import spacy

    location: str | Path = package_or_folder
    if "/" in package_or_folder:
        location = Path(package_or_folder).expanduser()
    try:
        return spacy.load(location)
    except (OSError, ValueError, ImportError) as error:
        raise OptionError(
            f"conceptual_pipeline: {package_or_folder!r} cannot be loaded "
            f"({one_line(str(error), limit=200)}); python -m spacy download en_core_web_sm, or "
            "name another installed pipeline, or its folder"
        ) from None


def label(nlp: Any) -> str:
    """Return a pipeline's label for signatures: name, version and a digest of its files.

    The same pipeline in another folder has the same label.
    """
    digest = hashlib.sha256()
    for path in sorted(nlp.path.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(nlp.path).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    meta = nlp.meta
    return f"{meta['lang']}_{meta['name']}-{meta['version']}-{digest.hexdigest()[:8]}"


def roots(texts: Iterable[str], nlp: Any) -> dict[str, str]:
    """Return the root of each text.

    Raises:
        OptionError: The pipeline does not parse.
    """
    from tqdm import tqdm

    distinct = sorted(set(texts))
    root_of_text = {}
    parsed = nlp.pipe(distinct, batch_size=_BATCH)
    for document in tqdm(parsed, total=len(distinct), desc="parsing facts", disable=None):
        root = next((token for token in document if token.dep_ == "ROOT"), None)
        if root is None:
            raise OptionError(
                f"the spaCy pipeline {nlp.meta['name']} finds no root in {document.text!r}; name "
                "one with a dependency parser, such as en_core_web_sm"
            )
        root_of_text[document.text] = root.text.lower()
    return root_of_text
