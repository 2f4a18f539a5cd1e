"""How many items would tell two models apart: from runs whose spread is known, and bad input."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.cli import main
from lm_eval_ext.compare.comparison import Settings, compare
from lm_eval_ext.compare.power import Asked, needed
from lm_eval_ext.errors import DataError, LmEvalExtError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.stats.power import clusters_needed


def test_pairs_of_a_pilot(runs: Path) -> None:
    """The spread is that of compare's differences: standard error times the root of clusters."""
    asked = Asked("lieder_mini", 0.05)
    two = needed(asked, [runs / "good", runs / "poor"])
    models = read_models([runs / "good", runs / "poor"])
    (table,) = compare(models, ["lieder_mini"], Settings()).tables
    stderr = table.pairs[0].difference.stderr
    assert stderr is not None
    assert two.metric == "direct"
    assert two.spread == pytest.approx(stderr * math.sqrt(16))
    assert two.clusters == clusters_needed(0.05, two.spread**2)
    assert two.clusters and two.documents == 3 * two.clusters
    assert (two.pilot_clusters, two.unit) == (16, "item")
    assert two.pilot_shows is not None
    again = needed(Asked("lieder_mini", two.pilot_shows), [runs / "good", runs / "poor"])
    assert again.clusters in (16, 17), "what the pilot shows needs as many as it has"
    three = needed(asked, [runs])
    assert three.clusters and "3 models" in three.source
    more = needed(Asked("lieder_mini", 0.05, models=7), [runs])
    assert more.clusters and more.clusters > three.clusters


def test_the_spread_of_several_models_is_the_mean_over_all_pairs(runs: Path) -> None:
    """Of variances: neither their sum nor that of one pair; documents are those of a cluster."""
    (table,) = compare(read_models([runs]), ["lieder_mini"], Settings()).tables
    variances = [(pair.difference.stderr or 0) ** 2 for pair in table.pairs]
    assert len(set(variances)) == 3
    three = needed(Asked("lieder_mini", 0.05), [runs])
    assert three.spread**2 == pytest.approx(16 * sum(variances) / 3)
    assert three.clusters == clusters_needed(0.05, three.spread**2)
    assert three.documents == 3 * (three.clusters or 0)


@pytest.mark.parametrize(
    ("task", "metric"),
    [("magnifico_mini", "relative_performance"), ("cogs_mini_gen", "")],
)
def test_metrics_of_all_kinds(runs: Path, task: str, metric: str) -> None:
    difference = 5 if metric else 0.05
    found = needed(Asked(task, difference, metric), [runs / "good", runs / "same"])
    assert found.clusters and found.clusters >= 6


def test_one_model(runs: Path) -> None:
    alone = needed(Asked("lieder_mini", 0.05), [runs / "good"])
    alike = needed(Asked("lieder_mini", 0.05, correlation=0.5), [runs / "good"])
    assert alike.spread == pytest.approx(alone.spread / math.sqrt(2))
    assert "one model, good" in alone.source


def test_stated_rates() -> None:
    found = needed(Asked("lieder_base", 0.05, rate=0.8, icc=0.2, per_cluster=3), [])
    assert (found.clusters, found.documents, found.unit) == (469, 1407, "item")
    assert needed(Asked("mmlu", 0.05, rate=0.8, icc=0.0), []).unit == "document"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"difference": 0}, "--difference 0 is not legal; use a number above 0"),
    ({"difference": math.nan}, "--difference nan is not legal"),
    ({"power": 1}, "--power 1 is not legal"),
    ({"alpha": 0}, "--alpha 0 is not legal"),
    ({"models": 1}, "--models 1 is not legal"),
    ({"icc": 2}, "--icc 2 is not legal"),
    ({"per_cluster": 0}, "--per-cluster 0 is not legal"),
    ({"correlation": 1}, "--correlation 1 is not legal"),
    ({"icc": None}, "--rate and --icc belong together"),
    ({"rate": None, "icc": None}, "give results of a pilot run, or --rate and --icc"),
    ({"rate": 0.99}, "0.965 and 1.015 are not both from 0 to 1"),
    ({"task": "lieder_bas"}, "no task 'lieder_bas' of ours; similar are lieder_base"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    right = {"task": "lieder_base", "difference": 0.05, "rate": 0.8, "icc": 0.2}
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed(Asked(**{**right, **options}), [])


def test_bad_pilots(runs: Path, tmp_path: Path) -> None:
    for asked, message in (
        (Asked("lieder_two", 0.1), "no results of lieder_two; there are lieder_mini"),
        (Asked("lieder_mini", 0.1, "nope"), "lieder_mini has no metric nope; it has"),
        (Asked("lieder_mini", 5), "--difference 5 is not legal; direct goes from 0 to 1"),
        (Asked("lieder_mini", 0.1, "undefined"), "nothing varies in the pilot"),
        (Asked("lieder_mini", 0.1, rate=0.5, icc=0), "--rate is for no pilot: leave out"),
        (Asked("lieder_mini", 0.1, per_cluster=3), "--per-cluster goes with --rate"),
        (Asked("lieder_mini", 0.1, correlation=0.3), "--correlation is for a pilot of one"),
    ):
        with pytest.raises(LmEvalExtError, match=re.escape(message)):
            needed(asked, [runs])
    with pytest.raises(DataError, match=r"signatures differ in version \(1 / 9\)"):
        other = tmp_path / "other"
        other.mkdir()
        for file in (runs / "good").glob("*"):
            text = re.sub('"version": "1.[0-9]+"', '"version": "9.1"', file.read_text())
            (other / file.name).write_text(text.replace('"good"', '"other"'))
        needed(Asked("lieder_mini", 0.1), [runs / "good", other])


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
