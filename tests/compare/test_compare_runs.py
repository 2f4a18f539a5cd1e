"""Comparing logged runs: values against lm-eval's own, groups, refusals, output."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_runs import compared, make, results_in

from lm_eval_ext.cards import cards
from lm_eval_ext.compare.align import clusters_of
from lm_eval_ext.compare.command import run
from lm_eval_ext.compare.metrics import statistic_of
from lm_eval_ext.compare.reading import read_models
from lm_eval_ext.compare.report import Settings
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.leaderboard.board import collect
from lm_eval_ext.leaderboard.site import build
from lm_eval_ext.results.samples import SampleStatistic, read_samples
from lm_eval_ext.stats import ClusteredValue, clustered_standard_error


def test_values_are_those_of_the_results_files(runs: Path) -> None:
    content = compared(runs)
    by_model = {name: results_in(runs / name) for name in ("good", "poor", "same")}
    checked = 0
    for row in content["figures"]:
        if row["value"] is None:
            continue
        score = by_model[row["system"]].scores(row["task"])[row["metric"]]
        assert row["value"] == pytest.approx(score.value, rel=1e-9), row
        checked += 1
    assert checked > 300
    assert {row["task"] for row in content["figures"]} == set(by_model["good"].tasks)


def test_clusters_are_those_of_the_benchmarks_own_standard_errors(runs: Path) -> None:
    """The card's cluster, read from logged documents, gives the errors that lm-eval printed."""
    results = results_in(runs / "poor")
    checked: dict[str, int] = {}
    for task in results.tasks:
        (samples,) = read_samples(results, task).values()
        listed = results.content["configs"][task]["metric_list"]
        means = {e["metric"] for e in listed if e["aggregation"] == "lm_eval_ext_mean"}
        for metric, score in results.scores(task).items():
            if metric not in means:
                continue
            scored = [s for s in samples.values() if s.scores.get(metric) is not None]
            _, clusters = clusters_of(task, scored)
            values = [
                ClusteredValue(s.scores[metric] or 0.0, cluster)
                for s, cluster in zip(scored, clusters, strict=True)
            ]
            expected = clustered_standard_error(values)
            assert expected == pytest.approx(score.stderr, rel=1e-9, abs=1e-12), (task, metric)
            checked[task] = checked.get(task, 0) + 1
    assert set(checked) == set(results.tasks)


def test_statistics_of_cards_are_there_and_are_used() -> None:
    """Each is named for an aggregation that the module of the statistic registers."""

    from lm_eval.api.registry import aggregation_registry

    named = {name for card in cards().values() for name in card.statistics}
    assert named == {
        "magnifico_relative_performance", "magnifico_average_accuracy", "lm_eval_ext_paired_change",
        "diner_micro_f1",
    }  # fmt: skip
    for name in named:
        assert isinstance(statistic_of(name), SampleStatistic)
        assert name in aggregation_registry
    assert statistic_of("lm_eval_ext_mean") is None
    assert statistic_of(None) is None


def test_a_model_against_itself_finds_nothing(runs: Path) -> None:
    content = compared(runs / "good", runs / "good")
    tested = [row for row in content["pairs"] if row["p"] is not None]
    assert len(tested) > 100
    assert all(row["difference"] == 0 and row["p"] == row["p_holm"] == 1 for row in tested)
    assert {row["test"] for row in tested} == {"mcnemar", "sign-flip", "swap"}
    assert {row["group"] for row in content["figures"]} <= {"a", None}
    assert len({row["system"] for row in content["figures"]}) == 2


def test_unlike_models_are_told_apart_and_like_ones_are_not(runs: Path) -> None:
    content = compared(runs, tasks="cogs_mini_id", settings=Settings(("exact_match/all",)))
    marks = {row["system"]: row["group"] for row in content["figures"]}
    assert marks == {"good": "a", "same": "a", "poor": "b"}
    row = content["pairs"][0]
    assert (row["first"], row["second"], row["test"]) == ("good", "poor", "mcnemar")
    good, poor = (
        next(iter(read_samples(results_in(runs / name), "cogs_mini_id").values()))
        for name in ("good", "poor")
    )
    pairs = [
        (s.scores["exact_match/all"], poor[k].scores["exact_match/all"]) for k, s in good.items()
    ]
    from statsmodels.stats.contingency_tables import mcnemar

    table = [[pairs.count((a, b)) for b in (1.0, 0.0)] for a in (1.0, 0.0)]
    assert row["p"] == pytest.approx(mcnemar(table, exact=True).pvalue, rel=1e-9)


FOREIGN = """\
task: foreign_sums
custom_dataset: !function foreign_sums.load
test_split: test
output_type: generate_until
doc_to_text: "{{id}} + 1 ="
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["."]}
filter_list:
  - {name: plain, filter: [{function: take_first}]}
  - {name: words, filter: [{function: regex, regex_pattern: "([a-z]+)"}, {function: take_first}]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

FOREIGN_LOAD = """\
from datasets import Dataset

def load(**kwargs):
    rows = [{"id": n, "answer": str(n + 1)} for n in range(40)]
    return {"test": Dataset.from_list(rows + rows[:5])}
"""


def test_a_task_that_is_not_ours(tmp_path: Path) -> None:
    """Two filters, some documents twice, every document its own cluster."""
    (tmp_path / "foreign_sums.yaml").write_text(FOREIGN)
    (tmp_path / "foreign_sums.py").write_text(FOREIGN_LOAD)
    for seed, skill in ((1, 0.9), (2, 0.3)):
        make(
            tmp_path / "runs" / str(seed),
            ["foreign_sums"],
            seed=seed,
            skill=skill,
            include=[str(tmp_path)],
        )
    found = compared(tmp_path / "runs", settings=Settings())
    rows = {row["metric"]: row for row in found["pairs"]}
    assert set(rows) == {"exact_match,plain", "exact_match,words"}
    row = rows["exact_match,plain"]
    assert (row["documents"], row["clusters"], row["unit"]) == (45, 45, "document")
    assert row["test"] == "mcnemar"
    assert row["p"] < 0.01
    assert rows["exact_match,words"]["difference"] == 0


def test_holm_adjusts_over_all_pairs_of_a_metric(runs: Path) -> None:
    from statsmodels.stats.multitest import multipletests

    rows = compared(runs, tasks="lieder_mini", settings=Settings(("direct/mean",)))["pairs"]
    assert len(rows) == 3
    expected = multipletests([row["p"] for row in rows], method="holm")[1]
    assert [row["p_holm"] for row in rows] == pytest.approx(list(expected))


def test_documents_that_one_run_lacks_are_left_out(runs: Path, tmp_path: Path) -> None:
    short = make(tmp_path / "short", ["lieder_mini"], seed=9, limit=21, name="short")
    settings = Settings(("direct/mean",))
    found = compared(short, runs / "poor", tasks="lieder_mini", settings=settings)
    assert {row["documents"] for row in found["figures"]} == {21}
    values = {row["system"]: row["value"] for row in found["figures"]}
    assert values["short"] == results_in(short).scores("lieder_mini")["direct/mean"].value
    (samples,) = read_samples(results_in(runs / "poor"), "lieder_mini").values()
    (asked,) = read_samples(results_in(short), "lieder_mini").values()
    same = [samples[key].scores["direct/mean"] or 0 for key in asked]
    assert values["poor"] == pytest.approx(sum(same) / 21)


def test_metrics_that_are_not_averages(runs: Path) -> None:
    """Relative performance and the change of error are recomputed; the paper's bootstrap is not."""
    found = compared(runs / "good", runs / "poor")
    tests = {row["metric"]: row["test"] for row in found["pairs"] if row["test"]}
    swapped = ("populated/relative_performance", "error_change/rouge_l", "micro_f1")
    assert {tests[metric] for metric in swapped} == {"swap"}
    notes = {note["metric"]: note["note"] for note in found["notes"]}
    assert notes["gain/rouge_l_100x200"].startswith("no test")
    untested = {name for name, note in notes.items() if note.startswith("no test")}
    assert untested and not untested & set(tests)
    assert notes["difference/structural"].startswith("no interval from 3 generalization types")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"tasks": "arc"}, "no task arc .* lieder_mini"), ({"format_": "xml"}, "text, markdown"),
     ({"between": "lieder_mini"}, "two tasks"), ({"between": "a,b"}, "no model has results")],
)  # fmt: skip
def test_wrong_options_say_what_is_valid(runs: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        run([runs], Settings(), **options)  # type: ignore[arg-type]


def test_wrong_settings_say_what_is_valid(runs: Path) -> None:
    with pytest.raises(OptionError, match="direct/mean"):
        run([runs], Settings(("accuracy",)), tasks="lieder_mini")
    with pytest.raises(OptionError, match="between 0 and 1"):
        run([runs], Settings(alpha=1.5))
    with pytest.raises(OptionError, match="one model alone"):
        run([runs / "good"], Settings())


def test_csv_and_json_agree_and_keep_all_digits(runs: Path) -> None:
    settings = Settings(("direct/*",))
    text, _ = run([runs], settings, tasks="lieder_mini", format_="csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    pairs = compared(runs, tasks="lieder_mini", settings=settings)["pairs"]
    assert len(rows) == len(pairs) > 20
    for row, pair in zip(rows, pairs, strict=True):
        assert float(row["difference"]) == pair["difference"]
        assert row["first"] == pair["first"]


def test_a_hostile_name_stays_text(changed: Callable[..., Path], runs: Path) -> None:
    name = "=cmd|x](y) <script>\x1b[31m"

    def rename(content: dict[str, Any]) -> None:
        content["model_name"] = name

    folder = changed(rename)
    for format_ in ("text", "markdown", "csv"):
        text, _ = run([folder, runs / "poor"], Settings(), tasks="lieder_mini", format_=format_)
        assert "\x1b" not in text
        if format_ == "markdown":
            assert "<script>" not in text.replace("\\<script\\>", "")
            assert "\\|x\\]" in text
        if format_ == "csv":
            assert not any(
                cell.startswith("=") for row in csv.reader(io.StringIO(text)) for cell in row
            )


def test_two_tasks_of_the_same_models(runs: Path) -> None:
    """What cogs_mini_overestimation asks within a document, asked of two tasks' documents."""
    found = compared(
        runs, between="cogs_mini_gen,cogs_mini_overestimation", settings=Settings(("*",))
    )
    assert found["pairs"] == [], "they share no metric"
    with pytest.raises(DataError, match="cannot be matched one to one"):
        run([runs], Settings(), between="conceptual_mini,lieder_mini")


def test_written_files_are_whole(runs: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    target = tmp_path / "table.md"
    done = cli(
        "compare", str(runs), "--tasks", "lieder_mini", "--format", "markdown", "-o", str(target)
    )
    assert done.returncode == 0, done.stderr
    assert target.read_text().startswith("lieder\\_mini")
    refused = cli("compare", str(runs / "good"))
    assert refused.returncode == 1
    assert refused.stderr.startswith("lm-eval-ext: error: one model alone")


def test_ranks_and_compare_say_the_same(runs: Path, tmp_path: Path) -> None:
    """On every task's leading metric, whatever it is: a mean, a ratio or a micro F1."""
    board = collect(read_models([runs]))
    build([runs], tmp_path, with_samples=False)
    table = list(csv.DictReader(io.StringIO((tmp_path / "tables/leaderboard.csv").read_text())))
    ranked = {
        (row["column"].partition(" · ")[0].rpartition("/")[2], row["model"]): int(
            float(row["rank"])
        )
        for row in table
        if row["table"] == "All tasks"
    }
    apart = 0
    for task in board.tasks:
        found = compared(runs, tasks=task.name, settings=Settings((task.leading,)))
        better = dict.fromkeys(task.runs, 0)
        for pair in found["pairs"]:
            if pair["p_holm"] is not None and pair["p_holm"] < 0.05:
                first_wins = (pair["difference"] > 0) is (task.leading not in task.lower)
                better[pair["second"] if first_wins else pair["first"]] += 1
                apart += 1
        assert {name: count + 1 for name, count in better.items()} == {
            name: ranked[task.name, name] for name in better
        }, task.name
    assert apart > 5
    assert {"micro_f1", "populated/relative_performance"} <= {task.leading for task in board.tasks}


def test_micro_f1_of_older_samples_offers_no_test(changed: Callable[..., Path], runs: Path) -> None:
    """Which have no counts."""

    def without_counts(_: int, row: dict[str, Any]) -> dict[str, Any]:
        kept = [
            name for name in row["metrics"] if name.partition(":")[0] not in ("gold", "predicted")
        ]
        return {**row, "metrics": kept}

    folder = changed(edit_row=without_counts, task="diner_mini_name")
    found = compared(
        folder, runs / "poor", tasks="diner_mini_name", settings=Settings(("micro_f1",))
    )
    assert found["pairs"] == []
    assert "the samples lack predicted, gold" in found["notes"][0]["note"]
