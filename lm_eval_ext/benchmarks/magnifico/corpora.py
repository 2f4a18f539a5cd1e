"""Reads the corpora: the published one (paper, section 3), the embedded one, a user's own."""

import ast
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
    DialogueKey,
    Example,
    Form,
    Interpretation,
    Position,
    rows_of,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.provenance import NOTHING, Provenance, describe_embedded, describe_sources
from lm_eval_ext.reading import embedded
from lm_eval_ext.sql import Databases, sqlite_path
from lm_eval_ext.text import one_line

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


@dataclass(frozen=True)
class SourcedCorpus:
    """A corpus, and where its texts and its databases come from.

    Attributes:
        corpus: The examples with their databases. The published corpus is read without dialogues
            and descriptions, which :func:`add_dialogues` and :func:`add_descriptions` add.
        texts: The provenance of the examples, and of what was added.
        databases: The provenance of the databases, unless it is that of the texts.
    """

    corpus: Corpus
    texts: Provenance
    databases: Provenance = NOTHING

    @property
    def provenance(self) -> Provenance:
        """The provenance of everything, for signatures."""
        return self.texts.joined(self.databases)


def load_corpus(name: CorpusName, *, databases: str | None, examples: str | None) -> SourcedCorpus:
    """Load a corpus with its databases.

    Args:
        name: The corpus.
        databases: A user's folder of databases, used instead of the published ones; for ``own`` any
            database.
        examples: The user's file, for ``own``.

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
        return _published(databases)
    if name == "mini":
        return SourcedCorpus(mini.corpus(), describe_embedded("magnifico_mini", mini.digest()))
    if not (databases and examples):
        raise OptionError(
            "magnifico_own needs your own files: --metadata "
            '\'{"magnifico_databases": "my.sqlite", "magnifico_file": "my.tsv"}\''
        )
    return _users_own(Path(examples).expanduser(), databases)


def _users_own(file: Path, databases: str) -> SourcedCorpus:
    corpus = own.read(file, databases)
    digests = {"examples": sha256_of(file), "databases": own.digest(corpus.databases)}
    if corpus.dialogues:
        digests["dialogues"] = own.digest_of_dialogues(corpus)
    return SourcedCorpus(corpus, describe_sources([], user_checksums=digests))


def _published(databases: str | None) -> SourcedCorpus:
    texts = data.require_all(SOURCE)
    corpus = read(texts.path)
    if databases is None:
        folder = data.require_all(DATABASES)
        by_id = _databases_in(folder.path, corpus)
        database_provenance = describe_sources([folder])
    else:
        by_id = _databases_in(Path(databases).expanduser(), corpus)
        database_provenance = describe_sources([], user_checksums={"databases": own.digest(by_id)})
    corpus = replace(corpus, databases=by_id)
    return SourcedCorpus(corpus, describe_sources([texts]), database_provenance)


def add_dialogues(sourced: SourcedCorpus) -> SourcedCorpus:
    """Return the published corpus with its dialogues: hundreds of files that few tasks need.

    Raises:
        DataError: They are not available.
    """
    folder = data.require_all(DIALOGUES)
    corpus = replace(sourced.corpus, dialogues=read_dialogues(folder.path))
    return replace(sourced, corpus=corpus, texts=sourced.texts.joined(describe_sources([folder])))


def add_descriptions(sourced: SourcedCorpus) -> SourcedCorpus:
    """Return the published corpus with the authors' descriptions of words.

    Raises:
        DataError: They are not available, or invalid.
    """
    folder = data.require_all(MAPPINGS)
    (file,) = folder.files
    corpus = replace(sourced.corpus, descriptions=descriptions_in(file.path))
    return replace(sourced, corpus=corpus, texts=sourced.texts.joined(describe_sources([folder])))


def _databases_in(folder: Path, corpus: Corpus) -> Mapping[str, Database]:
    """Return the folder's databases that the corpus asks about, by id in lower case."""
    folder_databases = Databases(folder)
    by_id = {}
    for db_id in corpus.golds():
        location = folder_databases.find(db_id)
        if location:
            database = Database.at(sqlite_path(location))
            by_id[db_id] = replace(database, listed_tables=corpus.tables.get(db_id, ()))
    return by_id


@cache
def interpretations() -> Mapping[str, Interpretation]:
    """Return the 24 interpretations by name, in the paper's order (its tables 4 and 5)."""
    entries = embedded(__file__, "interpretations.yaml")
    return {name: Interpretation(name, **entry) for name, entry in entries.items()}


def read(folder: Path) -> Corpus:
    """Read the published corpus, without databases and dialogues.

    Args:
        folder: The dataset's ``magnifico_data``.

    Raises:
        DataError: A file is missing or malformed; the file and the line are named.
    """
    examples: list[Example] = []
    support: dict[tuple[str, Form], tuple[Example, ...]] = {}
    listings: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for name, interpretation in interpretations().items():
        novel_forms = tuple(interpretation.forms)
        rows = {form: _rows(folder, name, form, "test") for form in (BASE, *novel_forms)}
        first_novel = rows[novel_forms[0]]
        templates = [f"{name}/{index}" for index in range(len(first_novel))]
        base_templates = _pair(rows[BASE], first_novel, templates)
        examples += _examples(rows[BASE], name, BASE, base_templates)
        for form in novel_forms:
            examples += _examples(rows[form], name, form, templates)
        for form in (BASE, *novel_forms):
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
        tables={db_id: _most_frequent(lists) for db_id, lists in listings.items()},
    )


def _most_frequent(lists: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the list of tables that most questions show; the first in alphabetical order of ties.

    A few rows misspell a table, since words in them were replaced.
    """
    return min(lists, key=lambda tables: (-lists[tables], tables))


class _Row(NamedTuple):
    """A row of the dataset: a question about a database, with its gold query."""

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
    examples = []
    for row, template in zip(rows, templates, strict=True):
        examples.append(Example(template, (name,), form, row.db_id, row.question, row.query))
    return examples


def _pair(base: Sequence[_Row], novel: Sequence[_Row], templates: Sequence[str]) -> list[str]:
    """Return the template of each base example: that of the novel example with the same gold query.

    Row numbers do not match: in three interpretations, base and novel examples have different
    orders, or different ones are held out. Examples with the same gold query are paired in order.
    A base example without a partner gets a template of its own.
    """
    unpaired: dict[tuple[str, str], deque[str]] = defaultdict(deque)
    for row, template in zip(novel, templates, strict=True):
        unpaired[row.gold].append(template)
    paired = []
    for number, (row, template) in enumerate(zip(base, templates, strict=True)):
        partners = unpaired[row.gold]
        if partners:
            paired.append(partners.popleft())
        else:
            name = template.partition("/")[0]
            paired.append(f"{name}/base-{number}")
    return paired


def _combinations(folder: Path) -> Iterator[Example]:
    """Yield the examples with two interpretations, with words for the templates' placeholders."""
    base_rows = _table(folder / COMBINED / "baseline.tsv")
    template_rows = _table(folder / COMBINED / "concept.tsv")
    for index, (base, template) in enumerate(zip(base_rows, template_rows, strict=True)):
        names = template.interpretations
        name = f"{'+'.join(names)}/{index}"
        yield Example(name, names, BASE, base.db_id, base.question, base.query)
        for form in NOVEL:
            question = template.question
            for number, interpretation in enumerate(names, start=1):
                word = interpretations()[interpretation].forms[form]
                question = question.replace(f"{PLACEHOLDER}{number}", word)
            yield Example(name, names, form, template.db_id, question, template.query)


@cache
def read_dialogues(folder: Path) -> Mapping[DialogueKey, Mapping[Position, str]]:
    """Read the published dialogues, once for each folder.

    Args:
        folder: The dataset's ``magnifico_data``.
    """
    dialogues: dict[DialogueKey, dict[Position, str]] = defaultdict(dict)
    for name in interpretations():
        for position, position_folder in DIALOGUE_FOLDERS.items():
            for form, form_folder in DIALOGUE_FORMS.items():
                for file in sorted((folder / name / position_folder / form_folder).glob("*.txt")):
                    text = file.read_text(encoding="utf-8", errors="replace").strip()
                    dialogues[name, form, file.stem.casefold()][position] = text
    return dict(dialogues)


def _table(path: Path) -> Iterator[_Row]:
    """Yield the rows of a tab-separated file.

    The column ``Question`` has the format ``db_id: question | table : column , column | ...``. Only
    its first colon ends the id, since the question may have colons, too.
    """
    for position, row in rows_of(path):
        db_id, _, rest = row.get("Question", "").partition(": ")
        question, *tables = rest.split(" | ")
        question = question.strip()
        query = row.get("Parse", "")
        if not (db_id and question and query):
            raise DataError(
                f"{position}: needs Question (db_id: text | schema) and Parse; fetch it again "
                "(lm-eval-ext data fetch magnifico)"
            )
        names = [row.get("Interpretation1"), row.get("Interpretation2")]
        yield _Row(
            db_id=db_id,
            question=question,
            query=query,
            interpretations=tuple(name for name in names if name),
            tables=tuple(table.partition(":")[0].strip() for table in tables),
        )


# --- the authors' descriptions, read from their program as data: nothing of it is executed ---

_SENTENCES, _WORDS = "get_instruction", "get_setting_word"
"""The functions that hold a dictionary of the sentences, and one of the words by form."""

_UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
    MemoryError,
)
"""Errors that reading a file of another shape may raise."""


def descriptions_in(path: Path) -> Mapping[str, Description]:
    """Read the descriptions of the 24 interpretations, by name.

    Raises:
        DataError: The file cannot be read or has another shape.
    """
    try:
        dictionaries = _dictionaries_in(path.read_text(encoding="utf-8"))
        sentences, words = dictionaries[_SENTENCES], dictionaries[_WORDS]
        descriptions = {}
        for name, interpretation in interpretations().items():
            sentence = sentences[name].strip()
            by_form: dict[Form, str] = {}
            if PLACEHOLDER in sentence:
                for form in interpretation.forms:
                    by_form[form] = words[name][FOLDERS[form]].strip()
            descriptions[name] = Description(sentence, by_form)
    except _UNREADABLE as error:
        problem = one_line(str(error), limit=200)
        raise DataError(
            f"{path}: cannot be read ({problem}); fetch it again (lm-eval-ext data fetch "
            "magnifico_mappings)"
        ) from None
    return descriptions


def _dictionaries_in(program: str) -> Mapping[str, Any]:
    """Return the last dictionary that each function of a program assigns, by the function."""
    dictionaries = {}
    for function in ast.parse(program).body:
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
                    dictionaries[function.name] = ast.literal_eval(statement.value)
    return dictionaries
