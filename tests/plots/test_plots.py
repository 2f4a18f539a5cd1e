"""Figures hold the values of the results, where they belong; missing results have a reason; files
of figures, and refused options."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import logged
from support.made_answers import MadeAnswers
from typer.testing import CliRunner

from lm_eval_ext.cards import Card, card_of, cards
from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.charts import PAPER
from lm_eval_ext.plots.declarations import Declared, declared
from lm_eval_ext.plots.figures import Figure, figure_of, figures, listed, write
from lm_eval_ext.plots.gaps import Gap, Gaps
from lm_eval_ext.results.models import Model, read_models
from lm_eval_ext.results.query import ScoreQuery, estimates
from lm_eval_ext.results.table import NoSamplesError
from lm_eval_ext.stats.measures import Measure, Question

pytestmark = pytest.mark.slow

TASKS = ["lieder_mini", "magnifico_mini", "conceptual_mini"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, run_cache: Path) -> Path:
    """Results of two models on embedded tasks, and of a third on one of them."""
    root = tmp_path_factory.mktemp("plots")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        for seed, name in enumerate(("alpha", "beta", "gamma")):
            tasks = TASKS if name != "gamma" else TASKS[:1]
            logged.evaluate(root / name, MadeAnswers(seed), tasks,
                            config={"model_args": {"seed": seed}}, name=name)  # fmt: skip
    return root


@pytest.fixture(scope="module")
def models(folder: Path) -> list[Model]:
    return read_models([folder])


@pytest.mark.parametrize("figure", declared().values(), ids=declared())
def test_declarations_name_existing_tasks_metrics_and_facets(figure: Declared) -> None:
    card = cards()[figure.name.partition("-")[0]]
    assert figure.reading.endswith("."), "a sentence that says how to read it"
    for task in (*figure.tasks.values(), *figure.mini.values()):
        task_card = card_of(task)
        assert task_card is not None
        assert task_card.name == card.name
    for metric in filter(None, figure.metrics.values()):
        assert metric in card.metrics or metric in card.measures
    assert {figure.by, *figure.where} - {""} <= set(card.facets)


def test_values_are_answers_to_the_question(models: list[Model]) -> None:
    figure = figure_of("lieder-requirements", models)
    shown = figure.values.set_index(["model", "part"])
    (model, *_) = models
    run = model.runs["lieder_mini"]
    ((_, question),) = ScoreQuery(by="requirement").questions(run)
    expected = {
        cards()["lieder"].word(part["requirement"]): [score.value, score.low, score.high]
        for part, score in estimates(run, question)
    }
    for part, numbers in shown.loc[model.label, ["value", "low", "high"]].iterrows():
        assert list(numbers) == expected[part]
    assert len(shown) == 5 * len(models)
    assert figure.values["part"].iloc[0] == "existence", "as declared"
    assert figure.measure.chance == 0.5
    assert figure.ends == (0.0, 1.0)


def a_figure(values: pd.DataFrame, **measure: Any) -> Figure:
    about = Declared(name="x-1", title="t", tasks={})
    return Figure(about, values, Measure(title="", value=("v",), **measure))


def test_a_missing_panel_flatters_no_model() -> None:
    """The order goes by the panels that all models have."""
    rows = [("strong", "easy", 0.9), ("strong", "hard", 0.2), ("weak", "easy", 0.6)]
    values = pd.DataFrame(rows, columns=["model", "part", "value"]).assign(
        published=False, task="", line="", metric=""
    )
    assert a_figure(values).order() == ["strong", "weak"]
    assert a_figure(values, lower_is_better=True).order() == ["weak", "strong"]


@pytest.mark.parametrize(
    ("unit", "value", "ends"),
    [("percent", 0.8, (0.0, 100.0)), ("share", 0.8, (0.0, 1.0)), ("points", -0.2, (-0.2, 0.0))],
)
def test_the_axis_goes_by_the_unit_not_by_the_values(unit: str, value: float, ends: Any) -> None:
    """A relative performance of 0.8 % lies at the left of an axis to 100."""
    values = pd.DataFrame([{"model": "m", "value": value, "low": None, "high": None}])
    assert a_figure(values, unit=unit).ends == ends


def test_missing_results_have_a_reason(models: list[Model], folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cogs-1 needs results of cogs_unmodified_gen, .*\.\.\."):
        figure_of("cogs-1", models)
    drawable = {figure.name for figure in figures(models)}
    assert listed(models).drawable.keys() == drawable
    assert all("needs results" in reason for reason in listed(models).absent)
    for file in (folder / "alpha").glob("results_*"):
        shutil.copy(file, tmp_path)
    with pytest.raises(OptionError, match=f"alpha: {NoSamplesError.reason}$"):
        figure_of("magnifico-7", read_models([tmp_path]))
    # Without a defined value the reason is not "it needs magnifico_mini", which is there.
    for file in (folder / "alpha").glob("samples_magnifico_mini*"):
        text = file.read_text().replace('"correct": 1.0', '"correct": 0.0')
        (tmp_path / file.name).write_text(text)
    message = "magnifico-7: nothing to draw; alpha: magnifico_mini: N/A, since no interpretation"
    with pytest.raises(OptionError, match=message):
        figure_of("magnifico-7", read_models([tmp_path]))


def test_the_list_begins_with_what_can_be_drawn_and_says_once_what_others_lack(
    models: list[Model], folder: Path, tmp_path: Path
) -> None:
    """Results without samples lack the same thing for many figures."""
    for file in (folder / "alpha").glob("results_*"):
        shutil.copy(file, tmp_path)
    result = CliRunner().invoke(app, ["plot", "--list", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    figures_of_models = listed(read_models([tmp_path]))
    count = len(figures_of_models.drawable)
    assert lines[0].startswith(f"{count} figure")
    names = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert names[1 : count + 1] == list(figures_of_models.drawable)
    assert " ".join(result.stdout.split()).count(NoSamplesError.reason) == 1
    assert max(map(len, lines)) <= 80


def questions_of(figure: Declared, card: Card) -> list[Question]:
    """Return a question for each metric and value of the figure."""
    facets: list[dict[str, tuple[str, ...]]] = [{}]
    if figure.values:
        facets = [{figure.by: (value,)} for value in figure.values]
    questions = []
    for name in figure.metrics.values():
        question = card.question_of(name or card.headline_of(card.metrics))
        for facet in facets:
            where = {**question.where, **figure.where, **facet}
            questions.append(Question(question.measure, where))
    return questions


def test_a_figure_of_the_paper_has_the_papers_values() -> None:
    """Each task of a paper's figure has published values under the figure's questions.

    An average over all of LIEDER's families, of which humans judged two, would lose them.
    """
    checked = 0
    for name, figure in declared().items():
        card = cards()[name.partition("-")[0]]
        tasks: set[str] = set()
        for reference in card.references:
            if reference.by and reference.by == figure.by:
                tasks.update(reference.tasks)
        if not figure.paper:
            continue
        for task in tasks.intersection(figure.tasks.values()):
            questions = questions_of(figure, card)
            assert any(card.published(task, question) for question in questions), (name, task)
            checked += 1
    assert checked


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("conceptual-2", "the paper's draws of documents", id="the paper's bootstrap"),
        pytest.param(
            "magnifico-6",
            "95 % intervals, clustered by interpretation",
            id="mini clusters",
        ),
        pytest.param("conceptual-labels", "95 % intervals, clustered by concept", id="clusters"),
    ],
)
def test_a_caption_says_what_its_bars_are(models: list[Model], name: str, words: str) -> None:
    """Draws of documents are half as wide as clustered intervals, and no measure of certainty."""
    caption = figure_of(name, models).caption
    assert words in caption
    assert ("95 % intervals" in caption) == ("95 % intervals" in words)


def read_results_with(folder: Path, changes: dict[str, Any], new_folder: Path) -> list[Model]:
    """Read a folder's results after changing their content, without copying the samples."""
    for file in folder.glob("results_*"):
        content = json.loads(file.read_text())
        for key, value in changes.items():
            content[key] = {**content[key], **value}
        (new_folder / file.name).write_text(json.dumps(content))
    return read_models([new_folder])


def test_a_caption_says_which_documents_the_values_rest_on(
    models: list[Model], folder: Path, tmp_path: Path
) -> None:
    """A trial, and a mini task, must not look like the whole of the paper's data."""
    whole = figure_of("lieder-requirements", models)
    assert "Measured on lieder_mini, which is smaller than the paper's data." in whole.caption
    counts = whole.values["documents"]
    numbers = re.search(r"Each value rests on (\d+)(?: to (\d+))? documents", whole.caption)
    assert numbers is not None
    shown = {int(group) for group in numbers.groups() if group}
    assert shown == {int(counts.min()), int(counts.max())}
    assert "Trials" not in whole.caption
    for samples in (folder / "gamma").glob("samples_*"):
        shutil.copy(samples, tmp_path)
    changes = {
        "config": {"limit": 40.0},
        "n-samples": {"lieder_mini": {"effective": 40, "original": 72}},
    }
    trial = figure_of("lieder-requirements", read_results_with(folder / "gamma", changes, tmp_path))
    assert "Trials: gamma (40 of 72 documents of lieder_mini)." in trial.caption


def test_results_that_cannot_be_drawn_do_not_keep_the_mini_tasks_from_being_drawn(
    models: list[Model], folder: Path, tmp_path: Path
) -> None:
    """A published result of the paper's task, without samples, stands beside own mini results."""
    for file in (folder / "alpha").glob("results_*"):
        text = file.read_text().replace("magnifico_mini", "magnifico_desc")
        (tmp_path / file.name).write_text(text.replace("alpha", "published"))
    published = read_models([tmp_path])
    assert "magnifico_desc" in published[0].runs
    with pytest.raises(OptionError, match=f"published: {NoSamplesError.reason}$"):
        figure_of("magnifico-6", published)
    figure = figure_of("magnifico-6", [*published, *models])
    assert figure.mini_tasks == ["magnifico_mini"]
    assert set(figure.values["model"]) == {"alpha", "beta"}
    assert figure.missing == [f"published: {NoSamplesError.reason}"]


def test_parts_that_are_metrics_are_drawn_without_samples(
    models: list[Model], folder: Path, tmp_path: Path
) -> None:
    """Others rarely publish samples with their results; the values are the same without."""
    for file in folder.glob("*/results_*"):
        shutil.copy(file, tmp_path)
    without_samples = figure_of("lieder-requirements", read_models([tmp_path]))
    with_samples = figure_of("lieder-requirements", models)
    assert without_samples.missing == []
    assert len(without_samples.values) == 5 * len(models)
    columns = ["model", "part", "value", "low", "high"]
    pd.testing.assert_frame_equal(without_samples.values[columns], with_samples.values[columns])


def test_models_of_mini_tasks_that_are_not_drawn_are_named(
    folder: Path, tmp_path: Path, models: list[Model]
) -> None:
    """Beside the paper's task, a model that has the mini task alone is missing, not forgotten."""
    for file in (folder / "gamma").iterdir():
        if file.is_file():
            text = file.read_text().replace("lieder_mini", "lieder_base")
            (tmp_path / file.name.replace("lieder_mini", "lieder_base")).write_text(text)
    figure = figure_of("lieder-requirements", [*read_models([tmp_path]), *models[:1]])
    assert figure.mini_tasks == []
    assert figure.missing == [
        f"{models[0].label}: only lieder_mini, and others have results on the paper's data"
    ]


def test_of_a_model_that_is_drawn_the_missing_values_are_named() -> None:
    """A message that a drawn model is left out was false: it lacked single values."""
    undefined = "mini: N/A, since no question is right"
    gaps = Gaps(
        [
            Gap("alpha", "paper", "", NoSamplesError.reason),
            Gap("alpha", "mini", "foreign", undefined),
            Gap("alpha", "mini", "plausible", undefined),
            Gap("beta", "paper", "", NoSamplesError.reason),
        ]
    )
    assert gaps.lines({"alpha"}) == [
        f"beta: {NoSamplesError.reason}",
        f"values of alpha on paper: {NoSamplesError.reason}",
        "values of alpha on mini (foreign, plausible): N/A, since no question is right",
    ]


def test_marks_at_zero_do_not_cover_the_names_of_lines(figure: Figure) -> None:
    """A mark has an area of 60 square points, so it reaches 4 to 5 points into the names."""
    assert '"labelPadding": 9' in json.dumps(figure.chart(900).to_dict())


def test_names_and_numbers_are_data(models: list[Model]) -> None:
    """Dots and brackets in a model's name would be paths in names of fields."""
    figure = figure_of("lieder-requirements", models)
    odd = Figure(figure.declared, figure.values.replace("alpha", "a.b[0] (x: y)"), figure.measure)
    for row in odd.values.itertuples():
        assert f"{row.model} {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" in odd.alt
    assert "Chance is 0.5." in odd.alt
    assert re.search(r"a\.b\[0\] \(x: y\)", json.dumps(odd.spec()))


@pytest.fixture(scope="module")
def figure(models: list[Model]) -> Figure:
    return figure_of("lieder-requirements", models)


def test_files_have_their_format_and_the_width(models: list[Model], tmp_path: Path) -> None:
    figure = figure_of("conceptual-4", models)  # one panel, which is drawn soonest
    pdf, png, html = (
        figure.save(tmp_path / f"a.{ending}").read_bytes() for ending in ("pdf", "png", "html")
    )
    (box,) = re.findall(rb"MediaBox ?\[0 0 ([\d.]+) [\d.]+\]", pdf)
    assert abs(float(box) - 936) <= 8
    assert png.startswith(b"\x89PNG")
    assert abs(int.from_bytes(png[16:20], "big") - 2 * 936) <= 16
    assert figure.title.encode() in html
    assert not re.findall(rb"<(?:script|link)[^>]* (?:src|href)=", html), "it needs no network"


def test_an_exported_figure_has_the_key_of_its_lines(figure: Figure) -> None:
    """The key of dotted lines, bars and hollow marks stands below the title."""
    drawn = re.sub('aria-label="[^"]*"|</?[a-z][^>]*>', "", figure._repr_svg_())
    assert "95 % intervals" in drawn
    assert "Dotted line: chance (0.5)." in drawn
    assert "Hollow marks" not in drawn
    assert not figure.values["published"].any()


def test_every_panel_of_several_rows_has_an_axis(figure: Figure) -> None:
    """A shared axis lies far from most panels, and above them it overlaps their names."""
    panels = figure.values["part"].nunique()
    assert panels == 5, "they take two rows"
    assert len(re.findall(">Accuracy<", figure._repr_svg_())) == panels


def test_names_of_tall_panels_do_not_overlap_an_axis_above_them(figure: Figure) -> None:
    first_panel = figure.values[figure.values["part"] == figure.values["part"].iloc[0]]
    rows = []
    for number in range(40):
        rows.append(first_panel.iloc[[0]].assign(model=f"model {number}"))
        rows.append(rows[-1].assign(part="distance"))
    spec = Figure(figure.declared, pd.concat(rows), figure.measure).chart(900).to_dict()
    assert '"orient": "top"' in json.dumps(spec)
    assert spec["resolve"]["axis"]["x"] == "independent"


def test_an_svg_for_a_page_is_transparent_and_has_no_title(figure: Figure) -> None:
    svg = figure.svg(page=True)
    paper = f'fill="{PAPER}"'
    assert paper in figure.svg()
    assert paper not in svg
    assert 'role="img" aria-label="Accuracy by requirement' in svg
    assert figure.title not in re.sub('aria-label="[^"]*"', "", svg)
    assert "<script" not in svg


def test_the_command_writes_all_or_one(models: list[Model], tmp_path: Path) -> None:
    single = tmp_path / "new" / "one.svg"
    assert list(write(models, ["conceptual-4"], single)) == [single]
    assert PAPER in single.read_text()
    assert 'aria-label="ROUGE-L, from random' in single.read_text()
    names = ["conceptual-2", "conceptual-4"]
    assert [path.stem for path in write(models, names, tmp_path / "all")] == names


@pytest.mark.parametrize(
    ("names", "output", "problem"),
    [
        (["lider-1"], "a.svg", "no figure 'lider-1'; did you mean lieder-1"),
        (["lieder-requirements"], "a.gif", "a.gif: use .svg, .pdf, .png, .html, .json"),
        ([], "a.svg", "for one --figure a file"),
        (["lieder-requirements"], None, "-o takes a folder"),
        (["conceptual-4"], "file/a.svg", "cannot write"),
    ],
)
def test_refused_figures_are_one_line_and_no_file(
    models: list[Model], tmp_path: Path, *, names: list[str], output: str | None, problem: str,
) -> None:  # fmt: skip
    (tmp_path / "file").write_text("in the way")
    path = None if output is None else tmp_path / output
    with pytest.raises(OptionError, match=re.escape(problem)) as raised:
        list(write(models, names, path))
    assert "\n" not in str(raised.value)
    assert [path_left.name for path_left in tmp_path.iterdir()] == ["file"]
