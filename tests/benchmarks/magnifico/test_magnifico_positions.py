"""``lm-eval-ext magnifico positions``: made-up runs whose figures are known by hand."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lm_eval_ext.benchmarks.magnifico import positions
from lm_eval_ext.cli.magnifico import app
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.files import find

TASKS = {"end": "magnifico_desc", "start": "magnifico_desc_start", "mid": "magnifico_desc_mid"}
FORMS = ("base", "plausible", "foreign")


def write(
    folder: Path,
    position: str,
    right: Callable[[str, int], bool],
    *,
    count: int = 10,
    changes: Mapping[str, str] | None = None,
    date: str = "2026-01-02T03-04-05.000001",
) -> None:
    """Writes a run of one interpretation; ``right`` says which of a form's answers are."""
    folder.mkdir(parents=True, exist_ok=True)
    task = TASKS[position]
    signature = {
        "task": task, "prompt": "desc", "position": position, "layout": "released", "sha256": "x",
        **(changes or {}),
    }  # fmt: skip
    results = {
        "results": {task: {"populated/relative_performance,query": 1.0}},
        "configs": {task: {"metadata": {"signature": signature}}},
        "versions": {task: "2.0"},
        "n-shot": {task: 0},
        "n-samples": {task: {"original": 30, "effective": 30}},
        "config": {"model": "hf", "model_args": {"pretrained": "m"}},
        "model_name": "m",
    }
    (folder / f"results_{date}.json").write_text(json.dumps(results), encoding="utf-8")
    metrics = [f"{database}/relative_performance" for database in ("populated", "original")]
    with (folder / f"samples_{task}_{date}.jsonl").open("w", encoding="utf-8") as out:
        for number, (form, n) in enumerate((f, n) for f in FORMS for n in range(count)):
            doc = {
                "id": f"tall/{n}/{form}", "interpretation": "tall", "form": form,
                "db_id": f"Yard{n % 7}",
            }  # fmt: skip
            row = {
                "doc_id": number, "doc": doc, "target": "", "filter": "query", "resps": [[""]],
                "arguments": {"gen_args_0": {"arg_0": position, "arg_1": {}}},
                "filtered_resps": [""], "metrics": metrics, "doc_hash": f"d{number}",
                "prompt_hash": f"{position}{number}", "target_hash": f"t{number}",
                **dict.fromkeys(metrics, float(right(form, n))),
            }  # fmt: skip
            out.write(json.dumps(row) + "\n")


def first(plausible: int, foreign: int, base: int = 8) -> Callable[[str, int], bool]:
    sizes = {"base": base, "plausible": plausible, "foreign": foreign}
    return lambda form, n: n < sizes[form]


def found(rows: list[positions.Row], position: str, form: str) -> positions.Row:
    (row,) = (r for r in rows if (r.position, r.form, r.database) == (position, form, "populated"))
    return row


def test_a_position_is_relative_to_the_end(tmp_path: Path) -> None:
    write(tmp_path / "a", "end", first(4, 8))
    write(tmp_path / "b", "start", first(2, 6))
    write(tmp_path / "c", "mid", first(8, 8))
    rows = positions.compare(tmp_path)
    assert len(rows) == 2 * 2 * 3
    start = found(rows, "start", "plausible")
    assert (start.here, start.end, start.relative) == (25, 50, 50)
    assert found(rows, "start", "foreign").relative == pytest.approx(75)
    # In total: relative performances of (25 + 75) / 2 and (50 + 100) / 2.
    assert found(rows, "start", "all").relative == pytest.approx(100 * 50 / 75)
    # More than at the end is shown as such.
    assert found(rows, "mid", "plausible").relative == 200
    assert start.interval is not None
    assert 0 <= start.interval.low <= 50 <= start.interval.high


def test_a_figure_has_the_same_values_by_model(tmp_path: Path) -> None:
    write(tmp_path / "a", "end", first(4, 8))
    write(tmp_path / "b", "start", first(2, 6))
    (row,) = (
        r for r in positions.compare(tmp_path) if (r.database, r.form) == ("populated", "all")
    )
    scores = positions.of_models({"m": find(tmp_path), "without": find(tmp_path / "a")})
    assert {key: score.value for key, score in scores.items()} == {
        ("m", "desc", "", "start"): row.relative,
        ("m", "desc", "", "end"): 100,
    }
    assert row.interval is not None
    assert scores["m", "desc", "", "start"].interval == (row.interval.low, row.interval.high)
    write(tmp_path / "c", "mid", first(8, 8), count=9)
    assert len(positions.of_models({"m": find(tmp_path)})) == 2  # other examples than the end


def test_the_same_answers_are_100_and_have_no_interval(tmp_path: Path) -> None:
    write(tmp_path / "a", "end", first(4, 8))
    write(tmp_path / "b", "mid", first(4, 8))
    for row in positions.compare(tmp_path):
        assert row.relative == 100
        assert row.interval is None


def test_an_end_of_zero_has_no_ratio(tmp_path: Path) -> None:
    write(tmp_path / "a", "end", first(0, 0))
    write(tmp_path / "b", "mid", first(1, 1))
    assert {row.relative for row in positions.compare(tmp_path)} == {None}
    assert "N/A (12.50 / 0.00)" in positions.as_text(positions.compare(tmp_path))


@pytest.mark.parametrize(
    "changes", [{"layout": "figure"}, {"forms": "plausible"}, {"seed": "7"}, {"sha256": "y"}]
)
def test_runs_that_differ_in_more_are_not_compared(tmp_path: Path, changes: dict[str, str]) -> None:
    write(tmp_path / "a", "end", first(4, 8))
    write(tmp_path / "b", "start", first(4, 8), changes=changes)
    with pytest.raises(OptionError, match="no model has a run with the description at the end"):
        positions.compare(tmp_path)


def test_different_examples_are_one_line(tmp_path: Path) -> None:
    write(tmp_path / "a", "end", first(4, 8))
    write(tmp_path / "b", "start", first(4, 8), count=9)
    with pytest.raises(DataError, match="have different examples") as caught:
        positions.compare(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_command_prints_a_line_for_each(tmp_path: Path) -> None:
    write(tmp_path / "a", "end", first(4, 8))
    write(tmp_path / "b", "start", first(2, 6))
    printed = CliRunner().invoke(app, ["positions", str(tmp_path)])
    assert printed.exit_code == 0
    lines = printed.stdout.splitlines()
    assert lines[0] == "m: magnifico_desc, relative to the end"
    assert len(lines) == 7
    assert "start populated plausible   50.00 [" in printed.stdout
    assert "(25.00 / 50.00)" in printed.stdout
    as_json: list[dict[str, Any]] = json.loads(
        CliRunner().invoke(app, ["positions", str(tmp_path), "--json"]).stdout
    )
    assert len(as_json) == 6
    assert as_json[1]["relative"] == pytest.approx(75)
