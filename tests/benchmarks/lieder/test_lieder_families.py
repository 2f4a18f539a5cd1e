"""Scores per sentence family: what the recorded runs and the human judgments give."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.lieder import load, mini, score
from lm_eval_ext.benchmarks.lieder.records import FAMILIES
from lm_eval_ext.cards import cards
from lm_eval_ext.leaderboard import tables
from lm_eval_ext.leaderboard.board import Run, TaskBoard
from lm_eval_ext.results.files import Score

JUDGED = ("affirmative_negation", "managed_failed")
"""The families that people judged (appendix B)."""

NONREF = "nonref"


def authors_verdicts(folder: Path, experiment: str, model: str, metric: str) -> Counter[str]:
    """Right comparisons by ``name:family``, as the authors' analysis goes through their files.

    Without our loader: a row's family is that of its group's first id, its condition follows from
    its place among twelve, and probabilities are compared, not their logarithms.
    """
    import math

    stimuli = (folder / f"stimuli/{experiment}_stimuli.jsonl").read_text().splitlines()
    answers = (folder / f"recorded/{experiment}_{model}.responses.jsonl").read_text().splitlines()
    four, six = ["pos_neg", "pos_pos", "neg_pos", "neg_neg"], [
        "pos_neg", "two_neg", "pos_pos", "neg_pos", "neg_two", "neg_neg"]  # fmt: skip
    order = [
        f"{context}_{ending}"
        for context in (six if experiment == "two" else four)
        for ending in (("s", "p") if experiment == "two" else ("s", "p", NONREF))
    ]
    right: Counter[str] = Counter()
    for start in range(0, len(stimuli), 12):
        family = "_".join(json.loads(stimuli[start])["id"].split("_")[2:4])
        p = {
            condition: math.exp(json.loads(line)["response"][0])
            for condition, line in zip(order, answers[start : start + 12], strict=True)
        }
        if metric == "relative":
            p = {
                condition: value / (value + p[f"{condition.rpartition('_')[0]}_{NONREF}"])
                for condition, value in p.items()
            }
        for comparison in score.comparisons_of(experiment):  # type: ignore[arg-type]
            right[f"{comparison.name}:{family}"] += p[comparison.better] > p[comparison.worse]
    return right


@pytest.mark.parametrize("model", ["gpt2", "llama2_7B", "babbage-002"])
@pytest.mark.parametrize("experiment", ["base", "diff", "two"])
def test_recorded_accuracies_per_family(real_data: Path, experiment: str, model: str) -> None:
    folder = real_data / "lieder"
    rows = (folder / f"recorded/{experiment}_{model}.responses.jsonl").read_text().splitlines()
    answers = {tuple(row["arguments"]): row["response"] for row in map(json.loads, rows)}
    groups = load.read(folder / f"stimuli/{experiment}_stimuli.jsonl", experiment)  # type: ignore[arg-type]
    scored: list[dict[str, Any]] = []
    for group in groups:
        doc = load.to_document(group, experiment)  # type: ignore[arg-type]
        pairs = zip(doc["context"], doc["continuation"], strict=True)
        scored.append(score.process_results(doc, [answers[pair] for pair in pairs]))
    for metric in score.metrics_of(experiment):  # type: ignore[arg-type]
        theirs = authors_verdicts(folder, experiment, model, metric)
        file = folder / f"recorded/{experiment}_{model}.expected_{metric}.json"
        for name, figures in json.loads(file.read_text()).items():
            by_family = [theirs[f"{name}:{family}"] for family in FAMILIES]
            assert sum(by_family) == figures["correct"], "the families together are the authors'"
            for family, right in zip(FAMILIES, by_family, strict=True):
                ours = [doc[f"{metric}/{name}:{family}"] for doc in scored]
                assert Counter(ours) == {1.0: right, 0.0: 16 - right, None: 32} or right in (0, 16)
                assert sum(filter(None, ours)) == right
                assert ours.count(None) == 32


def test_every_metric_comes_per_family_and_only_in_its_own() -> None:
    doc = load.to_document(mini.groups()[1], "mini")
    scored = score.process_results(doc, [(-float(i * i % 7), False) for i in range(12)])
    whole = [name for name in scored if ":" not in name and not name.startswith("undefined")]
    assert len(whole) == 2 * 2 * (1 + 4 + 1 + 17), "values and standard errors"
    for name in whole:
        plain, ending = (name, "") if not name.endswith("_stderr") else (name[:-7], "_stderr")
        assert scored[f"{plain}:certain_unlikely{ending}"] == scored[name]
        for other in ("plain_negated", "able_unable"):
            assert scored[f"{plain}:{other}{ending}"] is None
    assert {one.cluster for one in scored.values() if one is not None} == {doc["item"]}


def test_the_card_knows_the_families() -> None:
    card = cards()["lieder"]
    assert card.parts == (*FAMILIES, *mini.FAMILIES)
    assert card.whole_and_part("mean:know_doubt") == ("mean", "know_doubt")
    assert card.whole_and_part("mean:knowing") == ("mean:knowing", "")


def test_human_figures_are_those_of_the_authors_file(shared_data: Path) -> None:
    with (shared_data / "lieder/human/human_accuracy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 544
    right: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        assert (float(row["good_rating"]) > float(row["bad_rating"])) is (row["correct"] == "1")
        right.setdefault((row["sent_type"], row["type"]), []).append(int(row["correct"]))
    (reference,) = cards()["lieder"].references
    assert reference.tasks == ("lieder_base",)
    assert {family for family, _ in right} == set(JUDGED)
    for (family, name), verdicts in right.items():
        assert len(verdicts) == 16
        assert reference.figures[f"{name}:{family}"] == sum(verdicts) / 16


def test_human_means_are_means_of_the_human_figures() -> None:
    (reference,) = cards()["lieder"].references
    means = {
        "mean": score.FIFTEEN,
        **{
            requirement: [c for c in score.SEVENTEEN if c.requirement == requirement]
            for requirement in (*score.REQUIREMENTS, score.DISTANCE)
        },
    }
    names = [*(c.name for c in score.SEVENTEEN), *means]
    assert set(reference.figures) == {f"{name}:{family}" for name in names for family in JUDGED}
    for family in JUDGED:
        for name, members in means.items():
            mean = sum(reference.figures[f"{c.name}:{family}"] for c in members) / len(members)
            assert reference.figures[f"{name}:{family}"] == pytest.approx(mean, abs=5e-5)


def board(task: str) -> TaskBoard:
    """A model whose score tells in which place its metric is listed."""
    experiment = task.partition("_")[2]
    names = [
        entry["metric"]
        for entry in score.metric_list(experiment)  # type: ignore[arg-type]
        if not entry["metric"].endswith("_stderr")
    ]
    scores = {name: Score(place / 1000, None) for place, name in enumerate(names)}
    return TaskBoard(task, "lieder", "direct/mean", runs={"a": Run(scores, (48, 48), "", None)})


def test_the_papers_own_tables_come_first() -> None:
    """Affirmative_negation alone, with humans; figure 6 sets the two experiments side by side."""
    both = [board("lieder_base"), board("lieder_diff")]
    first, second, *others = tables.of_benchmark(cards()["lieder"], both)
    assert first.title.startswith("lieder_base, affirmative_negation: ")
    assert not any(":" in column.label for column in first.columns), "the title names the family"
    assert {column.group for column in first.columns} == {"direct"}
    humans = {
        column.label: cell.value
        for column, cell in zip(first.columns, first.rows[1].cells, strict=True)
    }
    assert first.rows[1].published
    assert humans["pos_neg_s>pos_pos_s"] == 0.75, "section 5.1.1"
    ours = [task.runs["a"].scores for task in both]
    assert [cell.value for cell in second.rows[0].cells] == [
        scores[f"direct/{side}_s>pos_pos_s:affirmative_negation"].value
        for side in ("pos_neg", "neg_pos")
        for scores in ours
    ]
    families = {table.title.partition(":")[0] for table in others}
    assert families >= {f"{task.name}, {family}" for task in both for family in FAMILIES}, (
        "each family has tables of its own"
    )


@pytest.mark.parametrize("task", ["lieder_base", "lieder_diff", "lieder_two", "lieder_mini"])
def test_every_metric_is_on_the_page(task: str) -> None:
    one = board(task)
    shown = set()
    for table in tables.of_benchmark(cards()["lieder"], [one]):
        named, _, family = table.title.partition(":")[0].partition(", ")
        ending = f":{family}" if family else ""
        if named == task:
            shown |= {f"{column.group}/{column.label}{ending}" for column in table.columns}
    assert shown == set(one.runs["a"].scores) - {"undefined"}
