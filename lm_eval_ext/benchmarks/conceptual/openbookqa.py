"""OpenBookQA: questions with four options, each based on one fact whose root is the concept.

The root is the first token that a dependency parse marks as ROOT, in lower case (paper, section
3.2, and the authors' code). The user names the spaCy pipeline that parses. Roots are cached under
a key of the pipeline's name, version and files and of spaCy's version, so that no pipeline gets
the roots of another one.
"""

import hashlib
import importlib.util
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError

PARTS = ("dev", "test")
"""The parts that the paper uses: validation and test."""

IN_ARCHIVE = "OpenBookQA-V1-Sep2018/Data/Additional/{part}_complete.jsonl"

_BATCH = 256

Row = tuple[str, Mapping[str, Any]]
"""A row's place (for messages), and the row."""


def read_archive(path: Path) -> list[Row]:
    """Reads both parts from the published archive.

    Raises:
        DataError: It does not contain them.
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


def read_files(paths: Iterable[Path]) -> list[Row]:
    """Reads files of one question per line."""
    return [row for path in paths for row in _parsed(path.read_text(encoding="utf-8"), str(path))]


def _parsed(text: str, place: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                rows.append((f"{place}:{number}", json.loads(line)))
            except ValueError:
                raise DataError(f"{place}:{number}: not valid JSON") from None
    return rows


def samples(rows: Iterable[Row], roots: Callable[[list[str]], Mapping[str, str]]) -> list[Sample]:
    """Makes samples of rows.

    Args:
        rows: As the files have them.
        roots: From facts to the root of each, such as :func:`roots`.

    Raises:
        DataError: A row has another format; the message names its place.
    """
    read = []
    for place, row in rows:
        try:
            stem, choices = row["question"]["stem"], row["question"]["choices"]
            options = tuple(Option(str(one["label"]), str(one["text"])) for one in choices)
            fact, label = str(row["fact1"]), str(row["answerKey"])
            (answer,) = [option.text for option in options if option.label == label]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{place}: not a question of OpenBookQA ({error!r})") from None
        read.append((str(row["id"]), str(stem), options, fact, label, answer))
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


@dataclass(frozen=True)
class Pipeline:
    """An installed spaCy pipeline.

    Attributes:
        folder: With its ``meta.json``.
        name: From ``meta.json``, language first: ``en_core_web_sm``.
        version: From ``meta.json``.
        digest: Eight hexadecimal digits over its files.
    """

    folder: Path
    name: str
    version: str
    digest: str

    @property
    def label(self) -> str:
        """For signatures: identifies the pipeline without its location."""
        return f"{self.name}-{self.version}-{self.digest}"


def find(named: str) -> Pipeline:
    """Finds a pipeline by its package's name or its folder, without loading it.

    Raises:
        OptionError: spaCy or the pipeline is not installed; the message says how to install it.
    """
    if importlib.util.find_spec("spacy") is None:
        raise OptionError(
            "the concepts of OpenBookQA need spaCy: pip install 'lm-eval-ext[concepts]', then "
            f"python -m spacy download {named}"
        )
    folder = Path(named).expanduser()
    if not folder.is_dir():
        try:
            found = importlib.util.find_spec(named) if named.isidentifier() else None
        except ValueError:  # a module without a spec, such as __main__
            found = None
        if found is None or found.origin is None:
            raise OptionError(
                f"no spaCy pipeline {named!r} is installed: python -m spacy download "
                f"{named if named.isidentifier() else 'en_core_web_sm'}, or name another one, or "
                "its folder, with --metadata conceptual_pipeline=NAME"
            )
        folder = Path(found.origin).parent
    return _described(named, folder)


def _described(named: str, folder: Path) -> Pipeline:
    # A package has its pipeline one level below.
    metas = [
        path for path in (folder / "meta.json", *sorted(folder.glob("*/meta.json")))
        if path.is_file() and (path.parent / "config.cfg").is_file()
    ]  # fmt: skip
    if not metas:
        raise OptionError(
            f"{named}: {folder} is not a spaCy pipeline (meta.json and config.cfg are missing)"
        )
    try:
        meta = json.loads(metas[0].read_text(encoding="utf-8"))
        name, version = f"{meta['lang']}_{meta['name']}", str(meta["version"])
    except (ValueError, TypeError, KeyError):
        raise OptionError(
            f"{metas[0]} does not give lang, name and version of a spaCy pipeline; install it again"
        ) from None
    home = metas[0].parent
    digest = hashlib.sha256()
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(home).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return Pipeline(home, name, version, digest.hexdigest()[:8])


def roots(texts: Sequence[str], pipeline: Pipeline) -> Mapping[str, str]:
    """The root of each text, from the cache or by parsing.

    Raises:
        OptionError: The pipeline cannot be loaded, or does not parse.
    """
    distinct = sorted(set(texts))
    version = metadata.version("spacy")
    key = hashlib.sha256(json.dumps([pipeline.label, version, distinct]).encode()).hexdigest()
    file = cache_dir() / "conceptual" / f"roots_{pipeline.label}_{key[:16]}.json"
    if (stored := _stored(file, distinct)) is not None:
        return stored
    found = _parse(distinct, pipeline)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(file) as handle:
        json.dump(found, handle, ensure_ascii=False, indent=0)
    return found


def _stored(file: Path, texts: Sequence[str]) -> dict[str, str] | None:
    """The cached roots; None if there are none or the file is damaged."""
    try:
        stored: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stored if isinstance(stored, dict) and stored.keys() == set(texts) else None


def _parse(texts: Sequence[str], pipeline: Pipeline) -> dict[str, str]:
    from tqdm import tqdm

    nlp = _loaded(pipeline)
    parsed = tqdm(
        nlp.pipe(texts, batch_size=_BATCH), total=len(texts), desc="parsing facts", disable=None
    )
    found = {}
    for text, document in zip(texts, parsed, strict=True):
        root = next((token for token in document if token.dep_ == "ROOT"), None)
        if root is None:
            raise OptionError(
                f"the spaCy pipeline {pipeline.label} finds no root in {text!r}; name one with a "
                "dependency parser, such as en_core_web_sm"
            )
        found[text] = str(root).lower()
    return found


@lru_cache(maxsize=1)
def _loaded(pipeline: Pipeline) -> Any:
    import spacy

    try:
        return spacy.load(pipeline.folder)
    except (OSError, ValueError, ImportError) as error:
        raise OptionError(
            f"the spaCy pipeline {pipeline.label} cannot be loaded ({error}); install the version "
            "for your spaCy (python -m spacy validate lists it)"
        ) from None
