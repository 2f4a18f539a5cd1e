"""Scores per sentence family: what the recorded runs and the human judgments give."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.lieder import load, score
from lm_eval_ext.benchmarks.lieder.records import FAMILIES
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.stats.measures import Question

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
    scored: list[Any] = []
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
                facets = {"metric": metric, "comparison": name, "family": family}
                ours = [
                    row["correct"] for rows in scored for row in rows
                    if facets.items() <= row.items()
                ]  # fmt: skip
                assert (len(ours), sum(ours)) == (16, right)


def test_human_figures_are_those_of_the_authors_file(shared_data: Path) -> None:
    with (shared_data / "lieder/human/human_accuracy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 544
    right: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        assert (float(row["good_rating"]) > float(row["bad_rating"])) is (row["correct"] == "1")
        right.setdefault((row["sent_type"], row["type"]), []).append(int(row["correct"]))
    card = cards()["lieder"]
    assert {family for family, _ in right} == set(JUDGED)
    requirements = {c.name: c.requirement for c in score.SEVENTEEN}
    means: dict[tuple[str, str], list[float]] = {}
    for (family, name), verdicts in right.items():
        assert len(verdicts) == 16
        share = sum(verdicts) / 16
        assert humans(card, family, name, requirements[name]) == share
        means.setdefault((family, requirements[name]), []).append(share)
    for (family, requirement), shares in means.items():
        own = humans(card, family, None, requirement)
        assert own == pytest.approx(sum(shares) / len(shares), abs=5e-5)
    for family in JUDGED:
        of_family = [means[family, requirement] for requirement in score.REQUIREMENTS]
        fifteen = [share for shares in of_family for share in shares]
        assert humans(card, family, None, None) == pytest.approx(sum(fifteen) / 15, abs=5e-5)


def humans(card: Card, family: str, comparison: str | None, requirement: str | None) -> float:
    """The published figure behind a question."""
    where = {"family": (family,)}
    if requirement and (comparison is None or requirement == score.DISTANCE):
        where["requirement"] = (requirement,)
    if comparison:
        where["comparison"] = (comparison,)
    question = Question(card.question_of("direct").measure, where)
    (value,) = card.published("lieder_base", question).values()
    return value
