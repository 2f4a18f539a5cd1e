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


def test_nothing_runs(program: Path, real: Path) -> None:
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
)
def test_another_shape_is_one_line(program: Path, old: str, new: str) -> None:
    text = program.read_text(encoding="utf-8").replace('"maximum"', "'maximum'")
    assert old in text
    program.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=r"mappings\.py: cannot be read .*data fetch") as caught:
        corpora.descriptions_in(program)
    assert "\n" not in str(caught.value)


def test_the_real_file_describes_all_24(real: Path) -> None:
    known = corpora.interpretations()
    found = corpora.descriptions_in(real)
    assert list(found) == list(known)
    for name, one in known.items():
        phrase = one.category == documents.PHRASE
        assert (PLACEHOLDER in found[name].sentence) != phrase
        assert set(found[name].words) == (set() if phrase else set(NOVEL))
    # Where their list differs from the questions:
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
