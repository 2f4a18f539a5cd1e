"""The authors' descriptions, read as data from a program that is not run."""

import re
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora, documents, wording
from lm_eval_ext.benchmarks.magnifico.records import NOVEL, PLACEHOLDER, Interpretation
from lm_eval_ext.errors import DataError

TALL = Interpretation("tall", "value", "m", dict.fromkeys(NOVEL, "x"))
CALM = Interpretation("calm", "phrase", "m", {"plausible": "at rest"})

PROGRAM = """raise SystemExit("this was run")

def get_setting_word(concept, setting):
    words = {
        'tall': {'plausible': 'lofty', 'nonsense': 'bro', 'adversarial': 'low'},
        'calm': {'plausible': ''},
    }
    return words[concept][setting]

def get_instruction(concept, setting):
    sentences = {
        'tall': 'concept_word is said of high masts. ',
        'calm': 'at rest is said of boats.',
        'other': 'concept_word is said of nothing here.',
    }
    text = sentences[concept]
    return text.replace('concept_word', get_setting_word(concept, setting))
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "mappings.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_sentences_and_words_are_read_and_nothing_runs(tmp_path: Path) -> None:
    found = wording.read(write(tmp_path, PROGRAM), [TALL, CALM])
    assert set(found) == {"tall", "calm"}
    assert found["tall"].sentence == "concept_word is said of high masts."
    assert found["tall"].words == {"plausible": "lofty", "foreign": "bro", "adversarial": "low"}
    assert (found["calm"].sentence, found["calm"].words) == ("at rest is said of boats.", {})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("'calm': 'at", "'clam': 'at", "get_instruction has no sentence of one line for calm"),
        ("'at rest is said of boats.'", "7", "has no sentence of one line for calm"),
        ("'at rest is said of boats.'", "'a\\nb'", "has no sentence of one line for calm"),
        ("'at rest is said of boats.'", "' '", "has no sentence of one line for calm"),
        ("'tall': {", "'small': {", "get_setting_word has no plausible word for tall"),
        ("'nonsense': 'bro'", "'foreign': 'bro'", "get_setting_word has no nonsense word for tall"),
        ("'bro'", "''", "get_setting_word has no nonsense word for tall"),
        ("{'plausible': 'lofty',", "['lofty'] or {", "get_setting_word is not made of plain texts"),
        ("'lofty'", "str(1)", "the dictionary of get_setting_word is not made of plain texts"),
        ("def get_instruction", "def instruction", "get_instruction with one dictionary, has 0"),
        ("    text = ", "    more = {}\n    text = ", "get_instruction with one dictionary, has 2"),
        ("def get_setting", "def 7get_setting", "cannot be read (invalid"),
        ("raise", "\0", "cannot be read (source code string cannot contain null bytes)"),
    ],
)
def test_another_shape_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PROGRAM
    file = write(tmp_path, PROGRAM.replace(old, new, 1))
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        wording.read(file, [TALL, CALM])
    text = str(caught.value)
    assert text.startswith(f"{file}: ")
    assert "data fetch magnifico_mappings" in text
    assert "\n" not in text


def test_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mappings\.py: cannot be read"):
        wording.read(tmp_path / "mappings.py", [TALL])


def test_a_deep_expression_is_one_line(tmp_path: Path) -> None:
    file = write(tmp_path, "x = " + "(" * 5000 + ")" * 5000)
    with pytest.raises(DataError, match=r"mappings\.py: cannot be read"):
        wording.read(file, [TALL])


@pytest.fixture
def real(shared_data: Path) -> Path:
    file = shared_data / "magnifico/mappings.py"
    if not file.is_file():
        pytest.skip("mappings.py is not among the shared data")
    return file


def test_the_real_file_describes_all_24(real: Path) -> None:
    known = corpora.interpretations()
    found = wording.read(real, known.values())
    assert list(found) == list(known)
    for name, one in known.items():
        phrase = one.category == documents.PHRASE
        assert (PLACEHOLDER in found[name].sentence) != phrase
        assert set(found[name].words) == (set() if phrase else set(NOVEL))


def test_where_their_list_differs_from_the_questions(real: Path) -> None:
    known = corpora.interpretations()
    found = wording.read(real, known.values())
    different = {
        (name, form)
        for name, one in known.items()
        for form, word in found[name].words.items()
        if word != one.forms[form]
    }
    assert different == {
        ("sum", "plausible"), ("sum", "adversarial"), *(("dept_science", form) for form in NOVEL),
    }  # fmt: skip
    # In their own wording, these two are described by another form of the word.
    assert found["sum"].words["adversarial"] in known["sum"].forms["adversarial"]


def test_our_own_descriptions_are_not_theirs(real: Path) -> None:
    text = real.read_text(encoding="utf-8")
    for file in Path(corpora.__file__).parent.rglob("*.*"):
        if file.suffix in (".py", ".yaml"):
            ours = file.read_text(encoding="utf-8")
            for sentence in re.findall(r"'([^'\n]*concept_word[^'\n]{12,})'", text):
                assert sentence not in ours
