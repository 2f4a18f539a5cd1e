"""Comparing logged runs: values against lm-eval's own, letters, the best, output."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.asking import run_in
from support.made_runs import compared, make

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.command import leaderboard, run
from lm_eval_ext.compare.comparison import Report, Table
from lm_eval_ext.compare.formats import rendered
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.leaderboard.site import build
from lm_eval_ext.results.files import read_results
from lm_eval_ext.results.grid import text as grid
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.overview import overview
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.paired import holm
from lm_eval_ext.stats.statistics import Estimate


def test_values_are_those_of_the_results_files(runs: Path) -> None:
    """Every metric of every task, with lm-eval's own interval."""
    checked = 0
    for good_run in read_results(runs / "good")[0].runs:
        task = good_run.task
        card = card_of(task)
        assert card
        metrics = {card.title_of(metric): metric for metric in good_run.scores}
        query = ScoreQuery(tuple(good_run.scores))
        for figure in compared(runs, tasks=task, query=query)["figures"]:
            score = run_in(runs / figure["system"], task).scores[metrics[figure["title"]]]
            expected = (score.value, score.low, score.high)
            shown = (figure["value"], figure["low"], figure["high"])
            assert shown == pytest.approx(expected, rel=1e-9), figure
            checked += 1
    assert checked > 100


def test_a_model_against_itself_finds_nothing(runs: Path) -> None:
    content = compared(runs / "good", runs / "good", tasks="*")
    tested = [pair for pair in content["pairs"] if pair["p"] is not None]
    assert len(tested) == 7
    assert {(pair["value"], pair["p"], pair["p_holm"]) for pair in tested} == {(0, 1, 1)}
    assert {pair["test"] for pair in tested} == {"mcnemar", "sign-flip", "swap"}


def test_models_that_no_other_model_beats_are_best(runs: Path) -> None:
    content = compared(runs, tasks="cogs_mini_id")
    marks = {row["system"]: row["best"] for row in content["figures"]}
    assert marks == {"good": True, "same": True, "poor": False}
    row = content["pairs"][0]
    assert (row["first"], row["second"], row["test"]) == ("good", "poor", "mcnemar")
    assert row["p_holm"] < 0.001


def bold_systems(latex: str) -> set[str]:
    """Return the systems with a bold value: the rows, but the columns where there are two."""
    table, _, _ = latex.partition(r"\end{table")
    lines = [line.split(" & ") for line in table.splitlines() if " & " in line]
    heading = lines[0]
    bold = set()
    for name, *cells in lines[1:]:
        for system, cell in zip(heading[1:], cells, strict=True):
            if "textbf" in cell:
                bold.add(system if name == "value" else name)
    return bold


def test_bold_is_one_rule_everywhere(runs: Path, tmp_path: Path, without_figures: None) -> None:
    """Text, JSON, both LaTeX tables, the page and its export mark the same systems."""
    scores = overview(read_models([runs]))
    best = {}
    for task, task_scores in scores.groupby("task"):
        best[task] = set(task_scores["model"][task_scores["best"]])
    counts = scores["standing"].value_counts()
    assert counts["best"] > 2
    assert counts["unproven"] > 2
    for task, expected in best.items():
        content = compared(runs, tasks=task)
        assert {row["system"] for row in content["figures"] if row["best"]} == expected, task
        latex, _ = run([runs], ScoreQuery(), tasks=task, format_="latex")
        assert bold_systems(latex) == expected, task
    leaderboard([runs], tmp_path / "models.tex")
    for latex in (
        run([runs], ScoreQuery(), format_="latex")[0],
        (tmp_path / "models.tex").read_text(),
    ):
        assert latex.count(r"\textbf{") == scores["best"].sum() == counts["best"]
        assert latex.count(r"\rlap{$^{\circ}$}") == counts["unproven"]
        assert latex.count(r"\rlap{$^{?}$}") == counts.get("untested", 0)
    text, _ = run([runs], ScoreQuery())
    table = "".join(text.splitlines()[:9])
    assert table.count("*") == counts["best"]
    assert table.count("°") == counts["unproven"]
    assert table.count("?") == counts.get("untested", 0)
    page = build([runs], tmp_path / "page", samples=0)
    exported: dict[str, set[str]] = {task: set() for task in best}
    for row in csv.DictReader((page.parent / "leaderboard.csv").open()):
        if row["best"] == "True" and row["task"] in best:
            exported[row["task"]].add(row["model"])
    assert exported == best
    (section,) = re.findall('<section id="overview".*?</section>', page.read_text(), re.DOTALL)
    assert len(re.findall('<td[^>]*class="top"', section)) == counts["best"]
    assert section.count("<sup>°</sup>") == counts["unproven"]
    assert section.count("<sup>?</sup>") == counts.get("untested", 0)


def test_two_models_and_five_benchmarks_are_one_table(runs: Path, tmp_path: Path) -> None:
    """Each benchmark's representative task, on one line; a trial says how many documents of all."""
    text, _ = run([runs / "good", runs / "poor"], ScoreQuery())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 25
    tasks = [line.split()[0] for line in lines[2:7]]
    assert tasks == [
        "cogs_mini_gen", "conceptual_mini", "diner_mini_name", "lieder_mini", "magnifico_mini",
    ]  # fmt: skip
    assert [line.split()[-1] for line in lines[2:7]] == ["500", "36", "24", "48", "384"]
    short = make(tmp_path / "short", ["lieder_mini", "cogs_mini_gen"], seed=9, limit=21, name="s")
    text, _ = run([short, runs / "poor"], ScoreQuery())
    assert [line.split()[-1] for line in text.splitlines()[2:4]] == ["21/500", "21/48"]
    leaderboard([short], tmp_path / "a.tex")
    table = (tmp_path / "a.tex").read_text()
    for phrase in ("size 21/48", "below trials", "% task:lieder_mini|version:1.2|"):
        assert phrase in table
    latex, _ = run([runs], ScoreQuery(), tasks="lieder_mini", format_="latex")
    assert r"\label{tab:compare-lieder_mini-direct}" in latex


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


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
        folder = tmp_path / "runs" / str(seed)
        make(folder, ["foreign_sums"], seed=seed, skill=skill, include=[str(tmp_path)])
    both_filters = ScoreQuery(("exact_match,plain", "exact_match,words"))
    plain, words = compared(tmp_path / "runs", query=both_filters)["pairs"]
    assert (plain["documents"], plain["clusters"], plain["cluster"]) == (45, 45, "document")
    assert plain["test"] == "mcnemar"
    assert plain["p"] < 0.01
    assert words["value"] == 0
    (file,) = (tmp_path / "runs" / "1").rglob("results_*.json")
    file.write_text(file.read_text().replace('"exact_match,plain": 0.', '"exact_match,plain": 0.0'))
    changed = compared(tmp_path / "runs", query=ScoreQuery(("exact_match,plain",)))
    assert changed["pairs"] == []
    assert "has another value" in changed["figures"][0]["note"]
    with pytest.raises(OptionError, match="no facet family: only tasks of ours"):
        run([tmp_path / "runs"], ScoreQuery(by="family"))


def test_documents_that_one_run_lacks_do_not_count(runs: Path, tmp_path: Path) -> None:
    short = make(tmp_path / "short", ["lieder_mini"], seed=9, limit=21, name="short")
    figures = compared(runs / "poor", short, tasks="lieder_mini")["figures"]
    assert {figure["documents"] for figure in figures} == {21}
    values = {figure["system"]: figure["value"] for figure in figures}
    assert values["short"] == run_in(short, "lieder_mini").scores["direct"].value
    shared_documents = set(rows(run_in(short, "lieder_mini"))["document"])
    poor = rows(run_in(runs / "poor", "lieder_mini"))
    poor = poor[(poor["metric"] == "direct") & (poor["requirement"] != "distance")]
    poor = poor[poor["document"].isin(shared_documents)]
    assert values["poor"] == pytest.approx(poor.groupby("document")["correct"].mean().mean())


def test_a_part_has_the_value_that_show_gives_it(runs: Path) -> None:
    expected = run_in(runs / "poor", "magnifico_mini").scores["relative_performance/foreign"].value
    by_form = compared(runs, tasks="magnifico_mini", query=ScoreQuery(by="form"))["figures"]
    values = [
        figure["value"]
        for figure in by_form
        if figure["system"] == "poor" and figure["part"] == "foreign"
    ]
    assert values == [expected]
    foreign = ScoreQuery(where=("form=foreign",))
    figures = compared(runs, tasks="magnifico_mini", query=foreign)["figures"]
    values = [figure["value"] for figure in figures if figure["system"] == "poor"]
    assert values == [expected]


def test_another_value_is_the_one_that_show_gives(runs: Path) -> None:
    accuracy = ScoreQuery(value="accuracy")
    figures = compared(runs, tasks="conceptual_mini", query=accuracy)["figures"]
    assert figures
    for figure in figures:
        scores = run_in(runs / figure["system"], "conceptual_mini").scores
        assert figure["value"] == scores["gain/accuracy"].value


def test_tasks_without_the_facet_are_not_shown(runs: Path) -> None:
    figures = compared(runs, query=ScoreQuery(by="family"))["figures"]
    assert {figure["task"] for figure in figures} == {"lieder_mini"}


@pytest.mark.parametrize(
    ("task", "metric"),
    [
        ("magnifico_mini", "relative_performance"),
        ("diner_mini_name", "micro_f1"),
        ("conceptual_mini", "relative_error_change"),
    ],
)
def test_a_metric_that_is_no_mean_has_a_swap_test(runs: Path, task: str, metric: str) -> None:
    query = ScoreQuery((metric,))
    pairs = compared(runs / "good", runs / "poor", tasks=task, query=query)["pairs"]
    assert {pair["test"] for pair in pairs} == {"swap"}


def test_the_papers_bootstrap_is_not_tested(runs: Path) -> None:
    content = compared(runs, tasks="conceptual_mini", query=ScoreQuery(("gain_100x200",)))
    assert content["pairs"] == []
    assert {figure["best"] for figure in content["figures"]} == {False}
    assert content["figures"][0]["note"].startswith("no test: the paper draws documents")


def test_units_are_declared_not_guessed() -> None:
    """A relative performance below 1 keeps its unit, beside a large one."""
    figures = {"a": Estimate(53.4), "b": Estimate(0.8)}
    table = Table(
        task="t", model="", title="Relative performance", part="", words="", metric="r",
        unit="percent", lower_is_better=False, documents=4, total=20, clusters=4,
        cluster="database", figures=figures, pairs=[], published={}, note="", pooled=None,
    )  # fmt: skip
    report = Report(["a", "b"], [table])
    text = rendered(report, "text")
    assert {"53.4 %", "0.8 %"} <= set(re.findall(r"[0-9.]+ %", text))
    assert "0.800" not in text
    assert "4/20 documents" in text
    assert r"& 0.8\,\% \\" in rendered(report, "latex")


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        pytest.param(ScoreQuery(), {"tasks": "arc"}, "no task arc .* lieder_mini", id="task"),
        pytest.param(ScoreQuery(), {"between": "lieder_mini"}, "two tasks", id="between one task"),
        pytest.param(
            ScoreQuery(),
            {"seeds": True},
            'no two names differ only in "seed N" at the end: good, poor',
            id="seeds",
        ),
        pytest.param(
            ScoreQuery(("accuracy",)), {"tasks": "lieder_mini"}, "no metric accuracy", id="metric"
        ),
        pytest.param(ScoreQuery(by="kin"), {}, "has no facet kin", id="facet"),
    ],
)
def test_an_error_about_an_option_names_valid_values(
    runs: Path, query: ScoreQuery, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        run([runs], query, **options)


def test_csv_and_json_agree_and_keep_all_digits(runs: Path) -> None:
    query = ScoreQuery(by="requirement")
    text, _ = run([runs], query, tasks="lieder_mini", format_="csv")
    from_csv = [(float(row["value"]), row["first"], row["part"]) for row in rows_of(text)]
    pairs = compared(runs, tasks="lieder_mini", query=query)["pairs"]
    from_json = [(pair["value"], pair["first"], pair["part"]) for pair in pairs]
    assert from_csv == from_json
    assert len(from_csv) == 15


def test_a_hostile_name_stays_text(changed: Callable[..., Path], runs: Path) -> None:
    name = "=cmd|x](y) <script>\x1b[31m"
    folder = changed(lambda content: content.update(model_name=name))
    outputs = {}
    for output_format in ("text", "markdown", "csv"):
        paths = [folder, runs / "poor"]
        output, _ = run(paths, ScoreQuery(), tasks="lieder_mini", format_=output_format)
        assert "\x1b" not in output, output_format
        outputs[output_format] = output
    markdown = outputs["markdown"]
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    assert "\\|x\\]" in markdown
    cells = [cell for row in csv.reader(io.StringIO(outputs["csv"])) for cell in row]
    assert not any(cell.startswith("=") for cell in cells)


def test_two_tasks_of_the_same_models(runs: Path) -> None:
    content = compared(runs, between="cogs_mini_gen,cogs_mini_overestimation")
    pairs = content["pairs"]
    assert {pair["model"] for pair in pairs} == {"good", "poor", "same"}
    p_values = [pair["p"] for pair in pairs]
    adjusted = [pair["p_holm"] for pair in pairs]
    assert adjusted == holm(p_values)
    assert adjusted != p_values
    assert {figure["best"] for figure in content["figures"]} == {False}
    with pytest.raises(DataError, match="are not about the same items"):
        run([runs], ScoreQuery(), between="conceptual_mini,lieder_mini")


def test_mean_and_spread_by_seed(tmp_path: Path) -> None:
    from statistics import fmean, stdev

    for seed in (1, 2, 3):
        make(tmp_path / str(seed), ["lieder_mini"], seed=seed, name=f"tiny, seed {seed}")
    (row,) = rows_of(run([tmp_path], ScoreQuery(), seeds=True, format_="csv")[0])
    values = []
    for seed in (1, 2, 3):
        value = run_in(tmp_path / str(seed), "lieder_mini").scores["direct"].value
        assert value is not None
        values.append(value)
    assert (row["condition"], row["seeds"]) == ("tiny", "3")
    assert (float(row["mean"]), float(row["sd"])) == pytest.approx((fmean(values), stdev(values)))
    assert float(row["low"]) < fmean(values) < float(row["high"])
    shown, _ = run([tmp_path], ScoreQuery(by="family"), seeds=True)
    assert "plain_negated" in shown
    assert " sd " in shown
    assert "N/A" not in shown


LONG_NAMES = (
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen2.5-72B-Instruct",
    "an_organisation/a_model-7B",
)


def test_long_names_are_not_broken_inside_a_word(runs: Path, changed: Callable[..., Path]) -> None:
    """A name stays on one line of the rows."""
    folder = changed(lambda content: content.update(model_name=LONG_NAMES[0]))
    text, _ = run([folder, runs / "poor"], ScoreQuery(), tasks="lieder_mini")
    assert sum(LONG_NAMES[0] in line for line in text.splitlines()) == 2


@pytest.mark.parametrize("names", [LONG_NAMES[:2], LONG_NAMES], ids=["two models", "three models"])
def test_a_heading_has_the_words_of_long_names_whole(names: tuple[str, ...]) -> None:
    cells = ["-0.075* ab" for _ in (*names, "p (Holm)")]
    table = grid([("", ["", *names, "p (Holm)"], [["cogs", *cells]])])
    heading = table.replace("_", " ").split("─")[0]
    for word in re.findall(r"[\w.]+", " ".join(names).replace("_", " ")):
        assert word in heading
    assert max(map(len, table.splitlines())) <= 80
