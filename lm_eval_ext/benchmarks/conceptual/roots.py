"""The roots of facts, by a spaCy pipeline that the user names: OpenBookQA's concepts.

Paper, section 3.2, and the authors' code: the first token that the parse marks as ROOT, in
lower case. Parsing is done once; the cache's key holds the pipeline's name and version, a
digest of its files and spaCy's version, so another pipeline never reads what this one found.
"""

import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import OptionError

_BATCH = 256


@dataclass(frozen=True)
class Pipeline:
    """A spaCy pipeline on this machine.

    Attributes:
        folder: Where its files are.
        name: As its ``meta.json`` says, language first: ``en_core_web_sm``.
        version: Likewise.
        digest: Eight hexadecimal digits over its files.
    """

    folder: Path
    name: str
    version: str
    digest: str

    @property
    def label(self) -> str:
        """For signatures: the name does not say where it lies."""
        return f"{self.name}-{self.version}-{self.digest}"


def find(named: str) -> Pipeline:
    """Finds a pipeline by the name of its package or by its folder, without loading it.

    Raises:
        OptionError: spaCy or the pipeline is not installed; the message says how to get it.
    """
    if importlib.util.find_spec("spacy") is None:
        raise OptionError(
            "the concepts of OpenBookQA need spaCy: pip install 'lm-eval-ext[concepts]', then "
            f"python -m spacy download {named}"
        )
    folder = Path(named).expanduser()
    if not folder.is_dir():
        found = _package(named)
        if found is None or found.origin is None:
            raise OptionError(
                f"no spaCy pipeline {named!r} is installed: python -m spacy download "
                f"{named if named.isidentifier() else 'en_core_web_sm'}, or name another, or the "
                "folder of one, by --metadata conceptual_pipeline=NAME"
            )
        folder = Path(found.origin).parent
    return _described(named, folder)


def _package(named: str) -> ModuleSpec | None:
    if not named.isidentifier():
        return None
    try:
        return importlib.util.find_spec(named)
    except ValueError:  # a module of this program that was not imported, such as __main__
        return None


def _described(named: str, folder: Path) -> Pipeline:
    # A package holds its pipeline one level below.
    metas = [
        path for path in (folder / "meta.json", *sorted(folder.glob("*/meta.json")))
        if path.is_file() and (path.parent / "config.cfg").is_file()
    ]  # fmt: skip
    if not metas:
        raise OptionError(f"{named}: {folder} holds no spaCy pipeline (meta.json and config.cfg)")
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
    """Returns the root of each text, from the cache or by parsing.

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
    """What was found before; None where nothing was, or the file is damaged."""
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
            "that fits your spaCy: python -m spacy validate"
        ) from None
