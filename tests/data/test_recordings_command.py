"""``lm-eval-ext data recorded``: what it refuses, in one line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lm_eval_ext.cli.data import app
from lm_eval_ext.data.recordings import RecordedSystem, Recordings, write
from lm_eval_ext.errors import LmEvalExtError, OptionError


@pytest.mark.parametrize(
    ("benchmark", "problem"),
    [
        ("leider", "no recordings of 'leider'; did you mean lieder?"),
        ("cogs", "no recordings of 'cogs'; use discourse_entities, lieder, magnifico"),
    ],
)
def test_a_benchmark_without_recordings_is_refused(
    tmp_path: Path, benchmark: str, problem: str
) -> None:
    """The line has the legal names, or the nearest one."""
    result = CliRunner().invoke(app, ["recorded", benchmark, "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, OptionError)
    assert str(result.exception) == problem
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The line names the folder."""
    (tmp_path / "out").write_text("")
    recordings = Recordings([RecordedSystem("tiny", [])], ["lieder_base"])
    with pytest.raises(LmEvalExtError, match=r"out: cannot be written \(") as caught:
        write(recordings, tmp_path / "out")
    assert str(caught.value).isprintable()
