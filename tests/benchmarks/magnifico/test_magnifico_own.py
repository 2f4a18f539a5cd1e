"""A user's own file and database: reading, and one-line errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from support.databases import written

from lm_eval_ext.benchmarks.magnifico import corpora, own
from lm_eval_ext.benchmarks.magnifico.documents import Setting, chosen, documents
from lm_eval_ext.benchmarks.magnifico.records import Corpus
from lm_eval_ext.errors import DataError, OptionError

HEADER = "interpretation\tword\tmeaning\tquestion\tbase_question\tquery"
ROW = (
    "tall\tlofty\ta height above 30\twhich masts are lofty?\twhich masts are above 30?"
    "\tselect name from mast where height > 30"
)


MASTS = """
CREATE TABLE mast (name TEXT PRIMARY KEY, height REAL);
INSERT INTO mast VALUES ('fore', 28.5), ('main', 33);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file: Path = written(tmp_path / "Yard.sqlite", MASTS)
    return file


def write(folder: Path, *lines: str) -> Path:
    file = folder / "mine.tsv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


Read = Callable[..., Corpus]


@pytest.fixture
def read(tmp_path: Path, database: Path) -> Read:
    """Return a function that reads lines of examples on the database."""

    def read_lines(*lines: str) -> Corpus:
        return own.read(write(tmp_path, *lines), database)

    return read_lines


BLOCKS = {"yard": ["T"]}
"""The schema of the only database, as prompts show it."""


def test_a_row_gives_a_base_and_a_novel_example(read: Read, database: Path) -> None:
    """Both have the same query; only the novel one's prompt describes the word."""
    corpus = read(HEADER, ROW)
    base, novel = corpus.examples
    assert (base.form, novel.form) == ("base", "plausible")
    assert base.template == novel.template
    assert base.query == novel.query
    assert corpus.databases["yard"].path == database
    setting = Setting(prompt="desc", forms=("plausible",))
    base_doc, novel_doc = documents(corpus, setting, BLOCKS, {}).documents
    assert "refers to" not in base_doc["prompt"]
    assert "-- The word 'lofty' refers to a height above 30.\n" in novel_doc["prompt"]


def test_few_shot_without_support_is_refused(read: Read) -> None:
    """Without solved examples, it would be a direct prompt under another name."""
    shown = ROW.replace("which masts are", "name the masts that are")
    corpus = read(HEADER + "\tsupport\tform", f"{shown}\tyes\tforeign", f"{ROW}\t\tplausible")
    with pytest.raises(DataError, match=r"mine\.tsv:3: few-shot .*'tall' in the form plausible"):
        documents(corpus, Setting(prompt="fewshot"), BLOCKS, {})


def test_a_question_in_two_forms_is_asked_once_as_base(read: Read) -> None:
    """It is, though case, spaces and a semicolon differ; an equal query pairs no questions."""
    foreign = ROW.replace("lofty", "skalvun").replace(
        "which masts are above", "Which  masts are above"
    )
    other_row = ROW.replace("which masts are", "what is called")
    corpus = read(HEADER + "\tform", ROW, f"{foreign};\tForeign", other_row, f"{ROW}\tplausible")
    assert [example.id for example in corpus.examples] == [
        "tall/0/base",
        "tall/0/plausible",
        "tall/0/foreign",
        "tall/2/base",
        "tall/2/plausible",
        "tall/3/plausible",
    ]
    base_questions = [each.question for each in corpus.examples if each.form == "base"]
    assert base_questions == ["which masts are above 30?", "what is called above 30?"]
    assert len({example.query.rstrip(";") for example in corpus.examples}) == 1
    lines = [example.source_line[-2:] for example in corpus.examples]
    assert lines == [":2", ":2", ":3", ":4", ":4", ":5"]


def test_a_word_matches_in_any_case(read: Read) -> None:
    """Questions stay as written, and the first spelling is the word."""
    in_capitals = ROW.replace("\tlofty\t", "\tLofty\t")
    in_capitals = in_capitals.replace("which masts are lofty", "LOFTY masts")
    corpus = read(HEADER, ROW, in_capitals)
    novel_questions = [each.question for each in corpus.examples if each.form != "base"]
    assert novel_questions == ["which masts are lofty?", "LOFTY masts?"]
    assert corpus.interpretations["tall"].forms == {"plausible": "lofty"}


OLD = "old\tancient\tan age above 50\t\t\t"
TWO = "tall + old\t\t\twhich lofty masts are ancient?\twhich are both?\tselect name from mast"


def test_a_row_may_only_define_a_word(read: Read) -> None:
    """A combination may then use it, and describes both words."""
    corpus = read(HEADER, TWO, ROW, OLD)
    assert {example.interpretations for example in corpus.examples} == {("tall",)}
    assert [each.id for each in corpus.combinations] == ["tall+old/0/base", "tall+old/0/plausible"]
    assert corpus.interpretations["old"].meaning == "an age above 50"
    setting = Setting(subset="combinations", prompt="desc")
    prompts = [doc["prompt"] for doc in documents(corpus, setting, BLOCKS, {}).documents]
    assert [text.count("refers to") for text in prompts] == [0, 2]


TALK = """User1: Hello.

User2: Hello.

[definition]
User1: {word} masts are above 30.

User2: Good.
[/definition]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "the dialogue cannot be read"),
        (TALK.replace("[definition]", ""), "mark the turns that define the word"),
        (TALK + TALK, "mark the turns that define the word"),
        (TALK.replace("{word}", "lofty"), "does not name the word; write {word}"),
    ],
)
def test_a_wrong_dialogue_is_named(
    tmp_path: Path, read: Read, text: str | None, message: str
) -> None:
    """The error names the file, and says how to mark the definition and the word."""
    if text is not None:
        (tmp_path / "talk.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"talk\.txt: .*{message}"):
        read(HEADER + "\tdialogue", f"{ROW}\ttalk.txt")


def test_a_dialogue_needs_its_own_examples(read: Read) -> None:
    """The error names the subset to use."""
    with pytest.raises(OptionError, match="magnifico_subset is 'all'; use dialogues"):
        documents(read(HEADER, ROW), Setting(subset="all", prompt="dialogue"), BLOCKS, {})


def test_the_signature_sees_the_dialogue(tmp_path: Path, database: Path) -> None:
    """Another text of a dialogue has another checksum, and the same text the same."""
    file = write(tmp_path, HEADER + "\tdialogue", f"{ROW}\ttalk.txt")
    checksums = set()
    for text in (TALK, TALK.replace("Hello", "Hi"), TALK):
        (tmp_path / "talk.txt").write_text(text, encoding="utf-8")
        sourced = corpora.load_corpus("own", databases=str(database), examples=str(file))
        checksums.add(sourced.provenance.checksums["own dialogues"])
    assert len(checksums) == 2


@pytest.mark.parametrize("form", ["plausible", "foreign"])
def test_base_questions_are_those_of_the_wanted_forms(
    read: Read, form: Literal["plausible", "foreign"]
) -> None:
    """Otherwise, the base accuracy would be that of other questions."""
    foreign_row = ROW.replace("masts", "spars").replace("lofty", "skalvun")
    corpus = read(HEADER + "\tform", ROW, f"{foreign_row}\tforeign")
    examples = chosen(corpus, Setting(subset="all", forms=(form,)))
    assert [example.form for example in examples] == ["base", form]
    assert len({example.template for example in examples}) == 1


def test_several_databases_lie_in_a_folder(tmp_path: Path, database: Path) -> None:
    """A column names each row's; examples on a missing one are excluded."""
    file = write(tmp_path, HEADER + "\tdb_id", f"{ROW}\tyard", f"{ROW}\tdock")
    corpus = own.read(file, tmp_path)
    assert set(corpus.databases) == {"yard"}
    result = documents(corpus, Setting(), BLOCKS, {})
    assert {doc["db_id"] for doc in result.documents} == {"yard"}
    assert result.excluded == {"database_missing": ["tall/1/base", "tall/1/plausible"]}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER.replace("\tquery", ""), ROW], "column query: the key is missing"),
        ([HEADER + "\tnote", ROW + "\tx"], "column note: unknown key"),
        ([HEADER, ROW.replace("a height above 30", " ")], r"mine\.tsv:2: meaning is empty"),
        ([HEADER, ROW + "\textra"], r"mine\.tsv:2: column \(more cells than columns\)"),
        ([HEADER, ROW.replace("\tlofty\t", "\tproud\t")], "does not contain the word 'proud'"),
        ([HEADER, ROW, ROW.replace("above 30\t", "above 40\t", 1)], r":3: tall has another word"),
        ([HEADER + "\tform", ROW + "\tnonsense"], "form: Input should be .*got 'nonsense'"),
        ([HEADER + "\tsupport", ROW + "\tyes"], "no examples to ask"),
        ([HEADER, OLD], "no examples to ask"),
        ([HEADER, ROW, OLD.replace("an age above 50", "")], r":3: meaning is empty"),
        ([HEADER, ROW, TWO], r":3: no row gives 'old' a plausible word; add one with"),
        ([HEADER + "\tform", ROW, OLD + "\tforeign", TWO], r":4: no row gives 'old' a plausible"),
        ([HEADER, ROW, OLD, TWO.replace("ancient", "aged")], "does not contain the word 'ancient'"),
        ([HEADER, ROW, TWO.replace(" + old", "")], r":3: word is empty"),
        ([HEADER + "\tsupport", ROW, OLD, TWO + "\tyes"], r":4: a row with two words is neither"),
        ([HEADER, ROW, ROW.replace("> 30", "> 31")], r":3: the base question is that of .*:2, and"),
    ],
)
def test_mistakes_are_named(read: Read, lines: list[str], message: str) -> None:
    """The error names the line or the column, and what is wrong there."""
    with pytest.raises(DataError, match=message):
        read(*lines)


def test_missing_files_are_named(tmp_path: Path, database: Path) -> None:
    """The error has the option of the file, or the line that needs a database."""
    with pytest.raises(OptionError, match=r"magnifico_file=.*nowhere\.tsv"):
        own.read(tmp_path / "nowhere.tsv", database)
    with pytest.raises(OptionError, match=r"magnifico_databases=.*nowhere\.sqlite"):
        own.read(write(tmp_path, HEADER, ROW), tmp_path / "nowhere.sqlite")
    with pytest.raises(DataError, match=r"mine\.tsv:2: no database; add a column db_id"):
        own.read(write(tmp_path, HEADER, ROW), tmp_path)
