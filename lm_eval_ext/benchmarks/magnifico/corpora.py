"""The corpora by name, with where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import mini, own, published
from lm_eval_ext.benchmarks.magnifico.records import Corpus, Database
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.sql import Databases

if TYPE_CHECKING:
    from datasets import DatasetInfo

CorpusName: TypeAlias = Literal["published", "mini", "own"]

SOURCE, DIALOGUES, DATABASES = "magnifico", "magnifico_dialogues", "spider_databases"


@dataclass(frozen=True)
class Sourced:
    """A corpus and what a signature says of its data."""

    corpus: Corpus
    info: "DatasetInfo"


def find(
    name: CorpusName, *, dialogues: bool, databases: str | None, examples: str | None
) -> Sourced:
    """Loads a corpus.

    Args:
        name: ``published``, ``mini`` (embedded, our own) or ``own`` (the user's).
        dialogues: Whether the dialogues are needed.
        databases: A user's folder of databases, in the place of the published ones.
        examples: The user's file of examples; for ``own``.

    Raises:
        OptionError: A name, or a path, is not legal.
        DataError: Data are not at hand, or not what they should be.
    """
    if name == "published":
        if examples is not None:
            raise OptionError("magnifico_file: only the tasks magnifico_own_... read one")
        return _published(databases, dialogues=dialogues)
    if name == "mini":
        if databases or examples:
            raise OptionError("magnifico_mini has its own databases and examples")
        return Sourced(mini.corpus(), provenance.describe_embedded("magnifico_mini", mini.digest()))
    if name == "own":
        if not (databases and examples):
            raise OptionError(
                "magnifico_own needs your own files: --metadata "
                '\'{"magnifico_databases": "my.sqlite", "magnifico_file": "my.tsv"}\''
            )
        place = Path(examples).expanduser()
        corpus = own.read(place, Path(databases).expanduser())
        digests = {"examples": own.digest_of(place), "databases": own.digest(corpus.databases)}
        return Sourced(corpus, provenance.describe_many([], own=digests))
    raise OptionError(f"no corpus {name!r}; use {', '.join(get_args(CorpusName))}")


def _published(databases: str | None, *, dialogues: bool) -> Sourced:
    texts = data.require_all(SOURCE)
    folders = [texts, *([data.require_all(DIALOGUES)] if dialogues else [])]
    corpus = published.read(texts.path, dialogues=dialogues)
    if databases is None:
        folders.append(data.require_all(DATABASES))
        at_hand = _in_folder(folders[-1].path, corpus)
        return Sourced(replace(corpus, databases=at_hand), provenance.describe_many(folders))
    at_hand = _in_folder(Path(databases).expanduser(), corpus)
    info = provenance.describe_many(folders, own={"databases": own.digest(at_hand)})
    return Sourced(replace(corpus, databases=at_hand), info)


def _in_folder(folder: Path, corpus: Corpus) -> Mapping[str, Database]:
    """The databases that the corpus asks about and the folder has, by id in lower case."""
    known = Databases(folder)
    found: dict[str, Database] = {}
    for db_id in corpus.golds():
        path = known.find(db_id)
        if path is not None:
            script = path.with_name("schema.sql")
            found[db_id] = Database(path, script if script.is_file() else None)
    return MappingProxyType(found)
