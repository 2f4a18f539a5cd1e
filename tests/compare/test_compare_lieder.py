"""LIEDER's recorded runs: explicit against implicit novelty, as the paper compares them."""

import json
from pathlib import Path

import pytest
from support import legal
from support.asking import run_in
from support.made_runs import compared
from support.tex import compiled
from typer.testing import CliRunner, Result

from lm_eval_ext.cli.app import app
from lm_eval_ext.leaderboard.site import build
from lm_eval_ext.results.query import ScoreQuery

pytestmark = pytest.mark.slow


def test_explicit_against_implicit_novelty(recorded_lieder: Path) -> None:
    """Accuracy rises where the paper reports a rise; it has more models.

    The three comparisons with pos_pos_s depend on novelty.
    """
    metric = "direct/uniqueness+novelty"
    comparison = compared(
        recorded_lieder, between="lieder_diff,lieder_base", query=ScoreQuery((metric,))
    )
    pairs = {pair["model"]: pair for pair in comparison["pairs"]}
    assert set(pairs) == {"gpt2", "llama2_7B", "babbage-002"}
    for model, pair in pairs.items():
        explicit = run_in(recorded_lieder / "diff" / model, "lieder_diff").scores[metric].value
        implicit = run_in(recorded_lieder / "base" / model, "lieder_base").scores[metric].value
        assert explicit is not None
        assert implicit is not None
        assert pair["value"] == pytest.approx(explicit - implicit), model
        assert (pair["documents"], pair["clusters"], pair["cluster"]) == (48, 16, "item"), model
    assert pairs["llama2_7B"]["p_holm"] < 0.001
    assert pairs["llama2_7B"]["low"] > 0


def lieder_test(*words: str | Path) -> Result:
    """Run ``lm-eval-ext lieder test``."""
    return CliRunner().invoke(app, ["lieder", "test", *map(str, words)])


def test_the_papers_test_from_the_command_line(recorded_lieder: Path) -> None:
    """Experiments lie in folders of their own; runs with one display name are one model."""
    table = lieder_test(recorded_lieder)
    assert table.exit_code == 0, table.output
    assert "VERSION: explicit minus implicit novelty, affirmative_negation" in table.output
    assert "all models (3)" in table.output
    assert "linear mixed" in table.output
    content = json.loads(lieder_test(recorded_lieder, "--json").output)
    estimates = {}
    for row in content["tests"]:
        if row["effect"] == "VERSION":
            estimates[row["model"], row["test"]] = row
    assert estimates["llama2_7B", "sign-flip"]["estimate"] == 7 / 32
    assert estimates["all models", "sign-flip"]["pairs"] == 3 * 32
    assert content["family"] == "affirmative_negation"


def test_the_papers_test_shows_the_effects_that_there_are_tasks_for(recorded_lieder: Path) -> None:
    table = lieder_test(recorded_lieder / "base" / "gpt2").output
    assert "VERSION" not in table
    assert "DISTANCE" in table


def test_the_papers_test_names_missing_tasks_and_unknown_families(recorded_lieder: Path) -> None:
    missing = lieder_test(recorded_lieder / "two" / "gpt2").exception
    assert "no model in these results has lieder_diff and lieder_base; or " in str(missing)
    unknown = lieder_test(recorded_lieder, "--family", "plain_negated").exception
    assert "--family plain_negated is none of affirmative_negation" in str(unknown)


def test_no_interval_leaves_its_legal_range_anywhere(
    recorded_lieder: Path, tmp_path: Path, without_figures: None
) -> None:
    """All recorded runs: in results files, on the page, and in comparisons; all have a width."""
    metrics = 0
    for file in recorded_lieder.rglob("results_*"):
        _, values = json.loads(file.read_text())["results"].popitem()
        metrics += sum("," in name and "_stderr," not in name for name in values)
    assert metrics > 80
    assert legal.check_folder(recorded_lieder) == metrics, "each metric of each run"
    build([recorded_lieder], tmp_path, samples=0)
    assert legal.check_table((tmp_path / "leaderboard.csv").read_text()) == 3 * 3
    for experiment, metric in (("base", "direct"), ("diff", "relative"), ("two", "direct")):
        query = ScoreQuery((metric,), by="family,requirement")
        pairs = compared(recorded_lieder / experiment, query=query)["pairs"]
        assert legal.check_pairs(pairs) == len(pairs) > 40


def run(command: list[str]) -> str:
    """Return the output of a command that must succeed."""
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_table_of_models_is_no_pdf(recorded_lieder: Path, tmp_path: Path) -> None:
    file = tmp_path / "models.tex.pdf"
    command = ["leaderboard", str(recorded_lieder / "base"), "-o", str(file)]
    assert CliRunner().invoke(app, command).exit_code
    assert not file.exists()


def test_three_tables_for_a_paper(recorded_lieder: Path, tmp_path: Path) -> None:
    """Models by benchmarks; one with published values; two models and their difference."""
    file = tmp_path / "models.tex"
    experiments = [str(folder) for folder in recorded_lieder.iterdir()]
    run(["leaderboard", *experiments, "-o", str(file)])
    models = file.read_text()
    assert models.count(r"llama2\_7B") == models.count("textbf") == 1, "one model is the best"
    assert "lieder\\_base: Accuracy" in models, "the caption says what the metric is"
    assert models.count("\n% task:lieder_base|") == 1, "the signature, which is that of all three"

    published = run(
        ["compare", str(recorded_lieder / "base"), "--format", "latex",
         "--where", "family=affirmative_negation",
         "--metric", "direct", "--metric", "direct/uniqueness+novelty"]
    )  # fmt: skip
    assert "humans (published) & 0.938" in published
    assert published.count(r"\textbf") == 1, "on novelty no model is better than chance"

    two_models = [str(recorded_lieder / "two" / model) for model in ("llama2_7B", "gpt2")]
    difference = run(["compare", *two_models, "--format", "latex"])
    assert r"$+$0.204 & {[}$+$0.117, $+$0.292{]} & \textless{}0.001" in difference

    log = compiled(models + published + difference, tmp_path)
    assert "Overfull" not in log
