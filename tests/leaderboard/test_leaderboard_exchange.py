"""results.json: its schema, adding others' models, what changed, a model's history."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.results_files import rows, write_run
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.compare.reading import read_models
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.leaderboard import exchange
from lm_eval_ext.leaderboard.board import Board, collect
from lm_eval_ext.leaderboard.changes import Change, changes
from lm_eval_ext.leaderboard.site import build

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>window.hurt = 1</script>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another group's page: of a model that we have not, and of one of the same name as ours."""
    folder = tmp_path_factory.mktemp("theirs")
    write_run(folder / "r" / "c", "model C", "some_task", rows(40, 38))
    write_run(folder / "r" / "a", "model A", "some_task", rows(40, 11))
    (folder / "r" / "c" / "model.yaml").write_text("size: 70B\nfamily: Far\n")
    build([folder / "r"], folder / "site")
    return folder / "site" / "results.json"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ours")
    write_run(folder / "a", "model A", "some_task", rows(40, 20))
    write_run(folder / "b", "model B", "some_task", rows(40, 5))
    return folder


def board(*paths: Path) -> Board:
    return collect(read_models(paths))


def changed(file: Path, folder: Path, change: Callable[[Any], None]) -> Path:
    content = json.loads(file.read_text())
    change(content)
    other = folder / "changed.json"
    other.write_text(json.dumps(content))
    return other


def test_the_published_schema_is_that_of_the_program_and_of_what_it_writes(theirs: Path) -> None:
    schema = json.loads((ROOT / "docs" / "results.schema.json").read_text())
    assert schema == json.loads(exchange.schema())
    assert schema == json.loads((theirs.parent / "results.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    content = json.loads(theirs.read_text())
    jsonschema.validate(content, schema)
    score = content["tasks"][0]["runs"]["model C"]["scores"]["exact_match"]
    assert score["value"] == 0.95 and score["clusters"] == 40 and score["method"] == "wilson"
    assert score["interval"][0] < 0.95 < score["interval"][1]
    del content["tasks"][0]["runs"]["model C"]["signature"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)


def test_what_is_read_again_is_the_same(ours: Path, tmp_path: Path) -> None:
    own = board(ours)
    exchange.write(own, tmp_path)
    again = exchange.read(tmp_path / exchange.NAME)
    assert [task.runs["model A"].scores for task in again.tasks] == [
        task.runs["model A"].scores for task in own.tasks
    ]
    assert [(m.label, m.arguments, m.about) for m in again.models] == [
        (m.label, m.arguments, m.about) for m in own.models
    ]
    # Merging what one has already changes nothing, in whichever order.
    for both in (exchange.merged(own, [again]), exchange.merged(None, [again, own])):
        assert [model.label for model in both.models] == ["model A", "model B"]
        assert all(run.comparable for task in both.tasks for run in task.runs.values())


def test_models_of_another_page_are_added(ours: Path, theirs: Path, tmp_path: Path) -> None:
    """One of the same name with other figures is another model, and says where it is from."""
    build([ours], tmp_path, merge=[theirs])
    found = exchange.read(tmp_path / exchange.NAME)
    labels = ["model A", "model A · results", "model B", "model C"]
    assert [model.label for model in found.models] == labels
    runs = found.tasks[0].runs
    values = {label: run.scores["exact_match"].value for label, run in runs.items()}
    assert values == dict(zip(labels, (0.5, 0.275, 0.125, 0.95), strict=True))
    assert found.models[-1].about.size == 70e9
    page = (tmp_path / "index.html").read_text()
    assert "from results</span>" in page
    # Without their samples ranks are from intervals; those of 20 and 11 of 40 overlap.
    assert "without allowance for the number of pairs: some_task" in page


def test_a_signature_that_differs_is_named_and_has_no_rank(
    ours: Path, theirs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def other_data(content: Any) -> None:
        run = content["tasks"][0]["runs"]["model C"]
        run["signature"] = run["signature"].replace("data:made", "data:other")

    with caplog.at_level(logging.WARNING, "lm_eval"):
        build([ours], tmp_path, merge=[changed(theirs, tmp_path, other_data)])
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        "changed: model C on some_task has no rank: it measured data other instead of made"
    )
    page = (tmp_path / "index.html").read_text()
    assert "measured differently from most (40 of 40 documents; other: data" in page


def test_hostile_names_stay_text(theirs: Path, tmp_path: Path) -> None:
    def hostile(content: Any) -> None:
        content["models"][1]["label"] = HOSTILE
        content["models"][1]["about"]["family"] = HOSTILE
        runs = content["tasks"][0]["runs"]
        runs[HOSTILE] = runs.pop("model C")
        runs[HOSTILE]["scores"][HOSTILE] = {"value": 0.5}
        runs[HOSTILE]["signature"] += HOSTILE

    page = build([], tmp_path / "site", merge=[changed(theirs, tmp_path, hostile)]).read_text()
    assert "hurt" in page
    assert "<script>window" not in page
    assert not {"\x1b", "\u202e"} & set(page)


def remove_model(content: Any) -> None:
    content["models"] = content["models"][:1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(format=2), "format"),
        (lambda content: content.pop("tasks"), "tasks: the key is missing"),
        (lambda content: content.update(more=1), "more: unknown key"),
        (lambda content: content["tasks"][0].update(runs={"x": {}}), "tasks.0.runs.x"),
        (remove_model, "some_task has runs of 'model C', no model there"),
    ],
)
def test_what_is_no_results_json_is_one_line(
    theirs: Path, tmp_path: Path, change: Callable[[Any], None], message: str
) -> None:
    file = changed(theirs, tmp_path, change)
    with pytest.raises(DataError) as error:
        exchange.read(file)
    assert str(file) in str(error.value) and message in str(error.value)
    assert "\n" not in str(error.value)


def test_on_the_command_line(theirs: Path, tmp_path: Path) -> None:
    """Without results of one's own, and with nothing at all."""
    command = ["leaderboard", "-o", str(tmp_path / "site")]
    done = CliRunner().invoke(app, [*command, "--merge", str(theirs)])
    assert done.exit_code == 0 and (tmp_path / "site" / "index.html").is_file()
    for wrong in ([], ["--merge", str(tmp_path / "none.json")], ["--merge", str(ROOT)]):
        done = CliRunner().invoke(app, [*command, *wrong])
        assert isinstance(done.exception, LmEvalExtError), wrong


def test_what_changed_since_the_last_page(ours: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "r" / "a", "model A", "some_task", rows(40, 20))
    write_run(tmp_path / "r" / "gone", "model X", "some_task", rows(40, 20))
    page = build([tmp_path / "r"], tmp_path / "site")
    assert "Since the last page" not in page.read_text()
    page = build([tmp_path / "r"], tmp_path / "site")
    assert "nothing has changed" in page.read_text()
    before = board(tmp_path / "r")
    write_run(tmp_path / "s" / "a", "model A", "some_task", rows(40, 30))
    write_run(tmp_path / "s" / "a2", "model A", "other_task", rows(40, 10), date="2026-02-01T0")
    write_run(tmp_path / "s" / "new", "model N", "some_task", rows(40, 20))
    found = changes(before, board(tmp_path / "s"))
    assert (found.models_new, found.models_gone) == (("model N",), ("model X",))
    assert found.results == (
        Change("new", "model A", "other_task", None, 0.25),
        Change("changed", "model A", "some_task", 0.5, 0.75),
    )
    assert found.results[1].better
    page = build([tmp_path / "s"], tmp_path / "site")
    text = page.read_text()
    assert "1 new model, 1 gone, 2 results changed" in text
    assert "0.500 → 0.750" in text and "(+0.250, better)" in text
    # A results.json that cannot be read is none.
    (tmp_path / "site" / "results.json").write_text("{}")
    assert "Since the last page" not in build([tmp_path / "s"], tmp_path / "site").read_text()


@pytest.mark.parametrize(
    ("change", "better"),
    [
        (Change("changed", "m", "t", 0.5, 0.6), True),
        (Change("changed", "m", "t", 0.6, 0.5), False),
        (Change("changed", "m", "t", 0.6, 0.5, lower=True), True),
        (Change("changed", "m", "t", 0.5, 0.6, lower=True), False),
        (Change("changed", "m", "t", 0.5, 0.6, remeasured=True), None),
        (Change("new", "m", "t", None, 0.6), None),
    ],
)
def test_better_is_said_only_of_what_can_be_compared(change: Change, better: bool | None) -> None:
    assert change.better is better


def test_history_and_seconds(tmp_path: Path) -> None:
    """Two results on one task; the newer counts, the older is history."""
    for day, right, data in ((1, 10, "made"), (2, 20, "other"), (3, 30, "made")):
        date = f"2026-01-0{day}T03-04-05.000000"
        file = write_run(
            tmp_path / "a", "model A", "some_task", rows(40, right), date=date, data=data
        )
        content = json.loads(file.read_text())
        file.write_text(json.dumps({**content, "total_evaluation_time_seconds": str(day * 1.5)}))
    write_run(tmp_path / "b", "model B", "some_task", rows(40, 5))
    found = board(tmp_path)
    (past,) = found.histories()
    assert past[0] == "model A"
    told = [(one.date[:10], one.value, same) for _, one, same in past[1]]
    assert told == [
        ("2026-01-01", 0.25, True), ("2026-01-02", 0.5, False), ("2026-01-03", 0.75, True),
    ]  # fmt: skip
    assert found.seconds("model A") == 4.5
    assert found.seconds("model B") is None
    page = build([tmp_path], tmp_path / "site").read_text()
    assert "History of <bdi>model A" in page and "History of <bdi>model B" not in page
    again = exchange.read(tmp_path / "site" / "results.json")
    assert next(iter(again.histories()))[1][0][1] == past[1][0][1]


def test_tokens_and_cost(tmp_path: Path) -> None:
    """Known of one model, of half the tasks of another, and not at all where they are broken."""
    tokens = {"some_task": {"input": 2_000_000, "output": 5000}}
    for name, tasks, counted in (
        ("a", ["some_task"], tokens),
        ("b", ["some_task", "other_task"], tokens),
        ("c", ["some_task"], {"some_task": {"input": "many"}}),
    ):
        for task in tasks:
            file = write_run(tmp_path / name / task, name, task, rows(40, 20))
            content = json.loads(file.read_text())
            file.write_text(json.dumps({**content, "tokens": counted}))
        (tmp_path / name / "model.yaml").write_text("price: [0.5, 2]\n")
    found = board(tmp_path)
    assert [found.tokens(name) for name in "abc"] == [(2_000_000, 5000), None, None]
    assert found.models[0].about.cost(found.tokens("a")) == pytest.approx(1.01)
    assert [task for task, _ in found.taken(found.models[1])] == ["some_task"]
    page = build([tmp_path], tmp_path / "site").read_text()
    assert page.count("<td>2,000,000</td><td>5,000</td><td>1.01</td>") == 2
    assert page.count(">2M</td>") == 1
    again = exchange.read(tmp_path / "site" / "results.json")
    assert again.tokens("a") == found.tokens("a")
    assert [one.about for one in again.models] == [one.about for one in found.models]


def test_no_results_at_all() -> None:
    with pytest.raises(OptionError):
        collect([])
