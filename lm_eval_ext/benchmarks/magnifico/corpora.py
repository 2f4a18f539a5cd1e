"""Reads the corpora: the published one (paper, section 3), the embedded one, a user's own."""

import ast
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import yaml

from lm_eval_ext import data
from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import mini, own
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    PLACEHOLDER,
    Corpus,
    CorpusName,
    Database,
    Description,
    Example,
    Form,
    Interpretation,
    Position,
    rows_of,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.sql import Databases, sqlite_path
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from datasets import DatasetInfo

SOURCE, DIALOGUES, DATABASES = "magnifico", "magnifico_dialogues", "spider_databases"
MAPPINGS = "magnifico_mappings"
"""The authors' program with their descriptions, which is read as data."""

SHIPPED = Path(__file__).parent
"""Holds seeds of the published databases' test suites (``suites.json``), rows of their populated
copies (``populated.json``), and both of version 2. Where golds, rows or the generator change,
``python -m bench.judge --pack`` makes the seeds anew."""

FOLDERS: Mapping[Form, str] = {
    "base": "baseline",
    "plausible": "plausible",
    "foreign": "nonsense",
    "adversarial": "adversarial",
}
"""The dataset's folders by form."""

DIALOGUE_FOLDERS: Mapping[Position, str] = {
    "start": "dialogue_data",
    "mid": "dialogue_data_mid",
    "end": "dialogue_data_end",
}
"""The dataset's folders by position of the definition."""

DIALOGUE_FORMS: Mapping[Form, str] = {
    "base": "concept_edited",
    "plausible": "plausible",
    "foreign": "nonsense",
}
"""Folders of the forms that have dialogues; base ones exist only with the definition first."""

COMBINED = "combination"


Sourced: TypeAlias = tuple[Corpus, "DatasetInfo"]
"""A corpus and the description of its data for signatures."""


def find(
    name: CorpusName,
    *,
    dialogues: bool,
    descriptions: bool,
    databases: str | None,
    examples: str | None,
) -> Sourced:
    """Loads a corpus with its databases.

    ``descriptions`` asks for the authors' own, which only the published corpus has.
    ``databases`` is a user's folder of databases, used instead of the published ones, and
    ``examples`` the user's file for ``own``.

    Raises:
        OptionError: A name or a path is illegal.
        DataError: Data are unavailable or invalid.
    """
    if name != "own" and (examples or (databases and name == "mini")):
        raise OptionError(
            "magnifico_file is for the tasks magnifico_own_..., and magnifico_mini has its own "
            "databases; leave them out"
        )
    if name == "published":
        return _published(databases, dialogues=dialogues, descriptions=descriptions)
    if name == "mini":
        return mini.corpus(), provenance.describe_embedded("magnifico_mini", mini.digest())
    if not (databases and examples):
        raise OptionError(
            "magnifico_own needs your own files: --metadata "
            '\'{"magnifico_databases": "my.sqlite", "magnifico_file": "my.tsv"}\''
        )
    place = Path(examples).expanduser()
    corpus = own.read(place, databases)
    digests = {"examples": sha256_of(place), "databases": own.digest(corpus.databases)}
    if corpus.dialogues:
        digests["dialogues"] = own.digest_of_dialogues(corpus)
    return corpus, provenance.describe_many([], own=digests)


def _published(databases: str | None, *, dialogues: bool, descriptions: bool) -> Sourced:
    texts = data.require_all(SOURCE)
    folders = [texts, *([data.require_all(DIALOGUES)] if dialogues else [])]
    corpus = read(texts.path, dialogues=dialogues)
    if descriptions:
        folders.append(data.require_all(MAPPINGS))
        (file,) = folders[-1].files
        corpus = replace(corpus, descriptions=descriptions_in(file.path))
    if databases is None:
        folders.append(data.require_all(DATABASES))
        found = _in_folder(folders[-1].path, corpus)
        return replace(corpus, databases=found), provenance.describe_many(folders)
    found = _in_folder(Path(databases).expanduser(), corpus)
    info = provenance.describe_many(folders, own={"databases": own.digest(found)})
    return replace(corpus, databases=found), info


def _in_folder(folder: Path, corpus: Corpus) -> Mapping[str, Database]:
    """The folder's databases that the corpus asks about, by id in lower case."""
    known = Databases(folder)
    places = {db_id: known.find(db_id) for db_id in corpus.golds()}
    return {
        db_id: replace(Database.at(sqlite_path(place)), listed=corpus.tables.get(db_id, ()))
        for db_id, place in places.items()
        if place
    }


@cache
def interpretations() -> Mapping[str, Interpretation]:
    """The 24 interpretations by name, in the paper's order (its tables 4 and 5)."""
    text = Path(__file__).with_name("interpretations.yaml").read_text(encoding="utf-8")
    entries = yaml.safe_load(text).items()
    return {name: Interpretation(name, **entry) for name, entry in entries}


def read(folder: Path, *, dialogues: bool) -> Corpus:
    """Reads the published corpus, without databases.

    Args:
        folder: The dataset's ``magnifico_data``.
        dialogues: Whether to read the dialogues: hundreds of files that few tasks need.

    Raises:
        DataError: A file is missing or malformed; the file and the line are named.
    """
    examples: list[Example] = []
    support: dict[tuple[str, Form], tuple[Example, ...]] = {}
    listings: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for name, interpretation in interpretations().items():
        novel = tuple(interpretation.forms)
        rows = {form: _rows(folder, name, form, "test") for form in (BASE, *novel)}
        templates = [f"{name}/{index}" for index in range(len(rows[novel[0]]))]
        paired = _pair(rows[BASE], rows[novel[0]], templates)
        examples += _examples(rows[BASE], name, BASE, paired)
        for form in novel:
            examples += _examples(rows[form], name, form, templates)
        for form in (BASE, *novel):
            held_out = _rows(folder, name, form, "train")
            ids = [f"{name}/support-{index}" for index in range(len(held_out))]
            support[name, form] = tuple(_examples(held_out, name, form, ids))
            for row in (*rows[form], *held_out):
                listings[row.db_id.casefold()][row.tables] += 1
    return Corpus(
        interpretations=interpretations(),
        examples=tuple(examples),
        support=support,
        combinations=tuple(_combinations(folder)),
        dialogues=_dialogues(folder) if dialogues else {},
        # A few rows misspell a table, since words in them were replaced.
        tables={
            db_id: min(lists, key=lambda one: (-lists[one], one))
            for db_id, lists in listings.items()
        },
    )


class _Row(NamedTuple):
    db_id: str
    question: str
    query: str
    interpretations: tuple[str, ...]
    tables: tuple[str, ...]

    @property
    def gold(self) -> tuple[str, str]:
        return self.db_id, self.query


def _rows(folder: Path, name: str, form: Form, split: str) -> list[_Row]:
    return list(_table(folder / name / FOLDERS[form] / f"{split}.tsv"))


def _examples(
    rows: Iterable[_Row], name: str, form: Form, templates: Iterable[str]
) -> list[Example]:
    return [
        Example(template, (name,), form, row.db_id, row.question, row.query)
        for row, template in zip(rows, templates, strict=True)
    ]


def _pair(base: list[_Row], novel: list[_Row], templates: list[str]) -> list[str]:
    """Finds the template of each base example: that of the novel example with the same gold query.

    Row numbers do not match: in three interpretations, base and novel examples have different
    orders, or different ones are held out. Examples with the same gold query are paired in order.
    A base example without a partner gets a template of its own.
    """
    free: dict[tuple[str, str], deque[str]] = defaultdict(deque)
    for row, template in zip(novel, templates, strict=True):
        free[row.gold].append(template)
    return [
        free[row.gold].popleft() if free[row.gold] else f"{template.partition('/')[0]}/base-{n}"
        for n, (row, template) in enumerate(zip(base, templates, strict=True))
    ]


def _combinations(folder: Path) -> Iterator[Example]:
    """Yields the examples with two interpretations, with words for the templates' placeholders."""
    base, concept = (_table(folder / COMBINED / f"{part}.tsv") for part in ("baseline", "concept"))
    for index, (plain, template) in enumerate(zip(base, concept, strict=True)):
        names = template.interpretations
        name = f"{'+'.join(names)}/{index}"
        yield Example(name, names, BASE, plain.db_id, plain.question, plain.query)
        for form in NOVEL:
            question = template.question
            for number, interpretation in enumerate(names, start=1):
                word = interpretations()[interpretation].forms[form]
                question = question.replace(f"{PLACEHOLDER}{number}", word)
            yield Example(name, names, form, template.db_id, question, template.query)


def _dialogues(folder: Path) -> dict[tuple[str, Form, str], dict[Position, str]]:
    found: dict[tuple[str, Form, str], dict[Position, str]] = defaultdict(dict)
    for name in interpretations():
        for position, place in DIALOGUE_FOLDERS.items():
            for form, inner in DIALOGUE_FORMS.items():
                for file in sorted((folder / name / place / inner).glob("*.txt")):
                    text = file.read_text(encoding="utf-8", errors="replace").strip()
                    found[name, form, file.stem.casefold()][position] = text
    return dict(found)


def _table(path: Path) -> Iterator[_Row]:
    """Yields the rows of a tab-separated file.

    The column ``Question`` has the format ``db_id: question | table : column , column | ...``. Only
    its first colon ends the id, since the question may have colons, too.
    """
    for place, row in rows_of(path):
        db_id, _, rest = row.get("Question", "").partition(": ")
        question, *tables = rest.split(" | ")
        question, query = question.strip(), row.get("Parse", "")
        if not (db_id and question and query):
            raise DataError(
                f"{place}: needs Question (db_id: text | schema) and Parse; fetch it again "
                "(lm-eval-ext data fetch magnifico)"
            )
        names = (row.get("Interpretation1"), row.get("Interpretation2"))
        yield _Row(
            db_id, question, query,
            tuple(name for name in names if name),
            tuple(table.partition(":")[0].strip() for table in tables),
        )  # fmt: skip


# --- the authors' descriptions, read from their program as data: nothing of it is executed ---

_SENTENCES, _WORDS = "get_instruction", "get_setting_word"
"""The functions that hold a dictionary of the sentences, and one of the words by form."""


def descriptions_in(path: Path) -> Mapping[str, Description]:
    """Reads the descriptions of the 24 interpretations, by name.

    Raises:
        DataError: The file cannot be read or has another shape.
    """
    try:
        found_in = {
            function.name: ast.literal_eval(node.value)
            for function in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(function, ast.FunctionDef)
            for node in function.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        }
        sentences, words = found_in[_SENTENCES], found_in[_WORDS]
        found = {}
        for name, one in interpretations().items():
            sentence = sentences[name].strip()
            named = one.forms if PLACEHOLDER in sentence else ()
            by_form = {form: words[name][FOLDERS[form]].strip() for form in named}
            found[name] = Description(sentence, by_form)
    except (
        OSError, SyntaxError, ValueError, TypeError, AttributeError, LookupError, RecursionError,
        MemoryError,
    ) as error:  # fmt: skip
        said = one_line(str(error), limit=200)
        raise DataError(
            f"{path}: cannot be read ({said}); fetch it again (lm-eval-ext data fetch "
            "magnifico_mappings)"
        ) from None
    return found
