"""Both accuracies and their difference, with a paired interval."""

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lm_eval import simple_evaluate
from support.asking import of_one

from lm_eval_ext.benchmarks.cogs import load
from lm_eval_ext.benchmarks.cogs.overestimation import process_results
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, STRUCTURAL, kind_of
from lm_eval_ext.cards import cards
from lm_eval_ext.models.recorded import RecordedLM
from lm_eval_ext.runs.tasks import own_manager

pytestmark = pytest.mark.slow

OPTIONS = {"cogs_corpus": "mini", "cogs_lexicon": "fresh", "cogs_seed": 0}
TASK = "cogs_mini_overestimation"


def pairs() -> list[dict[str, Any]]:
    return list(load.pairs(**OPTIONS, cogs_shape="cvcv_short")["test"])


@pytest.mark.parametrize("right", [(True, True), (True, False), (False, True), (False, False)])
def test_one_document(right: tuple[bool, bool]) -> None:
    doc = next(doc for doc in pairs() if kind_of(doc["type"]) == LEXICAL)
    rows = process_results(
        doc, [form if ok else "" for form, ok in zip(doc["form"], right, strict=True)]
    )
    assert [row["substitution"] for row in rows] == ["without", "with"]
    assert [row["exact_match"] for row in rows] == list(right)
    assert {row["kind"] for row in rows} == {LEXICAL}
    assert of_one("cogs", rows, "difference") == right[0] - right[1]
    assert of_one("cogs", rows, "difference/lexical") == right[0] - right[1]
    assert of_one("cogs", rows, "difference/structural") is None
    swapped = process_results(doc, doc["form"][::-1])
    assert [row["exact_match"] for row in swapped] == [0.0, 0.0], "the other request's words"


def test_a_whole_run(tmp_path: Path) -> None:
    """Rates that differ by type, so that clusters matter; figures computed again by hand."""
    rng = random.Random(4)
    types = sorted({doc["type"] for doc in pairs()})
    rows, differences = [], defaultdict(list)
    for doc in pairs():
        first = rng.random() < 0.9
        second = rng.random() < types.index(doc["type"]) / len(types)
        differences[doc["type"]].append(first - second)
        for index, ok in enumerate((first, second)):
            answer = doc["form"][index] if ok else "no"
            rows.append({"doc": {"id": doc["id"]}, "idx": index, "response": answer})
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = simple_evaluate(
        model=RecordedLM(path=str(file)), tasks=[TASK], task_manager=own_manager(),
        bootstrap_iters=0,
    )  # fmt: skip
    assert results is not None
    found = results["results"][TASK]
    scores = {name.removesuffix(",none"): value for name, value in found.items()}
    for part in (None, LEXICAL, STRUCTURAL):
        means = [
            np.mean(values)
            for type_, values in differences.items()
            if part in (None, kind_of(type_))
        ]
        metric = f"difference/{part}" if part else "difference"
        assert scores[metric] == pytest.approx(np.mean(means))
        error = np.std(means, ddof=1) / np.sqrt(len(means))
        assert scores[f"{metric}_stderr"] == pytest.approx(error)
    both = scores["exact_match/without"] - scores["exact_match/with"]
    assert scores["difference"] == pytest.approx(both)


def test_published_overestimation_is_on_the_card() -> None:
    """The paper's "between 14 and 19 points" are differences of its own table."""
    card = cards()["cogs"]
    gen = {
        task: reference.figures["exact_match"]
        for reference in card.references
        if reference.label == "T5-base"
        for task in reference.tasks
        if task.endswith("_gen")
    }
    for lexicon in ("random_long", "random_short", "cvcv_long", "cvcv_short"):
        (figures,) = (
            r.figures for r in card.references if f"cogs_overestimation_{lexicon}" in r.tasks
        )
        without, with_ = gen["cogs_unmodified_gen"], gen[f"cogs_{lexicon}_gen"]
        assert figures["difference"] == pytest.approx(without - with_)
        assert 0.14 <= figures["difference"] < 0.195
