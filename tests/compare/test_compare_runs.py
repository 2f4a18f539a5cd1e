"""Comparing logged runs: values against lm-eval's own, letters, the best, output."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_runs import compared, make
from support.asking import run_in

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.command import leaderboard, rendered, run
from lm_eval_ext.compare.comparison import Report, Table
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
    for own in read_results(runs / "good")[0].runs:
        task, metrics = own.task, own.scores
        card = card_of(task)
        assert card
        titles = {card.title_of(metric): metric for metric in metrics}
        for row in compared(runs, tasks=task, asked=ScoreQuery(tuple(metrics)))["figures"]:
            score = run_in(runs / row["system"], task).scores[titles[row["title"]]]
            assert (row["value"], row["low"], row["high"]) == pytest.approx(
                (score.value, score.low, score.high), rel=1e-9
            ), row
            checked += 1
    assert checked > 100


def test_a_model_against_itself_finds_nothing(runs: Path) -> None:
    content = compared(runs / "good", runs / "good", tasks="*")
    tested = [row for row in content["pairs"] if row["p"] is not None]
    assert len(tested) == 7
    assert all(row["value"] == 0 and row["p"] == row["p_holm"] == 1 for row in tested)
    assert {row["test"] for row in tested} == {"mcnemar", "sign-flip", "swap"}


def test_the_best_are_those_that_no_other_one_beats(runs: Path) -> None:
    content = compared(runs, tasks="cogs_mini_id")
    marks = {row["system"]: row["best"] for row in content["figures"]}
    assert marks == {"good": True, "same": True, "poor": False}
    row = content["pairs"][0]
    assert (row["first"], row["second"], row["test"]) == ("good", "poor", "mcnemar")
    assert row["p_holm"] < 0.001


def test_bold_is_one_rule_everywhere(runs: Path, tmp_path: Path, without_figures: None) -> None:
    """Text, JSON, both LaTeX tables, the page and its export: the same systems."""
    found = overview(read_models([runs]))
    best = {task: set(own["model"][own["best"]]) for task, own in found.groupby("task")}
    for task, expected in best.items():
        content = compared(runs, tasks=task)
        assert {row["system"] for row in content["figures"] if row["best"]} == expected
        latex, _ = run([runs], ScoreQuery(), tasks=task, format_="latex")
        bold = {line.split(" & ")[0] for line in latex.splitlines() if "textbf" in line}
        assert bold == expected, task
    leaderboard([runs], tmp_path / "models.tex")
    for latex in (
        run([runs], ScoreQuery(), format_="latex")[0],
        (tmp_path / "models.tex").read_text(),
    ):
        assert latex.count(r"\textbf{") == found["best"].sum() > 2
        assert latex.count(r"\rlap{$^{\circ}$}") == (found["standing"] == "unproven").sum() > 2
        assert latex.count(r"\rlap{$^{?}$}") == (found["standing"] == "untested").sum()
    text, _ = run([runs], ScoreQuery())
    for standing, mark in (("best", "*"), ("unproven", "°"), ("untested", "?")):
        marked = sum(line.count(mark) for line in text.splitlines()[:9])
        assert marked == (found["standing"] == standing).sum(), standing
    page = build([runs], tmp_path / "page", samples=0)
    exported = csv.DictReader((page.parent / "leaderboard.csv").open())
    of_page: dict[str, set[str]] = {}
    for row in exported:
        of_page.setdefault(row["task"], set()).update([row["model"]] * (row["best"] == "True"))
    assert {task: of_page[task] for task in best} == best
    (shown,) = re.findall('<section id="overview".*?</section>', page.read_text(), re.DOTALL)
    assert len(re.findall('<td[^>]*class="top"', shown)) == found["best"].sum()
    assert shown.count("<sup>°</sup>") == (found["standing"] == "unproven").sum()
    assert shown.count("<sup>?</sup>") == (found["standing"] == "untested").sum()


def test_two_models_and_five_benchmarks_are_one_table(runs: Path, tmp_path: Path) -> None:
    """Each benchmark's representative task, on one line; a trial says how many documents of all."""
    text, _ = run([runs / "good", runs / "poor"], ScoreQuery())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) < 25
    tasks = [line.split()[0] for line in lines[2:7]]
    assert tasks == [
        "cogs_mini_gen", "conceptual_mini", "diner_mini_name", "lieder_mini", "magnifico_mini",
    ]  # fmt: skip
    assert [line.split()[-1] for line in lines[2:7]] == ["500", "36", "24", "48", "192"]
    short = make(tmp_path / "short", ["lieder_mini", "cogs_mini_gen"], seed=9, limit=21, name="s")
    text, _ = run([short, runs / "poor"], ScoreQuery())
    assert [line.split()[-1] for line in text.splitlines()[2:4]] == ["21/500", "21/48"]
    leaderboard([short], tmp_path / "a.tex")
    for one in ("size 21/48", "below trials", "% task:lieder_mini|version:1.2|"):
        assert one in (tmp_path / "a.tex").read_text()
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
    both = ScoreQuery(("exact_match,plain", "exact_match,words"))
    plain, words = compared(tmp_path / "runs", asked=both)["pairs"]
    assert (plain["documents"], plain["clusters"], plain["cluster"]) == (45, 45, "document")
    assert plain["test"] == "mcnemar" and plain["p"] < 0.01
    assert words["value"] == 0
    (file,) = (tmp_path / "runs" / "1").rglob("results_*.json")
    file.write_text(file.read_text().replace('"exact_match,plain": 0.', '"exact_match,plain": 0.0'))
    found = compared(tmp_path / "runs", asked=ScoreQuery(both.metrics[:1]))
    assert found["pairs"] == [] and "has another value" in found["figures"][0]["note"]
    with pytest.raises(OptionError, match="no facet family: only tasks of ours"):
        run([tmp_path / "runs"], ScoreQuery(by="family"))


def test_documents_that_one_run_lacks_do_not_count(runs: Path, tmp_path: Path) -> None:
    short = make(tmp_path / "short", ["lieder_mini"], seed=9, limit=21, name="short")
    found = compared(runs / "poor", short, tasks="lieder_mini")
    assert {row["documents"] for row in found["figures"]} == {21}
    values = {row["system"]: row["value"] for row in found["figures"]}
    assert values["short"] == run_in(short, "lieder_mini").scores["direct"].value
    asked = set(rows(run_in(short, "lieder_mini"))["document"])
    own = rows(run_in(runs / "poor", "lieder_mini")).query("metric == 'direct'")
    own = own[(own["requirement"] != "distance") & own["document"].isin(asked)]
    assert values["poor"] == pytest.approx(own.groupby("document")["correct"].mean().mean())


def test_parts_are_those_of_show(runs: Path) -> None:
    scores = run_in(runs / "poor", "magnifico_mini").scores
    by_form = compared(runs, tasks="magnifico_mini", asked=ScoreQuery(by="form"))["figures"]
    only = compared(runs, tasks="magnifico_mini", asked=ScoreQuery(where=("form=foreign",)))[
        "figures"
    ]
    one, two = (
        [row["value"] for row in rows if row["system"] == "poor"]
        for rows in ([row for row in by_form if row["part"] == "foreign"], only)
    )
    assert one == two == [scores["relative_performance/foreign"].value]
    for row in compared(runs, tasks="conceptual_mini", asked=ScoreQuery(value="accuracy"))[
        "figures"
    ]:
        own = run_in(runs / row["system"], "conceptual_mini").scores
        assert row["value"] == own["gain/accuracy"].value
    every = compared(runs, asked=ScoreQuery(by="family"))["figures"]
    assert {row["task"] for row in every} == {"lieder_mini"}, "the others have no such facet"


def test_what_is_no_mean_is_swapped_and_the_papers_bootstrap_is_not_tested(runs: Path) -> None:
    for task, metric in (
        ("magnifico_mini", "relative_performance"), ("diner_mini_name", "micro_f1"),
        ("conceptual_mini", "relative_error_change"),
    ):  # fmt: skip
        found = compared(runs / "good", runs / "poor", tasks=task, asked=ScoreQuery((metric,)))
        assert {row["test"] for row in found["pairs"]} == {"swap"}
    found = compared(runs, tasks="conceptual_mini", asked=ScoreQuery(("gain_100x200",)))
    assert found["pairs"] == [] and not any(row["best"] for row in found["figures"])
    assert found["figures"][0]["note"].startswith("no test: the paper draws documents")


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
    assert "0.800" not in text and "4/20 documents" in text
    assert r"& 0.8\,\% \\" in rendered(report, "latex")


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [(ScoreQuery(), {"tasks": "arc"}, "no task arc .* lieder_mini"),
     (ScoreQuery(), {"between": "lieder_mini"}, "two tasks"),
     (ScoreQuery(), {"seeds": True}, 'no two names differ only in "seed N" at the end: good, poor'),
     (ScoreQuery(("accuracy",)), {"tasks": "lieder_mini"}, "no metric accuracy"),
     (ScoreQuery(by="kin"), {}, "has no facet kin"),
    ],
)  # fmt: skip
def test_wrong_options_say_what_is_valid(
    runs: Path, asked: ScoreQuery, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        run([runs], asked, **options)


def test_csv_and_json_agree_and_keep_all_digits(runs: Path) -> None:
    asked = ScoreQuery(by="requirement")
    text, _ = run([runs], asked, tasks="lieder_mini", format_="csv")
    pairs = compared(runs, tasks="lieder_mini", asked=asked)["pairs"]
    found = [(float(row["value"]), row["first"], row["part"]) for row in rows_of(text)]
    assert found == [(one["value"], one["first"], one["part"]) for one in pairs]
    assert len(found) == 15


def test_a_hostile_name_stays_text(changed: Callable[..., Path], runs: Path) -> None:
    name = "=cmd|x](y) <script>\x1b[31m"
    folder = changed(lambda content: content.update(model_name=name))
    text, markdown, table = (
        run([folder, runs / "poor"], ScoreQuery(), tasks="lieder_mini", format_=format_)[0]
        for format_ in ("text", "markdown", "csv")
    )
    assert "\x1b" not in text + markdown + table
    assert "<script>" not in markdown.replace("\\<script\\>", "") and "\\|x\\]" in markdown
    cells = [cell for row in csv.reader(io.StringIO(table)) for cell in row]
    assert not any(cell.startswith("=") for cell in cells)


def test_two_tasks_of_the_same_models(runs: Path) -> None:
    found = compared(runs, between="cogs_mini_gen,cogs_mini_overestimation")
    by_model = {row["model"]: row for row in found["pairs"]}
    assert set(by_model) == {"good", "poor", "same"}
    ps = [row["p"] for row in found["pairs"]]
    assert [row["p_holm"] for row in found["pairs"]] == holm(ps) != ps
    assert not any(row["best"] for row in found["figures"])
    with pytest.raises(DataError, match="are not about the same items"):
        run([runs], ScoreQuery(), between="conceptual_mini,lieder_mini")


def test_mean_and_spread_by_seed(tmp_path: Path) -> None:
    from statistics import fmean, stdev

    for seed in (1, 2, 3):
        make(tmp_path / str(seed), ["lieder_mini"], seed=seed, name=f"tiny, seed {seed}")
    (row,) = rows_of(run([tmp_path], ScoreQuery(), seeds=True, format_="csv")[0])
    values = [run_in(tmp_path / str(n), "lieder_mini").scores["direct"].value for n in (1, 2, 3)]
    assert (row["condition"], row["seeds"]) == ("tiny", "3")
    assert (float(row["mean"]), float(row["sd"])) == pytest.approx((fmean(values), stdev(values)))
    assert float(row["low"]) < fmean(values) < float(row["high"])
    shown, _ = run([tmp_path], ScoreQuery(by="family"), seeds=True)
    assert "plain_negated" in shown and " sd " in shown and "N/A" not in shown


LONG = ("meta-llama/Llama-3.3-70B-Instruct", "Qwen2.5-72B-Instruct", "an_organisation/a_model-7B")


def test_long_names_are_not_broken_inside_a_word(runs: Path, changed: Callable[..., Path]) -> None:
    """In a heading "Qwen2.5-72B-Instru" stood above "ct"; names stay on one line in rows."""
    folder = changed(lambda content: content.update(model_name=LONG[0]))
    text, _ = run([folder, runs / "poor"], ScoreQuery(), tasks="lieder_mini")
    assert sum(LONG[0] in line for line in text.splitlines()) == 2
    for count in (2, 3):
        made = grid(
            [("", ["", *LONG[:count], "p (Holm)"], [["cogs", *["-0.075* ab"] * 4][: count + 2]])]
        )
        words = re.findall(r"[\w.]+", " ".join(LONG[:count]).replace("_", " "))
        assert [word for word in words if word not in made.replace("_", " ").split("─")[0]] == []
        assert max(map(len, made.splitlines())) <= 80
