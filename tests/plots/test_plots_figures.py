"""Figures hold the values of the results, where they belong."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from plots_names import OTHER, TASK, TESTED
from support.results_files import rows, write_run

from lm_eval_ext.benchmarks.lieder.score import metric_list
from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.compare.command import run as compare
from lm_eval_ext.compare.reading import Model, read_models
from lm_eval_ext.compare.report import Settings
from lm_eval_ext.plots.content import JOIN, LINE, MEASURED, PUBLISHED, Content, rows_of
from lm_eval_ext.plots.declared import Declared, declared
from lm_eval_ext.plots.drawing import VERSION, themed
from lm_eval_ext.plots.figures import Figure, figures, needed
from lm_eval_ext.plots.points import DAGGER, Point, size_of
from lm_eval_ext.text import quantity

ALL = [(name, one) for name, group in declared().items() for one in group]


@pytest.fixture(scope="module")
def found(models: list[Model]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(models)}


def of_kind(figure: Figure, kind: str) -> list[dict[str, Any]]:
    return [row for row in rows_of(figure.content) if row["kind"] == kind]


def test_offered_is_what_has_values(found: dict[str, Figure]) -> None:
    assert list(found) == ["lieder-1", "lieder-6", "lieder-8", "lieder-11"]
    others = needed(list(found.values()))
    assert others.keys() | found.keys() == {one.name for _, one in ALL}
    assert others["lieder-1-mini"] == "lieder_mini"
    assert "pretraining_tokens" in others["cogs-3"]
    assert not figures([])


def test_values_and_intervals_are_those_of_the_results(
    models: list[Model], found: dict[str, Figure]
) -> None:
    measured = {
        (row["panel"], row["model"]): (row["value"], row.get("low"), row.get("high"))
        for row in of_kind(found["lieder-1"], MEASURED)
    }
    expected = {}
    for model in models:
        scores = model.runs[TASK].scores(TASK)
        for panel, metric in (("neg_pos_s > pos_pos_s", TESTED), ("pos_neg_s > pos_pos_s", OTHER)):
            expected[panel, model.label] = (scores[metric].value, *scores[metric].interval)
    assert measured == expected


def test_published_values_are_those_of_the_card(found: dict[str, Figure]) -> None:
    (humans,) = [one for one in cards()["lieder"].references if one.label == "humans"]
    lines = {row["panel"]: row["value"] for row in of_kind(found["lieder-1"], LINE)}
    assert lines == {
        panel: humans.figures[f"{code}:affirmative_negation"]
        for panel, code in found["lieder-1"].content.declared.panels.items()
        if code.endswith(">pos_pos_s")  # the made results have no other
    }
    assert "Dashed line: humans." in found["lieder-1"].caption
    assert found["lieder-1"].content.chance == cards()["lieder"].chance


def test_alternative_text_has_the_numbers(found: dict[str, Figure]) -> None:
    text = found["lieder-1"].alt
    for row in of_kind(found["lieder-1"], MEASURED):
        assert f"{row['model']} {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in text
    assert "humans 0.812" in text
    assert "Chance is 0.5." in text


def test_joined_are_those_that_compare_cannot_tell_apart(
    folder: Path, found: dict[str, Figure]
) -> None:
    text, _ = compare([folder], Settings(metrics=(TESTED,)), format_="json")
    letters = {row["system"]: row["group"] for row in json.loads(text)["figures"]}
    groups = {
        letter: {name for name in letters if letter in letters[name]}
        for letter in "".join(letters.values())
    }
    expected = [group for group in groups.values() if len(group) > 1]
    joins = found["lieder-1"].content.joins
    assert [set(group) for group in joins["neg_pos_s > pos_pos_s", "", ""]] == expected
    assert expected == [{"alpha", "beta"}]
    # Without samples of the metric, overlapping intervals decide.
    assert [set(group) for group in joins["pos_neg_s > pos_pos_s", "", ""]] == [
        {"alpha", "beta", "gamma"}
    ]
    lanes = {row["lane"] for row in of_kind(found["lieder-1"], JOIN)}
    assert lanes == {0}


def test_other_documents_get_a_dagger(folder: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "d", "delta", TASK, rows(8, 8), metric=TESTED)
    (figure,) = figures(read_models([folder, tmp_path]), only=["lieder-1"])
    assert f"delta {DAGGER}" in figure.content.models
    assert f"{DAGGER}: measured differently" in figure.caption
    joined = figure.content.joins["neg_pos_s > pos_pos_s", "", ""]
    assert all(f"delta {DAGGER}" not in group for group in joined)


@pytest.mark.parametrize(("benchmark", "one"), ALL, ids=[one.name for _, one in ALL])
def test_every_figure_compiles(benchmark: str, one: Declared) -> None:
    """And asks for tasks and metrics that there are."""
    assert any(map(card_of, one.tasks()))
    names = [f"model {place}" for place in range(3)]
    xs = iter(range(10**6))
    places = [
        (panel, row, series) for panel in one.panels for row in one.rows for series in one.series
    ]
    points = [
        Point(place, name, 0.4, 0.3, 0.5, published=name == names[2], x=next(xs), group=name)
        for place in places
        for name in names
    ]
    joins = {places[0]: [names[:2]]} if one.kind == "dots" else {}
    figure = Figure(benchmark, Content(one, tuple(points), tuple(names), joins, 0.5))
    compiled = vl_convert.vegalite_to_vega(figure.spec, vl_version=VERSION, show_warnings=True)
    values = [one["values"] for one in compiled["data"] if "values" in one]
    assert [len(one) for one in values] == [len(rows_of(figure.content))]
    assert figure.alt
    assert "Hollow marks: published" in figure.caption
    if benchmark == "lieder":
        for _, task, metric in one.cells():
            known = metric_list(task.removeprefix("lieder_"))
            assert metric in {entry["metric"] for entry in known}


def drawn(figure: Figure) -> list[list[tuple[float, float]]]:
    """By panel, the places of the filled and hollow dots: values on the axis, and lines."""
    spec = themed(figure, "light")
    width = spec["spec"]["width"]
    graph = vl_convert.vegalite_to_scenegraph(spec, vl_version=VERSION)["scenegraph"]

    def dots(node: dict[str, Any]) -> list[tuple[float, float]]:
        here = [
            (round(item["x"] / width, 6), round(item["y"], 3))
            for item in node.get("items", ())
            if node.get("marktype") == "symbol" and not node.get("role", "").startswith("legend")
        ]
        return here + [dot for item in node.get("items", ()) for dot in dots(item)]

    def cells(node: dict[str, Any]) -> list[dict[str, Any]]:
        own = [node] if node.get("name") == "cell" else []
        return own + [cell for item in node.get("items", ()) for cell in cells(item)]

    (group,) = cells(graph)
    return [dots(cell) for cell in group["items"]]


def test_marks_stand_in_their_panels_also_beside_an_empty_one() -> None:
    declaration = Declared(
        name="made-1", title="t", axis="a", panels={"p one": "p", "q two": "q"},
        rows={"r": "r", "s": "s"}, value="{panel} {row}",
    )  # fmt: skip
    points = (
        Point(("p one", "r", ""), "m", 0.1),
        Point(("q two", "r", ""), "m", 0.2),
        Point(("q two", "s", ""), "m", 0.4),
        Point(("q two", "s", ""), "n", 0.3, published=True),
    )
    content = Content(declaration, points, ("m", "n"), {})
    first, second, empty, last = drawn(Figure("lieder", content))
    assert [x for x, _ in first] == [0.1]
    assert [x for x, _ in second] == [0.2]
    assert empty == []
    assert [x for x, _ in last] == [0.4, 0.3]
    assert last[0][1] == first[0][1] < last[1][1]
    kinds = [row["kind"] for row in rows_of(content)]
    assert kinds.count(PUBLISHED) == 1


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"kind": "arrows"}, "two series"),
        ({"x": "size"}, "for curves"),
        ({"kind": "curve"}, "for curves"),
        ({"lines": "row", "series": {"a": "a", "b": "b"}}, "one series"),
        ({"name": "No 1"}, "pattern"),
    ],
)
def test_a_declaration_that_cannot_be_drawn_is_refused(
    changed: dict[str, Any], problem: str
) -> None:
    right = {"name": "made-1", "title": "t", "axis": "a", "value": "task metric"}
    assert Declared(**right).tasks() == ["task"]
    with pytest.raises(ValueError, match=re.escape(problem)):
        Declared(**{**right, **changed})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7e9, 7e9), ("7B", 7e9), ("350 M", 350e6), ("1.5b", 1.5e9), ("1T", 1e12), ("12", 12),
        (0, 0),
        (True, None), ("", None), ("B", None), ("7 B parameters", None), (float("nan"), None),
        (None, None), ("-1", None),
    ],
)  # fmt: skip
def test_quantities(value: object, expected: float | None) -> None:
    assert quantity(value) == expected


@pytest.mark.parametrize(
    ("label", "about", "expected"),
    [
        ("pythia-160m", {}, 160e6), ("Llama-2-7B-chat", {}, 7e9), ("org/T0-3B (paper)", {}, 3e9),
        ("pythia-160m", {"size": "1B"}, 1e9),
        ("gpt2", {}, None), ("GPT-4o", {}, None), ("model 3by", {}, None), ("v1.5m2", {}, None),
    ],
)  # fmt: skip
def test_sizes(label: str, about: dict[str, object], expected: float | None) -> None:
    assert size_of(label, about) == expected


def test_points_of_a_family_are_joined_by_split(tmp_path: Path) -> None:
    """As DiNeR's: share and divergence are those of the data, or the share that of the file."""
    for name, share, divergence in (("a", "0.4", "0.8"), ("b", "1", "0.8"), ("c", "0.4", "0.6")):
        more = {"micro_f1,none": 0.5}
        file = write_run(
            tmp_path / name, name, "diner_name_tmcd", rows(8, 4), more=more, data=divergence
        )
        content = json.loads(file.read_text())
        signature = content["configs"]["diner_name_tmcd"]["metadata"]["signature"]
        signature |= {"share": share, "divergence": divergence}
        file.write_text(json.dumps(content))
        key = "training_share: 0.2\n" if name == "c" else ""
        (tmp_path / name / "model.yaml").write_text(f"family: T5\n{key}")
    (figure,) = figures(read_models([tmp_path]), only=["diner-5"])
    assert {(one.model, one.x, one.group) for one in figure.content.points} == {
        ("a", 0.4, "T5, divergence 0.8"),
        ("b", 1.0, "T5, divergence 0.8"),
        ("c", 0.2, "T5, divergence 0.6"),
    }
