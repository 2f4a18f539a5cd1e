"""How many items would tell two models apart: from runs whose spread is known, and bad input."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.cli import main
from lm_eval_ext.compare.comparison import Settings, compare
from lm_eval_ext.compare.power import needed
from lm_eval_ext.errors import DataError, LmEvalExtError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.stats.power import clusters_needed


def test_pairs_of_a_pilot(runs: Path) -> None:
    """The spread is that of compare's differences: standard error times the root of clusters."""
    asked = {"task": "lieder_mini", "difference": 0.05}
    two = needed([runs / "good", runs / "poor"], **asked)
    models = read_models([runs / "good", runs / "poor"])
    (pair,) = compare(models, ["lieder_mini"], Settings()).pairs
    stderr = pair["stderr"]
    assert two.metric == "direct"
    assert two.spread == pytest.approx(stderr * math.sqrt(16))
    assert two.clusters == clusters_needed(0.05, two.spread**2)
    assert two.clusters and two.documents == 3 * two.clusters
    assert (two.pilot_clusters, two.unit) == (16, "item")
    assert two.pilot_shows is not None
    asked_again = {"task": "lieder_mini", "difference": two.pilot_shows}
    again = needed([runs / "good", runs / "poor"], **asked_again)
    assert again.clusters in (16, 17), "what the pilot shows needs as many as it has"
    three = needed([runs], **asked)
    assert three.clusters and "3 models" in three.source
    more = needed([runs], **asked, models=7)
    assert more.clusters and more.clusters > three.clusters


def test_the_spread_of_several_models_is_the_mean_over_all_pairs(runs: Path) -> None:
    """Of variances: neither their sum nor that of one pair; documents are those of a cluster."""
    pairs = compare(read_models([runs]), ["lieder_mini"], Settings()).pairs
    variances = [pair["stderr"] ** 2 for pair in pairs]
    assert len(set(variances)) == 3
    three = needed([runs], task="lieder_mini", difference=0.05)
    assert three.spread**2 == pytest.approx(16 * sum(variances) / 3)
    assert three.clusters == clusters_needed(0.05, three.spread**2)
    assert three.documents == 3 * (three.clusters or 0)


@pytest.mark.parametrize(
    ("task", "metric"),
    [("magnifico_mini", "relative_performance"), ("cogs_mini_gen", "")],
)
def test_metrics_of_all_kinds(runs: Path, task: str, metric: str) -> None:
    difference = 5 if metric else 0.05
    found = needed([runs / "good", runs / "same"], task=task, difference=difference, metric=metric)
    assert found.clusters and found.clusters >= 6


def test_one_model(runs: Path) -> None:
    asked = {"task": "lieder_mini", "difference": 0.05}
    alone = needed([runs / "good"], **asked)
    alike = needed([runs / "good"], **asked, correlation=0.5)
    (row,) = [
        row for row in compare(read_models([runs]), ["lieder_mini"], Settings()).figures
        if row["system"] == "good"
    ]  # fmt: skip
    assert alone.spread == pytest.approx(row["stderr"] * math.sqrt(2 * 16)), "of two such models"
    assert alike.spread == pytest.approx(alone.spread / math.sqrt(2))
    assert "one model, good" in alone.source


def test_stated_rates() -> None:
    found = needed([], task="lieder_base", difference=0.05, rate=0.8, icc=0.2, per_cluster=3)
    assert (found.clusters, found.documents, found.unit) == (469, 1407, "item")
    assert needed([], task="mmlu", difference=0.05, rate=0.8, icc=0.0).unit == "document"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"difference": 0}, "--difference: Input should be greater than 0, got 0"),
    ({"difference": math.nan}, "--difference: Input should be a finite number"),
    ({"power": 1}, "--power: Input should be less than 1, got 1"),
    ({"power": 0.01}, "--power: Input should be greater than or equal to 0.5"),
    ({"alpha": 0}, "--alpha: Input should be greater than 0"),
    ({"models": 1}, "--models: Input should be greater than or equal to 2"),
    ({"icc": 2}, "--icc: Input should be less than or equal to 1"),
    ({"per_cluster": 0}, "--per-cluster: Input should be greater than or equal to 1"),
    ({"correlation": 1}, "--correlation: Input should be less than 1"),
    ({"icc": None}, "--rate and --icc belong together"),
    ({"rate": None, "icc": None}, "give results of a pilot run; or --rate, --icc"),
    ({"rate": 0.99}, "0.965 and 1.015 are not both from 0 to 1"),
    ({"task": "lieder_bas"}, "no task 'lieder_bas' of ours; similar are lieder_base"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    right = {"task": "lieder_base", "difference": 0.05, "rate": 0.8, "icc": 0.2}
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([], **{**right, **options})


def test_bad_pilots(runs: Path, tmp_path: Path) -> None:
    for options, message in (
        ({"task": "lieder_two"}, "no results of lieder_two; there are lieder_mini"),
        ({"metric": "nope"}, "lieder_mini has no metric nope; it has"),
        ({"difference": 5}, "--difference 5 is not legal; direct goes from 0 to 1"),
        ({"metric": "undefined"}, "lieder_mini: nothing varies"),
        ({"rate": 0.5, "icc": 0}, "give results of a pilot run; or --rate"),
        ({"per_cluster": 3}, "give results of a pilot run; or --rate"),
        ({"correlation": 0.3}, "--correlation is for a pilot of one"),
    ):
        with pytest.raises(LmEvalExtError, match=re.escape(message)):
            needed([runs], **{"task": "lieder_mini", "difference": 0.1, **options})
    with pytest.raises(DataError, match=r"signatures differ in version \(1 / 9\)"):
        other = tmp_path / "other"
        other.mkdir()
        for file in (runs / "good").glob("*"):
            text = re.sub('"version": "1.[0-9]+"', '"version": "9.1"', file.read_text())
            (other / file.name).write_text(text.replace('"good"', '"other"'))
        needed([runs / "good", other], task="lieder_mini", difference=0.1)


def test_the_command(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["lm-eval-ext", "power", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    pilot = ["lieder_mini", str(runs / "good"), str(runs / "poor"), "--difference", "0.05"]
    lines = run(*pilot).splitlines()
    assert lines[0] == "lieder_mini, direct: two models that differ by 0.05"
    assert re.fullmatch(
        r"needed: \d+ \(item\), \d+ documents; power 0.8, level 0.05, 2 models", lines[1]
    )
    assert lines[3].startswith("pilot: 16 (item), shows differences from ")
    found = json.loads(run(*pilot, "--json"))
    assert f"needed: {found['clusters']} " in lines[1]
