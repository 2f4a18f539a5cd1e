"""``--limit``: documents of every cluster and kind, and nothing else changes."""

from collections import Counter
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.cards import cards
from lm_eval_ext.runs.tasks import our_task_manager

EMBEDDED = ("lieder_mini", "cogs_mini_gen", "conceptual_mini", "diner_mini_name")
LIEDER, MAGNIFICO = cards()["lieder"].trial, cards()["magnifico"].trial
assert LIEDER and MAGNIFICO


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    found: dict[str, Any] = our_task_manager().load(list(EMBEDDED))["tasks"]
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
        clusters = {docs[place][card.cluster.column] for place in ids}
        assert len(clusters) == min(limit, len(set(docs[card.cluster.column])))
        assert set(ids) <= set(asked(task, limit + 5)), "smaller trials are parts of larger ones"
    assert asked(task, size + 1) == full


def test_ranks_share_a_trial(tasks: dict[str, Any]) -> None:
    task = tasks["lieder_mini"]
    parts = [asked(task, 10, rank=rank, world_size=3) for rank in range(3)]
    assert sorted(place for part in parts for place in part) == asked(task, 10)


def test_a_trial_is_signed_and_requests_are_never_kept(
    tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """lm-eval's key for kept requests knows no options, and it would take the first ones."""
    kept: list[Any] = []
    monkeypatch.setattr(
        "lm_eval.api.task.save_to_cache", lambda file_name, obj: kept.append(file_name)
    )
    task, signatures = tasks["lieder_mini"], {}
    for limit in (None, 10, 11):
        asked(task, limit, cache_requests=True)
        signatures[limit] = task.dump_config()["metadata"]["signature"].get("samples")
    assert signatures[None] is None and len(set(signatures.values())) == len(signatures)
    assert not kept


WORDS = st.sampled_from("abcd")


@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40))
def test_every_document_once_and_evenly(rows: list[tuple[str, str]]) -> None:
    docs = Dataset.from_list([{"item": item, "family": family} for item, family in rows])
    places = list(LIEDER.order(docs))
    assert sorted(places) == list(range(len(rows)))
    total = Counter(item for item, _ in rows)
    for taken in range(len(rows) + 1):
        some = Counter(rows[place][0] for place in places[:taken])
        least = min((some[item] for item in total if some[item] < total[item]), default=taken)
        assert all(count <= least + 1 for count in some.values()), "clusters take turns"


def test_the_forms_of_a_question_stay_together() -> None:
    docs = [
        {
            "db_id": f"db {template % 10}", "interpretation": f"meaning {template % 5}",
            "template": str(template), "form": form,
        }
        for template in range(30)
        for form in ("base", "plausible", "foreign")
    ]  # fmt: skip
    places = list(MAGNIFICO.order(Dataset.from_list(docs)))
    for taken in range(0, len(docs), 3):
        found = Counter(docs[place]["template"] for place in places[:taken])
        assert set(found.values()) <= {3}
    first = [docs[place] for place in places[:15]]
    assert len({doc["db_id"] for doc in first}) == len({d["interpretation"] for d in first}) == 5
