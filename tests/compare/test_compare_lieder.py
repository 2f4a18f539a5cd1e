"""LIEDER's recorded runs: explicit against implicit novelty, as the paper compares them."""

import json
from pathlib import Path

import pytest
from made_runs import compared
from support import legal
from support.asking import run_in
from support.tex import compiled
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.leaderboard.site import build
from lm_eval_ext.results.query import ScoreQuery

pytestmark = pytest.mark.slow


def test_explicit_against_implicit_novelty(recorded_lieder: Path) -> None:
    """A rise where the paper reports one.

    The three comparisons with pos_pos_s hang on novelty. The paper has more models.
    """
    metric = "direct/uniqueness+novelty"
    found = compared(
        recorded_lieder, between="lieder_diff,lieder_base", asked=ScoreQuery((metric,))
    )
    rows = {row["model"]: row for row in found["pairs"]}
    assert set(rows) == {"gpt2", "llama2_7B", "babbage-002"}
    for model, row in rows.items():
        diff, base = (
            run_in(recorded_lieder / e / model, f"lieder_{e}").scores[metric].value or 0
            for e in ("diff", "base")
        )
        assert row["value"] == pytest.approx(diff - base)
    assert rows["llama2_7B"]["p_holm"] < 0.001
    assert rows["llama2_7B"]["low"] > 0
    assert {(row["documents"], row["clusters"], row["cluster"]) for row in rows.values()} == {
        (48, 16, "item")
    }


def test_the_papers_test_from_the_command_line(recorded_lieder: Path) -> None:
    """Experiments lie in folders of their own; what has one display name is one model."""
    runner = CliRunner()
    folder = str(recorded_lieder)
    shown = runner.invoke(app, ["lieder", "test", folder])
    assert shown.exit_code == 0, shown.output
    assert "VERSION: explicit minus implicit novelty, affirmative_negation" in shown.output
    assert "all models (3)" in shown.output and "linear mixed" in shown.output
    told = runner.invoke(app, ["lieder", "test", folder, "--json"])
    found = json.loads(told.output)
    of_version = [row for row in found["tests"] if row["effect"] == "VERSION"]
    rows = {(row["model"], row["test"]): row for row in of_version}
    assert rows["llama2_7B", "sign-flip"]["estimate"] == 7 / 32
    assert rows["all models", "sign-flip"]["pairs"] == 3 * 32
    assert found["family"] == "affirmative_negation"
    one = runner.invoke(app, ["lieder", "test", str(recorded_lieder / "base" / "gpt2")])
    assert "VERSION" not in one.output and "DISTANCE" in one.output, "what there are tasks for"
    none = runner.invoke(app, ["lieder", "test", str(recorded_lieder / "two" / "gpt2")])
    assert "no model in these results has lieder_diff and lieder_base; or " in str(none.exception)
    other = runner.invoke(app, ["lieder", "test", folder, "--family", "plain_negated"])
    assert "--family plain_negated is none of affirmative_negation" in str(other.exception)


def test_no_interval_leaves_its_legal_range_anywhere(
    recorded_lieder: Path, tmp_path: Path, without_figures: None
) -> None:
    """All recorded runs: in results files, on the page, and in comparisons; all have a width."""
    count = legal.check_folder(recorded_lieder)
    files = [json.loads(file.read_text())["results"] for file in recorded_lieder.rglob("results_*")]
    values = [name for one in files for name in one.popitem()[1] if "," in name]
    assert count == sum("_stderr," not in name for name in values) > 80, "each metric of each run"
    build([recorded_lieder], tmp_path, samples=0)
    assert legal.check_table((tmp_path / "leaderboard.csv").read_text()) == 3 * 3
    for experiment, metric in (("base", "direct"), ("diff", "relative"), ("two", "direct")):
        asked = ScoreQuery((metric,), by="family,requirement")
        pairs = compared(recorded_lieder / experiment, asked=asked)["pairs"]
        assert legal.check_pairs(pairs) == len(pairs) > 40


def test_three_tables_for_a_paper(recorded_lieder: Path, tmp_path: Path) -> None:
    """Models by benchmarks; one with published values; two models and their difference."""
    part = "family=affirmative_negation"
    file = tmp_path / "models.tex"
    commands = (
        ["leaderboard", *map(str, recorded_lieder.iterdir()), "-o", str(file)],
        ["compare", str(recorded_lieder / "base"), "--format", "latex", "--where", part,
         "--metric", "direct", "--metric", "direct/uniqueness+novelty"],
        ["compare", *(str(recorded_lieder / "two" / model) for model in ("llama2_7B", "gpt2")),
         "--format", "latex"],
    )  # fmt: skip
    tables = [CliRunner().invoke(app, command) for command in commands]
    assert [done.exit_code for done in tables] == [0, 0, 0]
    one, two, three = (file.read_text(), *(done.stdout for done in tables[1:]))
    assert one.count(r"llama2\_7B") == one.count("textbf") == 1, "one model is the best"
    assert "lieder\\_base: Accuracy" in one, "the caption says what the metric is"
    assert one.count("\n% task:lieder_base|") == 1, "the signature, which is that of all three"
    assert CliRunner().invoke(app, [*commands[0][:-1], f"{file}.pdf"]).exit_code
    assert not file.with_suffix(".tex.pdf").exists()
    assert "humans (published) & 0.938" in two
    assert two.count(r"\textbf") == 1, "on novelty no model is better than chance"
    assert r"$+$0.204 & {[}$+$0.117, $+$0.292{]} & \textless{}0.001" in three
    log = compiled("".join((one, two, three)), tmp_path)
    assert "Overfull" not in log
