"""The spreads that `power` takes without a pilot are those of the authors' recorded models."""

import math
from pathlib import Path

import pytest
from support.lieder_recordings import scored_documents

from lm_eval_ext.benchmarks.lieder.records import Experiment
from lm_eval_ext.cards import cards
from lm_eval_ext.stats.statistics import pairs
from lm_eval_ext.stats.table import DocumentRows, frame

MODELS = ("gpt2", "llama2_7B", "babbage-002")
ITEMS = 16

# Experiment 3 repeats the comparisons of experiment 1, and only its own metric counts here.
EXPERIMENTS: dict[str, tuple[Experiment, ...]] = {
    "direct": ("base", "diff"),
    "direct/uniqueness+novelty": ("base", "diff"),
    "comparisons_with_two": ("two",),
}


def measured_spreads(folder: Path, experiment: Experiment, metric: str) -> list[float]:
    """Return the standard deviation of an item's mean difference, for each pair of models."""
    tables = {}
    for model in MODELS:
        documents: list[DocumentRows] = []
        for doc, rows in scored_documents(folder, experiment, model):
            name = f"{doc['item']} {doc['family']}"
            documents.append((name, name, (doc["item"],), rows))
        tables[model] = frame(documents)
    spreads = []
    for pair in pairs(tables, cards()["lieder"].question_of(metric)):
        assert pair.stderr is not None
        spreads.append(pair.stderr * math.sqrt(ITEMS))
    return spreads


@pytest.mark.parametrize("metric", sorted(cards()["lieder"].typical_spreads))
def test_typical_spreads_are_those_of_recorded_models(
    metric: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(shared_data))
    spreads = []
    for experiment in EXPERIMENTS[metric]:
        spreads += measured_spreads(shared_data, experiment, metric)
    typical = cards()["lieder"].typical_spreads[metric]
    assert typical.smallest == pytest.approx(min(spreads), abs=0.0005)
    assert typical.largest == pytest.approx(max(spreads), abs=0.0005)
    assert typical.pairs == len(spreads)
