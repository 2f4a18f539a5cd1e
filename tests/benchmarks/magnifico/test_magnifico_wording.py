"""The authors' descriptions, read as data from a program that is not run."""

from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora, documents
from lm_eval_ext.benchmarks.magnifico.records import NOVEL, PLACEHOLDER
from lm_eval_ext.errors import DataError


@pytest.fixture
def real(shared_data: Path) -> Path:
    file = shared_data / "magnifico/mappings.py"
    if not file.is_file():
        pytest.skip("mappings.py is not among the shared data")
    return file


@pytest.fixture
def program(real: Path, tmp_path: Path) -> Path:
    """A copy of the authors' program that ends if it is run."""
    file = tmp_path / "mappings.py"
    file.write_text('raise SystemExit("this was run")\n' + real.read_text(encoding="utf-8"))
    return file


def test_the_program_is_read_without_being_run(program: Path, real: Path) -> None:
    assert corpora.descriptions_in(program) == corpora.descriptions_in(real)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def get_instruction", "def instruction"),
        ("def get_setting_word", "def 7get"),
        ("'maximum'", "'minimal'"),
        ("'maximum'", "str(1)"),
        ("raise", "\0"),
        ("raise", "x = " + "(" * 5000 + ")" * 5000 + "; raise"),
    ],
    ids=[
        "no function of sentences",
        "a syntax error",
        "another interpretation",
        "a call for a key",
        "a null character",
        "brackets too deep to parse",
    ],
)
def test_a_program_of_another_shape_is_one_line(program: Path, old: str, new: str) -> None:
    text = program.read_text(encoding="utf-8").replace('"maximum"', "'maximum'")
    assert old in text
    program.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=r"mappings\.py: cannot be read .*data fetch") as caught:
        corpora.descriptions_in(program)
    assert "\n" not in str(caught.value)


def test_the_real_file_describes_all_24(real: Path) -> None:
    """A description has a place for the new word, unless the interpretation is a phrase."""
    descriptions = corpora.descriptions_in(real)
    interpretations = corpora.interpretations()
    assert list(descriptions) == list(interpretations)
    for name, interpretation in interpretations.items():
        description = descriptions[name]
        if interpretation.category == documents.PHRASE:
            assert PLACEHOLDER not in description.sentence, name
            assert not description.words, name
        else:
            assert PLACEHOLDER in description.sentence, name
            assert set(description.words) == set(NOVEL), name


def test_the_real_file_has_the_words_of_the_questions_but_for_two_interpretations(
    real: Path,
) -> None:
    """The authors describe another form of the word for sum."""
    descriptions = corpora.descriptions_in(real)
    interpretations = corpora.interpretations()
    different = set()
    for name, interpretation in interpretations.items():
        for form, word in descriptions[name].words.items():
            if word != interpretation.forms[form]:
                different.add((name, form))
    expected = {("sum", "plausible"), ("sum", "adversarial")}
    expected.update(("dept_science", form) for form in NOVEL)
    assert different == expected
    described = descriptions["sum"].words["adversarial"]
    assert described in interpretations["sum"].forms["adversarial"]
