"""Which samples have enough companions that share a concept: the published numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.conceptual import demonstrations, load
from lm_eval_ext.benchmarks.conceptual.load import Options
from lm_eval_ext.benchmarks.conceptual.records import Sample, plain
from lm_eval_ext.harness.names import TOO_FEW

GLUE = "conceptual/glue_diagnostics/diagnostic-full.tsv"
R4C = "conceptual/r4c/dev_csf.json"


@dataclass(frozen=True)
class Selection:
    """The demonstrations of each sample, and how many samples have too few companions."""

    choices: Mapping[str, Any]
    too_few: int


def select(samples: Sequence[Sample], k: int = 3, **options: Any) -> Selection:
    """Choose ``k`` demonstrations for each sample under these options."""
    rows = []
    for sample in samples:
        rows.append({"id": sample.id, "copy_key": sample.copy_key, "concepts": sample.concepts})
    choices, excluded = demonstrations.choose(rows, Options(**options), k, 1234)
    return Selection(choices, too_few=len(excluded.get(TOO_FEW, ())))


def test_glue_gives_the_papers_282_samples(shared_data: Path) -> None:
    """The others have too few companions."""
    selection = select(load.glue(shared_data / GLUE))
    assert len(selection.choices) == 282, "the paper's number"
    assert selection.too_few == 28


@pytest.mark.parametrize(("selection", "shown_swapped"), [("random", 5), ("concept", 32)])
def test_a_swapped_pair_of_glue_is_no_copy(
    shared_data: Path, selection: str, shown_swapped: int
) -> None:
    """Some samples are shown the pair with premise and hypothesis swapped, as documented."""
    samples = load.glue(shared_data / GLUE)
    pairs = {}
    for sample in samples:
        pairs[sample.id] = (plain(sample.context), plain(sample.question))
    count = 0
    for name, choice in select(samples).choices.items():
        premise, hypothesis = pairs[name]
        shown = {pairs[companion] for companion in choice[selection].ids}
        count += (hypothesis, premise) in shown
    assert count == shown_swapped


def samples_with(concepts_by_name: Mapping[str, frozenset[str]]) -> list[Sample]:
    """Return a sample for each name, with these concepts and a question of its own."""
    return [Sample(name, name, "", concepts) for name, concepts in concepts_by_name.items()]


@pytest.mark.slow
def test_r4c_gives_the_papers_182_samples(shared_data: Path) -> None:
    """Only 182 of 2209 questions have three companions that share a relation and its object."""
    explained = load.r4c(shared_data / R4C)
    selection = select(samples_with(explained))
    assert len(selection.choices) == 182, "the paper's number"
    assert selection.too_few == 2209 - 182
    for name, choice in selection.choices.items():
        for companion in choice["concept"].ids:
            assert explained[name] & explained[companion], (name, companion)


@pytest.mark.slow
def test_absent_relations_count_in_r4c(shared_data: Path) -> None:
    """Some annotators found no relation, and as documented, these samples count, too."""
    explained = load.r4c(shared_data / R4C)
    absent = {"None None"}
    assert sum(absent <= concepts for concepts in explained.values()) == 10
    without_absent = {name: concepts - absent for name, concepts in explained.items()}
    assert len(select(samples_with(without_absent)).choices) == 173


def samples_like_worldtree() -> list[Sample]:
    """Return as many samples as the paper has, a tenth of which share no fact with others."""
    samples = []
    for number in range(2206):
        fact = f"alone{number}" if number % 10 == 0 else f"kind{number % 60}"
        samples.append(Sample(f"{number}", f"{number}?", "it", frozenset([fact])))
    return samples


def test_at_overlap_zero_the_paper_has_2204_of_2206() -> None:
    """All samples but two are in 551 clusters of four."""
    selection = select(samples_like_worldtree(), dataset="worldtree", min_overlap=0)
    assert len(selection.choices) == 2204
    assert selection.too_few == 2
    clusters = set()
    for name, choice in selection.choices.items():
        clusters.add(frozenset((name, *choice["concept"].ids)))
    assert len(clusters) == 551


def test_with_a_fact_in_common_fewer_samples_have_companions() -> None:
    """By default, samples whose fact is theirs alone have too few."""
    selection = select(samples_like_worldtree(), dataset="worldtree")
    assert len(selection.choices) == 2206 - 221
