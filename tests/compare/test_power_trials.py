"""What trials, of some of a task's documents, say of its power, and how comparisons count them."""

import math
import re
from pathlib import Path

import pytest
from support.made_runs import make
from support.power_commands import power_command, unwrapped

from lm_eval_ext.compare.comparison import compare
from lm_eval_ext.compare.power import needed
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery

COGS_PILOT = "cogs_mini_gen"


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models on 40 of the 500 documents of COGS_PILOT, which has ten types."""
    folder = tmp_path_factory.mktemp("trials")
    make(folder / "good", [COGS_PILOT], seed=1, skill=0.9, name="good", limit=40)
    make(folder / "poor", [COGS_PILOT], seed=2, skill=0.4, name="poor", limit=40)
    return folder


def test_a_trial_says_how_many_documents_are_needed_at_least(trials: Path) -> None:
    """If documents do not depend on each other, the spread falls with the root of their number."""
    whole_task = needed([trials], task=COGS_PILOT)
    assert (whole_task.available, whole_task.items) == (10, 10)
    assert whole_task.shows is not None
    difference = round(whole_task.shows / 2, 3)
    estimate = needed([trials], task=COGS_PILOT, difference=difference)
    assert estimate.least_documents == math.ceil(40 * (whole_task.shows / difference) ** 2)
    output = power_command(trials, COGS_PILOT, "--difference", f"{difference}")
    least = estimate.least_documents
    assert f"needed: at least {least} of the task's 500 documents, in its 10" in output
    assert f"lm_eval --tasks {COGS_PILOT} --limit {least} --log_samples" in output
    assert "cannot show it" not in output
    assert "a trial of 40 of 500 documents" in unwrapped(output)
    assert (
        "10 generalization types with as many documents each as in this trial show: a difference "
        f"of {whole_task.shows:.3g} or more"
    ) in unwrapped(output), "otherwise it reads as a contradiction of what is needed"


def test_a_trial_that_shows_the_difference_needs_no_more_documents(trials: Path) -> None:
    shows = needed([trials], task=COGS_PILOT).shows
    assert shows is not None
    estimate = needed([trials], task=COGS_PILOT, difference=1.01 * shows)
    assert estimate.is_enough
    assert estimate.least_documents is None


def test_a_difference_that_all_documents_cannot_show_is_called_that(trials: Path) -> None:
    output = power_command(trials, COGS_PILOT, "--difference", "0.001")
    assert "this task cannot show it: it has too few generalization types" in output
    assert re.search(r"all 500 documents are too few, too: at least [\d,]+ would be", output)
    assert "only a larger difference can be shown" in output


def test_a_metric_about_a_part_has_its_own_clusters(trials: Path) -> None:
    """Of the ten types, some are lexical."""
    lexical = needed([trials], task=COGS_PILOT, metric="exact_match/lexical")
    assert lexical.available is not None
    assert 6 <= lexical.available < 10


def test_a_trial_of_fewer_documents_than_clusters_has_those_of_the_card(tmp_path: Path) -> None:
    for name, skill in (("good", 0.9), ("poor", 0.4)):
        make(tmp_path / name, [COGS_PILOT], seed=len(name), skill=skill, name=name, limit=8)
    assert needed([tmp_path], task=COGS_PILOT).available == 10


def test_only_of_a_whole_trial_the_number_of_all_documents_is_known(trials: Path) -> None:
    """A part of a trial stood beside all documents of the task, as if most of it were missing."""
    models = read_models([trials])
    (table,) = compare(models, [COGS_PILOT], ScoreQuery()).tables
    assert table.count.startswith("40/500 documents")
    part_query = ScoreQuery(("exact_match/lexical",))
    (part_table,) = compare(models, [COGS_PILOT], part_query).tables
    assert 0 < part_table.documents < 40
    assert part_table.total is None
