"""What is missing in results is said in one line with the remedy, and changes no other number."""

import json
from pathlib import Path

import pytest
from support.asking import run_in
from support.results_files import answered_rows, write_run

from lm_eval_ext.compare.command import run as compare
from lm_eval_ext.errors import DataError
from lm_eval_ext.leaderboard.site import build
from lm_eval_ext.results.grid import text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.overview import NO_SAMPLES, overview
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.show import tables
from lm_eval_ext.results.table import rows

TASK = "cogs_mini_gen"


def write(folder: Path, name: str, right: int = 30) -> Path:
    """Write results of one model on forty documents; return the results file."""
    samples = [{**row, "facets": {"type": "t"}} for row in answered_rows(40, right)]
    return write_run(folder / name, name, TASK, samples)


def samples_of(file: Path) -> Path:
    """The samples beside a results file."""
    (samples,) = file.parent.glob("samples_*")
    return samples


def cut_in_half(samples: Path) -> None:
    """Leave the first half of the lines."""
    lines = samples.read_text().splitlines(keepends=True)
    samples.write_text("".join(lines[: len(lines) // 2]))


def drop_rows(samples: Path) -> None:
    """Leave lm-eval's own keys only."""
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    for line in lines:
        line["metrics"] = ["exact_match"]
        line["exact_match"] = 1.0
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))


def cut_a_line(samples: Path) -> None:
    """End in the middle of a line, as a writer that fails does."""
    content = samples.read_text()
    samples.write_text(content[: len(content) - 30])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(
            cut_in_half, "has samples of 20 of the 40 documents .* run again", id="too few"
        ),
        pytest.param(cut_a_line, "not JSON .* if the file is cut off here, run again", id="cut"),
        pytest.param(drop_rows, "no rows of scores, .* run again", id="without rows"),
        pytest.param(Path.unlink, "with --log_samples", id="none"),
    ],
)
def test_damaged_samples_are_never_scored_as_the_whole(
    tmp_path: Path, damage: object, message: str
) -> None:
    """Half a file gives no value under "40 documents", and the other models still show."""
    assert callable(damage)
    damage(samples_of(write(tmp_path, "a")))
    write(tmp_path, "b", 20)
    write(tmp_path, "c", 10)
    with pytest.raises(DataError, match=message):
        rows(run_in(tmp_path / "a", TASK))
    models = read_models([tmp_path])
    shown = text(tables(models, ScoreQuery(by="type"), [TASK]))
    assert "0.500" in shown
    assert "0.250" in shown
    assert "0.750" not in shown
    scores = overview(models).set_index("model")
    assert list(scores["value"]) == [0.75, 0.5, 0.25], "the values of the results files stay"
    assert list(scores["standing"]) == ["untested", "best", "beaten"]
    assert scores["untested"]["a"] == NO_SAMPLES


def test_responses_without_scores_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Results of ``--predict_only`` print no 999.000, and other models keep their cells."""
    file = write(tmp_path, "a")
    content = json.loads(file.read_text())
    content["results"] = {TASK: {"bypass,none": 999, "bypass_stderr,none": "N/A"}}
    file.write_text(json.dumps(content))
    write(tmp_path, "b", 30)
    write(tmp_path, "c", 5)
    models = read_models([tmp_path])
    assert [model.label for model in models] == ["b", "c"]
    assert "left out: a on cogs_mini_gen: responses without scores (--predict_only)" in caplog.text
    assert list(overview(models)["standing"]) == ["best", "beaten"]
    with pytest.raises(DataError, match="have no scores: they are of --predict_only"):
        read_models([tmp_path / "a"])


def test_two_versions_in_one_table_have_a_note(tmp_path: Path) -> None:
    """Scores of two versions of a task are not comparable."""
    for name, version in (("a", "1.0"), ("b", "2.1"), ("c", "2.0")):
        file = write(tmp_path, name)
        content = json.loads(file.read_text())
        content["configs"][TASK]["metadata"]["signature"]["version"] = version
        file.write_text(json.dumps(content))
    shown = text(tables(read_models([tmp_path]), ScoreQuery(), [TASK]), 200)
    assert "versions 1.x of a and 2.x of b, c are not comparable; run the older again" in shown
    same = text(tables(read_models([tmp_path / "b", tmp_path / "c"]), ScoreQuery(), [TASK]))
    assert "comparable" not in same


def test_samples_missing_for_several_tasks_are_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The message names all tasks once, instead of the path of each file."""
    for day, task in enumerate((TASK, "cogs_mini_id", "slog_mini"), start=1):
        for name in "ab":
            write_run(tmp_path / name, name, task, answered_rows(40, 20), date=f"2026-01-0{day}")
    for samples in (tmp_path / "a").glob("samples_*"):
        samples.unlink()
    missing = r"a \(cogs_mini_gen, cogs_mini_id, slog_mini\)"
    with pytest.raises(DataError, match=f"^{missing}: no samples beside the results; run again"):
        compare([tmp_path], ScoreQuery(), tasks="*")
    build([tmp_path], tmp_path / "site")
    lines = [record.message for record in caplog.records if "not shown" in record.message]
    assert len(lines) == 1
    assert "3 " not in lines[0]


def test_models_without_samples_are_one_line(tmp_path: Path) -> None:
    for name in "abc":
        write_run(tmp_path / name, name, TASK, answered_rows(40, 20))
    for samples in tmp_path.rglob("samples_*"):
        samples.unlink()
    with pytest.raises(DataError) as caught:
        compare([tmp_path], ScoreQuery(), tasks=TASK)
    message = str(caught.value)
    assert message.startswith(f"a, b, c ({TASK}): no samples beside the results")
    assert message.count("no samples") == 1
