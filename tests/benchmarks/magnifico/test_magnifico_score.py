"""Metrics of a task, and the metrics that a document counts in."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lm_eval_ext.benchmarks.magnifico.score import Outcome, Scopes, by_execution, tabulate
from lm_eval_ext.sql import Status

ENDINGS = ("", "_stderr")


def columns(*rows: tuple[str, str, str]) -> dict[str, list[str]]:
    names = ("form", "category", "interpretation")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


WHOLE = columns(
    ("base", "basic", "maximum"),
    ("plausible", "basic", "maximum"),
    ("foreign", "basic", "maximum"),
    ("base", "column", "height"),
    ("plausible", "column", "height"),
)
ONE_FORM = columns(("base", "basic", "maximum"), ("plausible", "basic", "maximum"))


def names_of(documents: Mapping[str, Sequence[str]]) -> list[str]:
    return [entry["metric"] for entry in Scopes(documents).metric_list()]


def both(*names: str) -> list[str]:
    return [name + ending for name in names for ending in ENDINGS]


def test_the_metrics_of_a_task_with_everything() -> None:
    expected = []
    for database in ("populated/", "original/"):
        relative = f"{database}relative_performance"
        expected += both(relative, f"{relative}:plausible", f"{relative}:foreign")
        expected += both(*(f"{relative}:{part}" for part in ("basic", "column")))
        expected += both(*(f"{relative}:{part}" for part in ("maximum", "height")))
        for accuracy in (f"{database}execution_accuracy", f"{database}average_execution_accuracy"):
            expected += both(
                *(f"{accuracy}:{part}" for part in ("base", "novel", "plausible", "foreign"))
            )
        expected += both(*(database + cause for cause in ("error", "timeout", "too_large")))
    assert names_of(WHOLE) == [*expected, *both("no_query")]


def test_a_single_form_or_category_has_no_metrics_of_its_own() -> None:
    expected = []
    for database in ("populated/", "original/"):
        relative = f"{database}relative_performance"
        expected += [*both(relative), *both(f"{relative}:maximum")]
        for accuracy in (f"{database}execution_accuracy", f"{database}average_execution_accuracy"):
            expected += both(*(f"{accuracy}:{part}" for part in ("base", "novel")))
        expected += both(*(database + cause for cause in ("error", "timeout", "too_large")))
    assert names_of(ONE_FORM) == [*expected, *both("no_query")]


def test_the_direction_and_the_aggregation_of_a_metric() -> None:
    entries = {entry["metric"]: entry for entry in Scopes(WHOLE).metric_list()}
    for ending in ENDINGS:
        entry = entries[f"original/relative_performance:foreign{ending}"]
        assert entry["aggregation"] == f"magnifico_relative_performance{ending}"
        assert entry["higher_is_better"] == (not ending)
        assert entry.get("range") == (None if ending else [0, 100])
    assert entries["populated/execution_accuracy:base"]["higher_is_better"]
    for ending in ENDINGS:
        entry = entries[f"original/average_execution_accuracy:foreign{ending}"]
        assert entry["aggregation"] == f"magnifico_average_accuracy{ending}"
        assert entry["higher_is_better"] == (not ending)
    for name in ("populated/error", "original/timeout", "original/too_large", "no_query"):
        assert not entries[name]["higher_is_better"]


def scored(
    form: str, populated: Status, original: Status, *, query_found: bool = True
) -> dict[str, Outcome | None]:
    doc = {"form": form, "category": "basic", "interpretation": "maximum", "db_id": "Yard"}
    return Scopes(WHOLE).metrics(
        doc, {"populated": populated, "original": original}, query_found=query_found
    )


def test_every_metric_has_a_value_in_the_order_of_the_list() -> None:
    found = scored("foreign", "wrong_result", "correct")
    assert set(found) == set(names_of(WHOLE))
    for name, value in found.items():
        for ending in ENDINGS[1:]:
            assert found.get(name + ending, value) is value


APPLIES = {
    # relative performance: overall, plausible, foreign, basic, column, maximum, height
    "base": [True, True, True, True, False, True, False],
    "plausible": [True, True, False, True, False, True, False],
    "foreign": [True, False, True, True, False, True, False],
}


@pytest.mark.parametrize("form", APPLIES)
def test_a_document_counts_in_its_own_subsets(form: str) -> None:
    found = scored(form, "correct", "wrong_result")
    for database, value in (("populated", 1.0), ("original", 0.0)):
        relative = f"{database}/relative_performance"
        parts = ("", ":plausible", ":foreign", ":basic", ":column", ":maximum", ":height")
        expected = [value if applies else None for applies in APPLIES[form]]
        assert [found[relative + part] for part in parts] == expected
        for part, applies in (
            ("base", form == "base"),
            ("novel", form != "base"),
            ("plausible", form == "plausible"),
            ("foreign", form == "foreign"),
        ):
            for accuracy in ("execution_accuracy", "average_execution_accuracy"):
                assert found[f"{database}/{accuracy}:{part}"] == (value if applies else None)
    outcome = found["populated/relative_performance"]
    assert outcome is not None
    assert (outcome.interpretation, outcome.form, outcome.cluster) == ("maximum", form, "yard")


CAUSES: dict[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_failure_counts_under_its_cause(cause: str) -> None:
    found = scored("base", CAUSES[cause], "correct", query_found=False)
    assert [found[f"populated/{name}"] for name in CAUSES] == [name == cause for name in CAUSES]
    assert [found[f"original/{name}"] for name in CAUSES] == [0, 0, 0]
    assert found["populated/execution_accuracy:base"] == 0
    assert found["no_query"] == 1
    assert scored("base", "correct", "correct")["no_query"] == 0


def test_the_table_of_counts() -> None:
    outcomes: list[Any] = [
        Outcome(True, "b", "base", "u"),
        Outcome(False, "b", "base", "v"),
        Outcome(True, "b", "plausible", "u"),
        Outcome(True, "b", "plausible", "u"),
        Outcome(False, "b", "foreign", "v"),
        Outcome(True, "a", "foreign", "v"),
        Outcome(True, "c", "base", "w"),
    ]
    # Pairs: a foreign, b foreign, b plausible; columns: base right, base, novel right, novel.
    total, by_cluster = tabulate(outcomes)
    assert total == [[0, 0, 1, 1], [1, 2, 0, 1], [1, 2, 2, 2]]
    assert by_cluster == {
        "u": [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 2, 2]],
        "v": [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0]],
        "w": [[0, 0, 0, 0]] * 3,
    }


def test_a_document_that_cannot_be_scored_counts_nowhere() -> None:
    scopes, asked = Scopes(ONE_FORM), []

    def execute(doc: Mapping[str, str], query: str) -> Mapping[str, Status] | None:
        asked.append(query)
        return None if doc["db_id"] == "gone" else {"populated": "wrong", "original": "correct"}

    doc = {"interpretation": "maximum", "form": "plausible", "category": "basic", "db_id": "gone"}
    assert by_execution(doc, ["SELECT 1"], scopes=scopes, execute=execute) == {}
    found = by_execution({**doc, "db_id": "yard"}, [""], scopes=scopes, execute=execute)
    assert set(found) == set(names_of(ONE_FORM))
    name = "execution_accuracy:novel"
    assert (found[f"populated/{name}"], found[f"original/{name}"]) == (0, 1)
    assert found["no_query"] == 1
    assert asked == ["SELECT 1", ""]
