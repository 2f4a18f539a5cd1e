"""A model's folder is whole or not there, and nobody else's folder is touched."""

from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_ext.demo_model import checkpoint
from lm_eval_ext.demo_model.checkpoint import Settings, TrainingReport
from lm_eval_ext.errors import OptionError

SETTINGS = Settings(seed=0, steps=2, corpus_sha256="0")
REPORT = TrainingReport(2, 1.5, 3.0, 4.0, 100)


def write(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")


def publish(out: Path) -> TrainingReport:
    return checkpoint.publish(out, SETTINGS, REPORT, {"torch": "2"}, write)


def test_what_is_published_is_found(tmp_path: Path) -> None:
    out = tmp_path / "new" / "model"
    assert checkpoint.find(out, SETTINGS) is None
    assert publish(out) == REPORT
    assert checkpoint.find(out, SETTINGS) == replace(REPORT, reused=True)
    assert [p.name for p in out.parent.iterdir()] == ["model"]


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    assert checkpoint.find(tmp_path, SETTINGS) is None
    out = tmp_path / "model"
    out.mkdir()
    publish(out)
    assert checkpoint.find(out, SETTINGS)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda p: p.write_bytes(b"weigh")])
def test_a_damaged_model_is_refused(tmp_path: Path, name: str, damage: object) -> None:
    publish(tmp_path / "m")
    assert callable(damage)
    damage(tmp_path / "m" / name)
    with pytest.raises(OptionError, match="damaged"):
        checkpoint.find(tmp_path / "m", SETTINGS)


@pytest.mark.parametrize("change", [{"seed": 1}, {"steps": 3}, {"corpus_sha256": "1"}])
def test_a_model_of_other_settings_is_refused(tmp_path: Path, change: dict[str, int]) -> None:
    publish(tmp_path / "m")
    with pytest.raises(OptionError, match=r"other settings.*seed 0, 2 steps"):
        checkpoint.find(tmp_path / "m", SETTINGS.model_copy(update=change))


@pytest.mark.parametrize("record", [None, "{}", "not json", '{"settings": 1}'])
def test_a_foreign_folder_is_refused_and_stays(tmp_path: Path, record: str | None) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    if record is not None:
        (tmp_path / checkpoint.RECORD_FILE).write_text(record)
    with pytest.raises(OptionError, match="no demonstration model") as error:
        checkpoint.find(tmp_path, SETTINGS)
    assert "\n" not in str(error.value)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="not a folder"):
        checkpoint.find(tmp_path / "file", SETTINGS)
    with pytest.raises(OptionError, match="not a folder"):
        checkpoint.check_destination(tmp_path / "file" / "model")


def test_a_folder_that_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.check_destination(tmp_path / "a" / "b")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint.tempfile, "mkdtemp", refuse)
    with pytest.raises(OptionError, match=r"cannot write a model.*Permission denied"):
        checkpoint.check_destination(tmp_path / "a" / "b")


@pytest.mark.parametrize(
    ("error", "seen"),
    [(OSError("disk full"), OptionError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_failed_save_leaves_nothing(
    tmp_path: Path, error: BaseException, seen: type[BaseException]
) -> None:
    def fail(folder: Path) -> None:
        write(folder)
        raise error

    with pytest.raises(seen):
        checkpoint.publish(tmp_path / "m", SETTINGS, REPORT, {}, fail)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_comes_in_between_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "m"

    def write_while_somebody_else_does(folder: Path) -> None:
        write(folder)
        out.mkdir()
        (out / "thesis.txt").write_text("years of work")

    with pytest.raises(OptionError, match="no demonstration model"):
        checkpoint.publish(out, SETTINGS, REPORT, {}, write_while_somebody_else_does)
    assert [p.name for p in tmp_path.rglob("*")] == ["m", "thesis.txt"]


def test_of_two_runs_for_one_folder_the_first_stays(tmp_path: Path) -> None:
    out = tmp_path / "m"
    first = replace(REPORT, seconds=0.5)

    def write_second(folder: Path) -> None:
        write(folder)
        checkpoint.publish(out, SETTINGS, first, {}, write)

    second = checkpoint.publish(out, SETTINGS, REPORT, {}, write_second)
    assert second == replace(first, reused=True)
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
