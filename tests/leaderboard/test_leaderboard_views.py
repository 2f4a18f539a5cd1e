"""Each benchmark's view of its samples, on its embedded documents as they are logged."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.tasks import TaskManager
from support.page import answers as said_by
from support.page import samples_in
from support.results_files import DATE, write_run

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
    shown = view.documents(docs, [[]] * len(docs))
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
    golds = [one.parts[0] for one in view.documents(docs, [[]] * len(docs))]
    assert all(part.beside for part in golds), "once, beside those of the answers"
    answered = [one.parts[0] for one in view.answers(docs, answers("magnifico_mini", docs))]
    for gold, answer in zip(golds[:-1], answered[:-1], strict=True):
        assert gold.table == answer.table != ()
        assert gold.marked == answer.marked == ()
    assert golds[-1].table and "nowhere" in answered[-1].text
    assert view.answers(docs[:1], [[""]])[0].parts == ()


MANY = [(number, "x") for number in range(100)]
"""Of which eight are shown, with what differs among them."""


def rows_of(*rows: tuple[Any, ...]) -> Any:
    return SimpleNamespace(columns=("a", "b"), rows=list(rows))


@pytest.mark.parametrize(
    ("gold", "answer", "missing", "marked"),
    [
        # Nothing is marked in rows that are equal, whatever their order and their numbers' types.
        ([(1, "x"), (2, None)], [(2.0, None), (1, "x")], 0, ()),
        # What only one of the two has is marked, and what one has too often.
        ([(1, "x"), (2, "y")], [(1, "x"), (2, "z")], 1, (1,)),
        ([(1, "x")], [(1, "x"), (1, "x")], 0, (1,)),
        ([(None, "x")], [("", "x")], 1, (0,)),
        ([(1, "x")], [(1,)], 1, (0,)),
        ([(0.1 + 0.2, "x")], [(0.3, "x")], 1, (0,)),
        (MANY, [*MANY[:60], (60, "y"), *MANY[61:]], 1, (7,)),
    ],
)
def test_rows_that_differ_are_marked(gold: Any, answer: Any, missing: int, marked: Any) -> None:
    from lm_eval_ext.benchmarks.magnifico import view

    part = view._compared(rows_of(*gold), rows_of(*answer))
    assert part.marked == marked
    assert part.title.endswith("missing") == bool(missing)
    assert f"{missing} of the gold's are missing" in part.title or not missing


def test_comparisons_that_failed_come_first_by_how_many_nats(
    manager: TaskManager, kept_cache: Path
) -> None:
    """All right but one: the singular after two goats is more probable than after one."""
    from lm_eval_ext.benchmarks.lieder import view

    (doc, *_) = documents(manager, "lieder_mini", kept_cache)
    likely = dict.fromkeys(doc["condition"], -9.0)
    likely |= {name: -3.0 - place / 2 for place, name in enumerate(doc["felicitous"])}
    likely["neg_pos_s"], likely["pos_neg_s"], likely["pos_pos_s"] = -2.0, -3.0, -2.5
    likely["neg_pos_p"], likely["pos_pos_p"] = -8.0, -1.0
    asked = [f"[{likely[name]}, False]" for name in doc["condition"]]
    (shown,) = view.answers([doc], [asked])
    assert shown.answer == "16 of 17 comparisons right"
    _, first, *others = shown.parts[0].table
    item = doc["item"]
    what = f"the {item}: a {item}, no {item} > a {item}, a {item}"
    assert first == ("wrong", what, "-0.50")
    assert shown.parts[0].marked == (0,) and {row[0] for row in others} == {"right"}
    (broken,) = view.answers([doc], [["broken"]])
    assert broken.answer == "(no log-probabilities)"


def test_components_of_a_name_are_hit_missing_or_extra() -> None:
    from lm_eval_ext.benchmarks.diner import view

    cases = {
        "烤鸡翅": ["hit", "hit"],
        "蒸鸡翅": ["extra", "hit", "missing"],
        "烤鸡翅鸡翅": ["hit", "hit"],
    }  # fmt: skip
    for answer, said in cases.items():
        (shown,) = view.answers([{"answer": "烤鸡翅"}], [[answer]])
        assert sorted(row[2] for row in shown.parts[0].table[1:]) == said
    (shown,) = view.answers([{"answer": "烤鸡翅"}], [["x"]])
    assert "does not parse" in shown.parts[0].text


def test_samples_of_another_version_are_shown_as_text(tmp_path: Path) -> None:
    rows = [
        {"doc": {"item": "dog"}, "prompt": "A dog.", "target": "x", "answer": "y", "score": 0.0}
    ]
    write_run(tmp_path, "one", "lieder_mini", rows, metric="direct/mean", date=DATE)
    content = samples_in(build([tmp_path], tmp_path / "site"))["lieder_mini"]
    assert content["documents"][0][:3] == ["A dog.", "", "x"]
    assert said_by(content, "one") == ["y"]
