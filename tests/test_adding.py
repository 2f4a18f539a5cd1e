"""A benchmark outside the package: the example of docs/adding.md, known by its YAML alone."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command
from support.logged import evaluate
from support.made_answers import MadeAnswers
from typer.testing import CliRunner

from lm_eval_ext._autoload import install
from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.lm_eval_types import TaskManager
from lm_eval_ext.harness.preflight import check
from lm_eval_ext.runs.tasks import our_task_manager

ROOT = Path(__file__).parents[1]
PLURALS = ROOT / "examples" / "plurals"
QUIZ = ROOT / "examples" / "quiz"


@pytest.fixture(autouse=True)
def hooked() -> None:
    """Install the hooks, as every Python does that reads the start-up file."""
    install()


def output_of(*words: object) -> str:
    """Run a command of ours; return what it prints."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two models on the example."""
    folder = tmp_path_factory.mktemp("plurals")
    for name, right in (("better", 0.9), ("worse", 0.2)):
        model = MadeAnswers(right=right)
        evaluate(folder / name, model, ["plurals"], include=[str(PLURALS)], name=name)
    return folder


def test_the_example_is_small_and_the_page_shows_it() -> None:
    files = [path for path in PLURALS.iterdir() if path.is_file()]
    assert len(files) == 5
    assert sum(len(path.read_text().splitlines()) for path in files) <= 115
    page = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    for name in ("plurals.yaml", "plurals.py"):
        assert (PLURALS / name).read_text(encoding="utf-8") in page, name


def test_every_command_knows_the_examples_card(results: Path, tmp_path: Path) -> None:
    by_ending = output_of("show", results, "--by", "ending")
    assert "clustered by noun" in by_ending
    assert {"s", "es"} <= {line.split()[0] for line in by_ending.splitlines() if line.strip()}
    shown = output_of("show", results)
    assert shown.index("accuracy") < shown.index("no_answer"), "the headline is the first"
    comparison = json.loads(output_of("compare", results, "--format", "json"))
    assert [(table["task"], table["title"]) for table in comparison["tables"]] == [
        ("plurals", "Accuracy")
    ]
    assert "noun" in json.dumps(comparison["tables"]), "what intervals are clustered by"
    assert "noun" in output_of("power", "plurals", results, "--difference", "0.2")
    output_of("leaderboard", results, "-o", tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "forming the plural of a noun never seen" in page
    assert "Accuracy, es" in page


def test_a_quiz_shows_its_options_with_their_log_probabilities(tmp_path: Path) -> None:
    """The example of multiple choice, from the task to a sample."""
    model = MadeAnswers(right=0.5)
    evaluate(tmp_path / "a", model, ["quiz"], include=[str(QUIZ)], name="a")
    by_category = output_of("show", tmp_path, "--by", "category")
    assert {"calendar", "shapes"} <= set(by_category.split())
    assert "0.25" in output_of("show", tmp_path), "what chance is"
    samples = output_of("samples", tmp_path, "--task", "quiz", "--where", "category=calendar")
    first_sample = samples.split("── 1")[1].split("── 2")[0]
    assert re.search(
        r"question +Question: Which month comes after June\?\n +Answer:\n", first_sample
    )
    assert re.search(r"gold +July\n", first_sample)
    for option in ("July", "May", "March", "October"):
        assert re.search(rf"-?\d+\.\d{{3}} {option}\n", first_sample), option


WITHOUT_LM_EVAL = """
import importlib, pkgutil, sys
sys.modules["lm_eval"] = None
from lm_eval_ext import benchmarks
sys.path.append("examples/plurals")
modules = pkgutil.walk_packages(benchmarks.__path__, "lm_eval_ext.benchmarks.")
for name in ["plurals", *(module.name for module in modules)]:
    if not name.endswith(".task"):
        importlib.import_module(name)
"""


@pytest.mark.e2e
def test_benchmarks_but_for_their_tasks_do_without_lm_eval() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_LM_EVAL], cwd=ROOT, check=True)


def manager_of_copy(folder: Path, change: Callable[[str], str]) -> TaskManager:
    """Copy the example and change its task file; return a task manager of the copy."""
    shutil.copytree(PLURALS, folder, dirs_exist_ok=True)
    file = folder / "plurals.yaml"
    file.write_text(change(file.read_text()))
    return our_task_manager([str(folder)])


def with_two_tasks(text: str) -> str:
    """Return the example's file with two tasks and a group of them."""
    before, _, after = text.partition("metadata:")
    common = before + after[after.index("card:") :]
    return (
        common.replace("task: plurals\n", "").replace(
            "card:\n", "card:\n  groups: {all: [p2, p3]}\n"
        )
        + "tasks:\n"
        "  p2: {metadata: {version: '1.0'}}\n"
        "  p3:\n"
        "    about: {title: Three}\n"
        "    description: 'Count! '\n"
        "    metadata: {version: '2.0', plurals_number: three}\n"
    )


def test_a_file_may_hold_several_tasks_and_groups(tmp_path: Path) -> None:
    manager = manager_of_copy(tmp_path, with_two_tasks)
    assert {"p2", "p3"} <= {*manager.all_subtasks}
    assert "plurals" not in manager.all_tasks
    loaded = manager.load("all")["tasks"]
    assert list(loaded) == ["p2", "p3"]
    assert [task.VERSION for task in loaded.values()] == ["1.0", "2.0"]
    three = manager.load(["p3"])["tasks"]["p3"]
    three.build_all_requests(limit=1, rank=0, world_size=1)
    prompt = three.instances[0].args[0]
    assert prompt.startswith("Count! This is a")
    assert prompt.endswith("three")
    metadata = three.dump_config()["metadata"]
    assert metadata["card"]["tasks"] == {"p2": {}, "p3": {"title": "Three"}}
    assert metadata["signature"]["version"] == "2.0"
    assert metadata["signature"]["number"] == "three"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        pytest.param(
            "plurals.documents",
            "plural.documents",
            "plurals: ImportError: Cannot import module",
            id="no such module",
        ),
        pytest.param(
            "plurals.score",
            "plurals.scores",
            "plurals: AttributeError: .* has no function 'scores'",
            id="no such function",
        ),
        pytest.param(
            "generation_kwargs",
            "generation",
            "plurals: TypeError: .* argument 'generation'",
            id="no such key",
        ),
    ],
)
def test_a_mistake_in_a_task_file_is_one_line(
    old: str, new: str, error: str, tmp_path: Path
) -> None:
    manager = manager_of_copy(tmp_path, lambda text: text.replace(old, new))
    with pytest.raises(DataError, match=error):
        check(manager, ["plurals"])


def test_a_task_file_without_a_mistake_passes(tmp_path: Path) -> None:
    check(manager_of_copy(tmp_path, lambda text: text), ["plurals"])


def test_a_users_file_that_includes_one_wins(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    manager_of_copy(tmp_path / "base", with_two_tasks)
    user_folder = tmp_path / "user"
    user_folder.mkdir()
    users_file = "include: ../base/plurals.yaml\ntask: {}\ndescription: 'Mine: '\n"
    (user_folder / "p3.yaml").write_text(users_file.format("p3"))
    (user_folder / "p4.yaml").write_text(users_file.format("p4") + "metadata: {version: '4'}\n")
    loaded = our_task_manager([str(user_folder)]).load(["p3", "p4"])["tasks"]
    for name, version, number in (("p3", "2.0", "three"), ("p4", "4", "two")):
        task = loaded[name]
        task.build_all_requests(limit=1, rank=0, world_size=1)
        prompt = task.instances[0].args[0]
        assert prompt.startswith("Mine: This")
        assert prompt.endswith(number)
        assert task.dump_config()["metadata"]["signature"]["version"] == version


@pytest.mark.e2e
def test_plain_lm_eval_runs_the_example(lm_eval: Command) -> None:
    completed = lm_eval("--include_path", str(PLURALS), "--tasks", "plurals", "--model", "dummy")
    assert completed.returncode == 0, completed.stderr[-2000:]
    assert "accuracy/es" in completed.stdout
    endings: set[str] = set()
    for sample in completed.samples("plurals"):
        endings.update(row["ending"] for row in sample["rows"])
    assert endings == {"s", "es"}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        pytest.param("a,Right?,No,No", "question 1: the same option twice", id="same option"),
        pytest.param("a,Right?,No,", "question 1: no wrong option", id="one option"),
        pytest.param("a,Right?,,No", "question 1: no right", id="no answer"),
        pytest.param("a,Right?,No,Yes,Why", "question 1: more cells", id="too many cells"),
    ],
)
def test_a_question_that_cannot_be_scored_is_refused(
    tmp_path: Path, cells: str, message: str
) -> None:
    """A quiz whose options were the same, or empty, was scored without a word."""
    module = a_quiz(tmp_path, f"category,question,right,wrong_1\n{cells}\n")
    with pytest.raises(DataError, match=message):
        list(module.documents.__wrapped__(module.Options()))


def test_questions_have_as_many_options_as_their_rows(tmp_path: Path) -> None:
    """Columns may be added, and cells may be empty: a fifth option was left out in silence."""
    heading = "category,question,right,wrong_1,wrong_2,wrong_3,wrong_4"
    rows = "a,Which?,r,w,x,y,z\na,Right?,Yes,No,,,"
    module = a_quiz(tmp_path, f"{heading}\n{rows}\n")
    documents = module.documents.__wrapped__(module.Options())
    assert [document["continuation"] for document in documents] == [
        [" r", " w", " x", " y", " z"],
        [" Yes", " No"],
    ]


def a_quiz(folder: Path, questions: str) -> Any:
    """Return the module of a copy of the quiz with other questions."""
    shutil.copy(QUIZ / "quiz.py", folder)
    (folder / "questions.csv").write_text(questions)
    spec = importlib.util.spec_from_file_location("a_quiz", folder / "quiz.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
