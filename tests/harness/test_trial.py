"""``--limit``: documents of every cluster and kind, and nothing else changes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.cards import cards
from lm_eval_ext.runs.tasks import our_task_manager

EMBEDDED = ("lieder_mini", "cogs_mini_gen", "conceptual_mini", "diner_mini_name")
LIEDER = cards()["lieder"].trial
MAGNIFICO = cards()["magnifico"].trial


@pytest.fixture(scope="module")
def tasks() -> Mapping[str, Any]:
    """The embedded tasks by name."""
    return our_task_manager().load(list(EMBEDDED))["tasks"]


def requested(task: Any, limit: int | None, **options: object) -> list[int]:
    """Return the indices of the documents that requests are built of, which are those scored."""
    task.build_all_requests(limit=limit, **options)
    indices = list(dict.fromkeys(request.doc_id for request in task.instances))
    if "rank" not in options:
        scored = task.doc_iterator(limit=limit, rank=0, world_size=1)
        assert indices == [index for index, _ in scored]
    return indices


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_trial_is_spread_over_clusters(tasks: Mapping[str, Any], name: str) -> None:
    task = tasks[name]
    card = next(card for card in cards().values() if name in card.tasks)
    docs = task.eval_docs
    all_documents = list(range(len(docs)))
    cluster_of = docs[card.cluster.column]
    assert requested(task, None) == all_documents, "without a limit documents are in their order"
    for limit in (1, 6, 13):
        trial = requested(task, limit)
        assert len(trial) == limit
        assert trial == sorted(trial)
        clusters = {cluster_of[index] for index in trial}
        assert len(clusters) == min(limit, len(set(cluster_of)))
        larger_trial = requested(task, limit + 5)
        assert set(trial) <= set(larger_trial), "smaller trials are parts of larger ones"
    assert requested(task, len(docs) + 1) == all_documents


def test_ranks_share_a_trial(tasks: Mapping[str, Any]) -> None:
    task = tasks["lieder_mini"]
    shares: list[int] = []
    for rank in range(3):
        shares += requested(task, 10, rank=rank, world_size=3)
    assert sorted(shares) == requested(task, 10)


def test_a_trial_is_signed_and_requests_are_never_kept(
    tasks: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """lm-eval's key for kept requests knows no options, and it would take the first ones."""
    kept: list[str] = []

    def save_to_cache(file_name: str, obj: object) -> None:
        kept.append(file_name)

    monkeypatch.setattr("lm_eval.api.task.save_to_cache", save_to_cache)
    task = tasks["lieder_mini"]
    signed_samples = {}
    for limit in (None, 10, 11):
        requested(task, limit, cache_requests=True)
        signed_samples[limit] = task.dump_config()["metadata"]["signature"].get("samples")
    assert signed_samples[None] is None
    assert len(set(signed_samples.values())) == 3
    assert kept == []


WORDS = st.sampled_from("abcd")


@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40))
def test_an_order_has_every_document_once_and_clusters_take_turns(
    rows: list[tuple[str, str]],
) -> None:
    docs = Dataset.from_list([{"item": item, "family": family} for item, family in rows])
    assert LIEDER is not None
    order = list(LIEDER.order(docs))
    assert sorted(order) == list(range(len(rows)))
    totals = Counter(item for item, _ in rows)
    for size in range(len(rows) + 1):
        taken = Counter(rows[index][0] for index in order[:size])
        unfinished = [taken[item] for item in totals if taken[item] < totals[item]]
        least = min(unfinished, default=size)
        assert max(taken.values(), default=0) <= least + 1


def test_the_forms_of_a_question_stay_together() -> None:
    docs = [
        {
            "db_id": f"db {template % 10}", "interpretation": f"meaning {template % 5}",
            "template": str(template), "form": form,
        }
        for template in range(30)
        for form in ("base", "plausible", "foreign")
    ]  # fmt: skip
    assert MAGNIFICO is not None
    order = list(MAGNIFICO.order(Dataset.from_list(docs)))
    for size in range(0, len(docs), 3):
        forms_taken = Counter(docs[index]["template"] for index in order[:size])
        assert set(forms_taken.values()) <= {3}
    trial = [docs[index] for index in order[:15]]
    assert len({doc["db_id"] for doc in trial}) == 5
    assert len({doc["interpretation"] for doc in trial}) == 5
