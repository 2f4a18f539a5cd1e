"""Each benchmark's view of its samples, on its embedded documents as they are logged."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.tasks import TaskManager
from support.results_files import DATE, write_run

from lm_eval_ext.cards import cards
from lm_eval_ext.leaderboard.site import build
from lm_eval_ext.tasks import tasks_folder

MINI = (
    "lieder_mini", "magnifico_mini", "cogs_mini_gen", "cogs_mini_icl_gen",
    "cogs_mini_overestimation", "conceptual_mini", "diner_mini_icl",
)  # fmt: skip


@pytest.fixture(scope="module")
def manager() -> TaskManager:
    return TaskManager(include_defaults=False, include_path=tasks_folder())


def documents(manager: TaskManager, name: str, kept_cache: Path) -> list[dict[str, Any]]:
    """The first documents as lm-eval logs them: through JSON."""
    assert kept_cache
    task = manager.load(name)["tasks"][name]
    docs = task.test_docs()
    found: list[dict[str, Any]] = json.loads(json.dumps([docs[i] for i in range(5)]))
    return found


def answers(task: str, docs: list[dict[str, Any]]) -> list[list[str]]:
    if task == "lieder_mini":
        return [[f"[{-number}.5, false]" for number in range(len(doc["context"]))] for doc in docs]
    if task == "magnifico_mini":
        return [[doc["query"]] for doc in docs[:-1]] + [["SELECT nothing FROM nowhere"]]
    return [["first answer", "second answer"] for _ in docs]


@pytest.mark.parametrize("name", MINI)
def test_embedded_documents(name: str, manager: TaskManager, kept_cache: Path) -> None:
    benchmark = name.partition("_")[0]
    view = import_module(f"lm_eval_ext.benchmarks.{benchmark}.view")
    docs = documents(manager, name, kept_cache)
    shown = view.documents(docs)
    answered = view.answers(docs, answers(name, docs))
    assert len(shown) == len(answered) == len(docs)
    assert all(one.title and one.gold for one in shown)
    assert len({one.title for one in shown}) > 1
    for part in (part for one in (*shown, *answered) for part in one.parts):
        assert part.title
        assert part.text or part.table
        assert len({len(row) for row in part.table}) <= 1


def test_both_results_of_a_query(manager: TaskManager, kept_cache: Path) -> None:
    """The gold's answer returns the gold's rows; one that does not run says why."""
    from lm_eval_ext.benchmarks.magnifico import view

    docs = documents(manager, "magnifico_mini", kept_cache)
    answered = view.answers(docs, answers("magnifico_mini", docs))
    for one in answered[:-1]:
        (gold,) = one.parts
        assert gold.beside is not None
        assert gold.table == gold.beside.table != ()
        assert gold.marked == gold.beside.marked == ()
    (gold,) = answered[-1].parts
    assert gold.beside is not None
    assert gold.table and "nowhere" in gold.beside.text
    assert view.answers(docs[:1], [[""]])[0].parts == ()


def rows_of(*rows: tuple[Any, ...]) -> Any:
    return SimpleNamespace(columns=("a", "b"), rows=list(rows))


@pytest.mark.parametrize(
    ("gold", "answer", "marked"),
    [
        # Nothing is marked in rows that are equal, whatever their order and their numbers' types.
        ([(1, "x"), (2, "y")], [(2, "y"), (1, "x")], ((), ())),
        ([(1, None)], [(1.0, None)], ((), ())),
        ([(0.1 + 0.2, "x")], [(0.3, "x")], ((), ())),
        ([], [], ((), ())),
        # What only one of the two has is marked, and what one has too often.
        ([(1, "x"), (2, "y")], [(1, "x"), (2, "z")], ((1,), (1,))),
        ([(1, "x")], [(1, "x"), (1, "x")], ((), (1,))),
        ([(1, "x")], [("1", "x")], ((0,), (0,))),
        ([(None, "x")], [("", "x")], ((0,), (0,))),
        ([(1, "x")], [], ((0,), ())),
        ([(1, "x")], [(1,)], ((0,), (0,))),
    ],
)
def test_rows_that_differ_are_marked(gold: Any, answer: Any, marked: Any) -> None:
    from lm_eval_ext.benchmarks.magnifico import view

    (part,) = view._both(rows_of(*gold), rows_of(*answer))
    assert part.beside is not None
    assert (part.marked, part.beside.marked) == marked


def test_a_row_that_differs_is_shown_among_many() -> None:
    from lm_eval_ext.benchmarks.magnifico import view

    many = [(number, "x") for number in range(100)]
    (part,) = view._both(rows_of(*many), rows_of(*many[:60], (60, "y"), *many[61:]))
    assert part.beside is not None
    assert part.beside.table[-1] == ("60", "y")
    assert part.beside.marked == (view.MOST_ROWS - 1,)
    assert part.beside.title == "What the answer returns, 100 rows of which 8 are shown"


def test_why_each_demonstration_was_chosen(manager: TaskManager, kept_cache: Path) -> None:
    from lm_eval_ext.benchmarks.conceptual import view

    docs = documents(manager, "conceptual_mini", kept_cache)
    at_random, sharing = view.documents(docs)[0].parts
    assert [why for _, why in at_random.table[1:]] == docs[0]["random_why"]
    assert [name for name, _ in sharing.table[1:]] == docs[0]["concept_demonstrations"]


def test_the_likeliest_continuation_comes_first() -> None:
    from lm_eval_ext.benchmarks.lieder import view

    doc = {"condition": ["a", "b", "c"]}
    (shown,) = view.answers([doc], [["[-3.0, False]", "-1.5", "broken"]])
    assert shown.answer == "likeliest: b"
    assert shown.parts[0].table[1:] == (("b", "-1.500"), ("a", "-3.000"))


def test_samples_of_another_version_are_shown_as_text(tmp_path: Path) -> None:
    rows = [
        {"doc": {"item": "dog"}, "prompt": "A dog.", "target": "x", "answer": "y", "score": 0.0}
    ]
    write_run(tmp_path, "one", "lieder_mini", rows, metric="direct/mean", date=DATE)
    build([tmp_path], tmp_path / "site")
    (index,) = (tmp_path / "site").rglob("index.js")
    assert "A dog." in index.read_text()


def test_every_benchmark_has_a_view() -> None:
    for name in cards():
        assert find_spec(f"lm_eval_ext.benchmarks.{name}.view") is not None, name
