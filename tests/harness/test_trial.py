"""``--limit``: documents of every cluster and kind, and nothing else changes."""

from collections import Counter
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.cards import cards
from lm_eval_ext.harness.trial import enough, order
from lm_eval_ext.runs.tasks import own_manager

EMBEDDED = ("lieder_mini", "cogs_mini_gen", "conceptual_mini", "diner_mini_name")
LIEDER, MAGNIFICO = cards()["lieder"], cards()["magnifico"]


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    found: dict[str, Any] = own_manager().load(list(EMBEDDED))["tasks"]
    return found


def asked(task: Any, limit: int | None, **options: Any) -> list[int]:
    task.build_all_requests(limit=limit, **options)
    ids = list(dict.fromkeys(request.doc_id for request in task.instances))
    again = task.doc_iterator(limit=limit, rank=0, world_size=1)
    if "rank" not in options:
        assert ids == [place for place, _ in again], "what is asked is what is scored"
    return ids


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_trial_is_spread(tasks: dict[str, Any], name: str) -> None:
    task = tasks[name]
    card = next(card for card in cards().values() if name in card.tasks)
    docs, size = task.eval_docs, len(task.eval_docs)
    full = asked(task, None)
    assert full == list(range(size)), "without a limit documents are in their order"
    for limit in (1, 6, 13):
        ids = asked(task, limit)
        assert len(ids) == limit and ids == sorted(ids)
        clusters = Counter(docs[place][card.cluster.column] for place in ids)
        all_clusters = len(set(docs[card.cluster.column]))
        assert len(clusters) == min(limit, all_clusters)
        if limit >= all_clusters:
            assert max(clusters.values()) - min(clusters.values()) <= 1
        assert set(ids) <= set(asked(task, limit + 5)), "smaller trials are parts of larger ones"
    assert asked(task, size + 1) == full


def test_ranks_share_a_trial(tasks: dict[str, Any]) -> None:
    task = tasks["lieder_mini"]
    parts = [asked(task, 10, rank=rank, world_size=3) for rank in range(3)]
    assert sorted(place for part in parts for place in part) == asked(task, 10)


def test_a_trial_is_signed(tasks: dict[str, Any]) -> None:
    task, signatures = tasks["lieder_mini"], {}
    for limit in (None, 10, 11):
        asked(task, limit)
        metadata = task.dump_config()["metadata"]
        signatures[limit] = metadata["signature"].get("samples")
        assert ("trial" in metadata) == (limit is not None)
    assert signatures[None] is None and len(set(signatures.values())) == len(signatures)
    asked(task, 4)
    assert task.dump_config()["metadata"]["trial"] == {"enough": 6}


def test_requests_that_lm_eval_keeps_are_those_of_the_trial(
    tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep all documents' requests, and take the first ones."""
    from lm_eval.api import task as lm_eval_task

    kept: dict[str, Any] = {}
    monkeypatch.setattr(
        lm_eval_task, "load_from_cache", lambda file_name, cache: kept.get(file_name)
    )
    monkeypatch.setattr(
        lm_eval_task, "save_to_cache", lambda file_name, obj: kept.update({file_name: obj})
    )
    task = tasks["lieder_mini"]
    for limit in (10, 20, 10, None, 20):
        ids = asked(task, limit, cache_requests=True)
        assert ids == asked(task, limit)


WORDS = st.sampled_from("abcd")


@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40))
def test_every_document_once_and_evenly(rows: list[tuple[str, str]]) -> None:
    docs = Dataset.from_list([{"item": item, "family": family} for item, family in rows])
    places = order(docs, LIEDER)
    assert places is not None and sorted(places) == list(range(len(rows)))
    total = Counter(item for item, _ in rows)
    for taken in range(len(rows) + 1):
        some = Counter(rows[place][0] for place in places[:taken])
        least = min((some[item] for item in total if some[item] < total[item]), default=taken)
        assert all(count <= least + 1 for count in some.values()), "clusters take turns"
    assert places == order(docs.to_list(), LIEDER), "a user's own function may give a list"


def forms(databases: int) -> list[dict[str, str]]:
    return [
        {
            "db_id": f"db {template % databases}", "interpretation": f"meaning {template % 5}",
            "template": str(template), "form": form,
        }
        for template in range(30)
        for form in ("base", "plausible", "foreign")
    ]  # fmt: skip


def test_the_forms_of_a_question_stay_together() -> None:
    docs = forms(10)
    places = order(docs, MAGNIFICO)
    assert places is not None
    for taken in range(0, len(docs), 3):
        found = Counter(docs[place]["template"] for place in places[:taken])
        assert set(found.values()) <= {3}
    first = [docs[place] for place in places[:15]]
    assert len({doc["db_id"] for doc in first}) == len({d["interpretation"] for d in first}) == 5


@pytest.mark.parametrize(
    ("databases", "own", "found"),
    [(10, False, 18), (5, False, None), (1, False, None), (1, True, 18)],
)
def test_how_many_would_do(databases: int, own: bool, found: int | None) -> None:
    docs = forms(databases)
    assert enough(docs, order(docs, MAGNIFICO) or [], MAGNIFICO, own=own) == found


def test_documents_without_the_columns_are_lm_evals_first() -> None:
    assert order([{"text": "x"}], LIEDER) is None
    assert order([{"text": "x"}], None) is None
