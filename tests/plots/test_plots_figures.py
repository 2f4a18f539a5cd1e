"""Figures hold the values of the results, where they belong; what is missing is said."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.figures import (
    Declared,
    Figure,
    declared,
    figure_of,
    figures,
    listed,
)
from lm_eval_ext.results.ask import Asked
from lm_eval_ext.results.ask import figures as asked_figures
from lm_eval_ext.results.models import Model, read_models
from lm_eval_ext.stats.measures import Measure


@pytest.mark.parametrize("figure", declared().values(), ids=declared())
def test_declarations_name_what_there_is(figure: Declared) -> None:
    card = cards()[figure.name.partition("-")[0]]
    assert figure.reading.endswith("."), "a sentence that says how to read it"
    for task in (*figure.tasks.values(), *figure.mini.values()):
        assert card_of(task) is card
    for metric in filter(None, figure.metrics.values()):
        assert metric in card.metrics or metric in card.measures
    assert {figure.by, *figure.where} - {""} <= set(card.facets)


def test_values_are_answers_to_the_question(models: list[Model]) -> None:
    figure = figure_of("lieder-requirements", models)
    card, shown = cards()["lieder"], figure.values.set_index(["model", "part"])
    for model in models:
        run = model.runs["lieder_mini"]
        ((_, question),) = Asked(by="requirement").questions("lieder_mini", run)
        for part, one in asked_figures(run, "lieder_mini", question):
            place = model.label, card.word(part["requirement"])
            if place in shown.index:
                found = shown.loc[place, ["value", "low", "high"]]
                assert list(found) == [one.value, one.low, one.high]
    assert len(shown) == 5 * len(models)
    assert figure.values["part"].iloc[0] == "existence", "as declared"
    assert figure.measure.chance == 0.5 and figure.ends == (0.0, 1.0)


def made(values: pd.DataFrame, **measure: Any) -> Figure:
    about = Declared(name="x-1", title="t", tasks={})
    return Figure(about, values, Measure(title="", value=("v",), **measure))


def test_a_missing_panel_flatters_no_model() -> None:
    """The order goes by the panels that all models have."""
    rows = [("strong", "easy", 0.9), ("strong", "hard", 0.2), ("weak", "easy", 0.6)]
    values = pd.DataFrame(rows, columns=["model", "part", "value"]).assign(
        published=False, task="", line="", metric=""
    )
    assert made(values).order() == ["strong", "weak"]
    assert made(values, lower_is_better=True).order() == ["weak", "strong"]


@pytest.mark.parametrize(
    ("unit", "value", "ends"),
    [("percent", 0.8, (0.0, 100.0)), ("share", 0.8, (0.0, 1.0)), ("points", -0.2, (-0.2, 0.0))],
)
def test_the_axis_goes_by_the_unit_not_by_the_values(unit: str, value: float, ends: Any) -> None:
    """A relative performance of 0.8 % lies at the left of an axis to 100."""
    values = pd.DataFrame([{"model": "m", "value": value, "low": None, "high": None}])
    assert made(values, unit=unit).ends == ends


def test_what_is_missing_is_said(models: list[Model], folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="diner-3 needs results of diner_name_tmcd"):
        figure_of("diner-3", models)
    with pytest.raises(OptionError, match=r"cogs-1 needs results of cogs_unmodified_gen, .*\.\.\."):
        figure_of("cogs-1", models)
    there = {figure.name for figure in figures(models)}
    told = dict(listed(models))
    assert {name for name, text in told.items() if "needs results" in text} == told.keys() - there
    for file in (folder / "alpha").glob("results_*"):
        (tmp_path / file.name).write_text(file.read_text())
    with pytest.raises(OptionError, match=r"magnifico-7: nothing to draw; alpha: .*no samples_"):
        figure_of("magnifico-7", read_models([tmp_path]))
    # What is not defined: not "it needs magnifico_mini", which is there.
    for file in (folder / "alpha").glob("samples_magnifico_mini*"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            for row in line["rows"]:
                row.update({"correct": 0.0} if "correct" in row else {})
        (tmp_path / file.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = "magnifico-7: nothing to draw; alpha, magnifico_mini: N/A, since no interpretation"
    with pytest.raises(OptionError, match=said):
        figure_of("magnifico-7", read_models([tmp_path]))


def test_names_and_numbers_are_data(models: list[Model]) -> None:
    """Dots and brackets in a model's name would be paths in names of fields."""
    figure = figure_of("lieder-requirements", models)
    odd = Figure(figure.declared, figure.values.replace("alpha", "a.b[0] (x: y)"), figure.measure)
    for row in odd.values.itertuples():
        assert f"{row.model} {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" in odd.alt
    assert "Chance is 0.5." in odd.alt
    assert re.search(r"a\.b\[0\] \(x: y\)", json.dumps(odd.spec()))
