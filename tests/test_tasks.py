"""Guards for every task that ships: listed, loadable, and its scores fit lm-eval's machinery."""

import contextlib
import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pytest
from lm_eval.evaluator import evaluate
from lm_eval.evaluator_utils import _compute_task_aggregations
from lm_eval.models.dummy import DummyLM
from lm_eval.tasks import TaskManager
from lm_eval.utils import handle_non_serializable, make_table
from support.tasks import load_task
from support.user_data import HOTPOTQA, write_user_data

from lm_eval_ext.benchmarks.conceptual import load as conceptual
from lm_eval_ext.cards import MAX_METRICS, TaskFacts, card_of, cards
from lm_eval_ext.harness.missing import MissingLogprob, MissingText, is_allowed
from lm_eval_ext.runs.tasks import our_task_manager
from lm_eval_ext.task_folder import tasks_folder

TASKS: dict[str, TaskFacts] = {}
GROUPS: dict[str, tuple[str, ...]] = {}
for card in cards().values():
    TASKS.update(card.tasks)
    GROUPS.update(card.groups)

MAX_DOCUMENTS = 5_000
"""Documents; all requests of a task that has more take seconds to build."""

WHOLE = {"cogs_unmodified_gen"}
"""Tasks with more documents whose requests are all built, beside all smaller ones."""

TRIAL_SIZE = 4
"""Documents; a trial is drawn once if two tests ask for as many."""

ALL = os.environ.get("LM_EVAL_EXT_TEST_ALL") == "1"

LIKE_ANOTHER = ("cvcv_short", "random_short", "random_long")
"""Lexicons whose tasks in context and of overestimation are loaded on request only: their files
differ in the lexicon's name, and all of COGS is read for each."""


def is_loaded(name: str) -> bool:
    """Whether the tests of all tasks load this one."""
    seldom = name.startswith(("cogs_icl_", "cogs_overestimation_"))
    return ALL or not (seldom and any(lexicon in name for lexicon in LIKE_ANOTHER))


@pytest.fixture(scope="module")
def manager() -> TaskManager:
    return our_task_manager()


def by_worker(name: str) -> Any:
    """All tests of a task run in one worker: each would load it, for seconds, anew.

    COGS in context chooses the same demonstrations in every lexicon, once per worker, and
    MAGNIFICo's test suites are made once, while other workers would wait.
    """
    alike = TASKS[name].sources and name.startswith(("cogs_icl", "magnifico"))
    group = name[:9] if alike else f"task {name}"
    marks = [pytest.mark.xdist_group(group)]
    if TASKS[name].sources or name == "conceptual_openbookqa":
        marks.append(pytest.mark.slow)
    return pytest.param(name, marks=marks)


@pytest.fixture(
    scope="module",
    params=[by_worker(name) for name in sorted(TASKS) if is_loaded(name)],
)
def task(
    request: pytest.FixtureRequest,
    manager: TaskManager,
    run_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    """Each task in turn, loaded once; where its data are missing here, with documents of ours."""
    name = request.param
    metadata: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        if TASKS[name].sources:
            environment.setenv("LM_EVAL_EXT_DATA", str(request.getfixturevalue("shared_data")))
        needs_our_documents = TASKS[name].is_user_data or not TASKS[name].available
        if name == "conceptual_hotpotqa" and needs_our_documents:
            environment.setattr(conceptual.dataset, "_kept", {})
            environment.setitem(conceptual._READERS, "hotpotqa", lambda _: (HOTPOTQA, None))
        elif needs_our_documents:
            if name == "conceptual_openbookqa":
                pytest.importorskip("spacy")
            user_data = write_user_data(name, tmp_path_factory.mktemp(name))
            metadata = user_data.metadata
            for variable, value in user_data.environment.items():
                environment.setenv(variable, value)
            manager = our_task_manager(metadata=metadata)
        loaded = manager.load(name)["tasks"][name]
    loaded.has_own_documents = needs_our_documents
    with contextlib.ExitStack() as ends:
        judge = getattr(loaded, "judge", None)
        if judge is not None:
            # Its SQL workers would end after each evaluation, and the next one start others.
            ends.callback(judge.close)
            judge.close = lambda: None
        yield loaded


def test_cards_and_task_files_name_the_same_tasks(manager: TaskManager) -> None:
    assert sorted(manager.all_subtasks) == sorted(TASKS)
    assert sorted(manager.all_groups) == sorted(GROUPS)


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_group_holds_what_its_card_says(
    group: str, manager: TaskManager, kept_cache: Path
) -> None:
    assert sorted(manager.task_index[group].cfg["task"]) == sorted(GROUPS[group])
    # The others' members are loaded one by one, which takes seconds.
    if not any(TASKS[name].sources or TASKS[name].is_user_data for name in GROUPS[group]):
        assert sorted(manager.load(group)["tasks"]) == sorted(GROUPS[group])


def number_of_clusters(name: str, documents: Any) -> int:
    """Return how many clusters documents are from, by the column that the card names."""
    card = card_of(name)
    assert card is not None
    column = card.cluster.column
    values = documents[column][:]
    names = {
        card.cluster.names({column: value, "id": ""}, is_user_data=False)[0] for value in values
    }
    return len(names)


def test_every_task_that_can_be_planned_says_its_clusters() -> None:
    """DiNeR's published file and all of HotpotQA were at hand nowhere, so nobody counted them."""
    uncounted = {"conceptual_hotpotqa"}
    uncounted |= {name for name in TASKS if "diner" in TASKS[name].sources}
    for name, facts in TASKS.items():
        is_counted = bool(facts.clusters)
        assert is_counted == (bool(facts.documents) and name not in uncounted), name


def test_a_task_has_the_size_that_its_card_says(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = TASKS[task.task_name]
    if task.has_own_documents:
        pytest.skip("its size is that of other documents")
    large = facts.documents > MAX_DOCUMENTS and task.task_name not in WHOLE
    split = task.config.test_split
    # Demonstrations for all samples take seconds; those of smaller splits are chosen whole.
    documents = task.dataset[split] if large else task.eval_docs
    assert len(documents) == facts.documents, "the card's `documents` is not what the loader gives"
    assert number_of_clusters(task.task_name, documents) == facts.clusters
    per_document, rest = divmod(facts.requests, facts.documents)
    assert rest == 0
    if "context" in documents.features:  # as many requests as contexts, in every document
        assert set(map(len, documents["context"][:])) == {per_document}
    if large:
        last = facts.documents - 1
        indices = sorted({0, 1, last - 1, last, *range(0, last, last // 100)})
        monkeypatch.setitem(task.dataset, split, documents.select(indices))
    task.build_all_requests(rank=0, world_size=1)
    built = Counter(instance.doc_id for instance in task.instances)
    assert len(built) == len(task.eval_docs)
    assert set(built.values()) == {per_document}


def test_a_task_keeps_lm_evals_contract(task: Any) -> None:
    """Prompt and target of a document are texts, and each request's prompt is one, too."""
    document = next(iter(task.eval_docs))
    assert isinstance(task.doc_to_text(document), str)
    assert isinstance(task.doc_to_target(document), str | int | list)
    task.build_all_requests(limit=1, rank=0, world_size=1)
    assert all(isinstance(request.args[0], str) for request in task.instances)
    if isinstance(document.get("context"), list):
        assert all(context in task.doc_to_text(document) for context in document["context"])


CONTRACT_DOCUMENTS = 10
"""Documents that lm-eval's own test of a task looks at."""


def test_a_task_passes_lm_evals_tests_of_its_own_tasks(task: Any) -> None:
    """The checks of lm-eval's tests/test_tasks.py, in our words."""
    task.download()
    assert task.dataset is not None
    for split in ("training", "validation", "test"):
        has_documents = getattr(task, f"has_{split}_docs")()
        assert has_documents in (True, False)
        assert not has_documents or task.config[f"{split}_split"] is not None
    assert task.has_test_docs() is True
    assert task.should_decontaminate() is False
    assert not task.multiple_input, "it would have to return a list of texts"
    assert task.OUTPUT_TYPE != "multiple_choice", "lm-eval would test its choices and labels"
    documents = list(islice(task.test_docs(), CONTRACT_DOCUMENTS))
    assert len(documents) == CONTRACT_DOCUMENTS or task.has_own_documents
    for document in documents:
        text = task.doc_to_text(document)
        assert isinstance(text, str)
        if task.config.target_delimiter.isspace():
            assert not text[-1:].isspace(), "the delimiter would follow another space"
        task.doc_to_target(document)
        requests = task.construct_requests(doc=document, ctx=text)
        assert requests
        if isinstance(document.get("context"), list):
            assert len(requests) == len(document["context"])
    task.build_all_requests(limit=CONTRACT_DOCUMENTS, rank=1, world_size=1)
    assert task.instances is not None


def test_a_task_has_a_version_and_a_signature(task: Any) -> None:
    assert isinstance(task.VERSION, str), "1.10 as a number would be 1.1"
    signature = task.dump_config()["metadata"]["signature"]
    assert signature["task"] == task.task_name
    assert signature["version"] == task.VERSION
    assert "?" not in signature.values()
    assert len(signature["sha256"]) == 16
    assert all(isinstance(value, str) for value in signature.values())


def answered(task: Any, documents: int, answer_to: Callable[[Any], Any]) -> list[list[Any]]:
    """Return the requests of a few documents, each with its answer, by document."""
    task.build_all_requests(limit=documents, rank=0, world_size=1)
    for request in task.instances:
        request.resps[:] = [answer_to(request)]
    task.apply_filters()
    by_document = groupby(task.instances, lambda request: request.doc_id)
    return [list(requests) for _, requests in by_document]


def score(task: Any, instances: list[Any]) -> dict[str, Any]:
    """Return the metrics of one document."""
    answers = [next(iter(request.filtered_resps.values())) for request in instances]
    metrics: dict[str, Any] = task.process_results(instances[0].doc, answers)
    return metrics


def test_a_task_prints_at_most_twelve_metrics_the_headline_first(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is that of ``lm_eval --model dummy --limit 4``, with or without an output path."""
    name = task.task_name
    results = evaluate(DummyLM(), {name: task}, limit=TRIAL_SIZE, log_samples=True)
    # The table's library takes longer to align its columns than the evaluation takes.
    writes = "pytablewriter.MarkdownTableWriter.dumps"
    monkeypatch.setattr(writes, lambda table: table.value_matrix)
    printed = [row[4] for row in make_table(results)]
    assert 1 <= len(printed) <= MAX_METRICS, printed
    card = card_of(name)
    assert card is not None
    assert printed[0] == card.headline_of(printed)
    assert [entry["metric"] for entry in task.config.metric_list] == sorted(printed)
    assert len(results["samples"][name]) == TRIAL_SIZE, "the limit counts whole documents"
    for sample in results["samples"][name]:
        assert sample["metrics"][0] == "rows"
        assert set(sample["metrics"]) <= {"rows", "reading", "verdict"}
        for row in sample["rows"]:
            facets = {key for key, value in row.items() if isinstance(value, str)}
            assert facets <= set(card.facets), "the card has every facet"
    json.dumps(results, default=handle_non_serializable)


def aggregate(task: Any, scored: list[dict[str, Any]]) -> dict[str, Any]:
    raw: dict[tuple[str, str], list[Any]] = {}
    for document in scored:
        for metric, value in document.items():
            raw.setdefault((metric, "none"), []).append(value)
    metrics: dict[str, Any]
    metrics, count = _compute_task_aggregations(task, raw, bootstrap_iters=10)
    assert count == len(scored)
    return metrics


def test_a_task_aggregates_in_any_order_and_one_document_has_no_standard_error(task: Any) -> None:
    rng = random.Random(0)

    def random_answer(request: Any) -> Any:
        likelihood = (-30 * rng.random(), False)
        return likelihood if request.request_type == "loglikelihood" else rng.choice(["", "x"])

    scored = [score(task, instances) for instances in answered(task, 12, random_answer)]
    straight = aggregate(task, scored)
    assert straight == aggregate(task, scored[::2] + scored[1::2])
    json.dumps([straight, scored, task.dump_config()], default=handle_non_serializable)
    alone = aggregate(task, scored[:1])
    assert {value for key, value in alone.items() if "_stderr," in key} == {"N/A"}


def test_a_document_without_all_answers_counts_nowhere(task: Any) -> None:
    def answer_but_the_last(request: Any) -> Any:
        assert is_allowed(request)
        last = request is task.instances[-1]
        if request.request_type == "loglikelihood":
            return MissingLogprob() if last else (-1.0, False)
        return MissingText() if last else "x"

    first, *_, last = answered(task, TRIAL_SIZE, answer_but_the_last)
    complete, incomplete = score(task, first), score(task, last)
    assert complete
    assert incomplete == {}


def signed(folder: Path, yaml_text: str = "", **metadata: Any) -> dict[str, str]:
    """Return the signature of lieder_mini under metadata, or of a user's file that includes it."""
    if yaml_text:
        (folder / "mine.yaml").write_text(f"include: {tasks_folder()}/lieder.yaml\n{yaml_text}\n")
    task = our_task_manager([str(folder)], metadata).load("lieder_mini")["tasks"]["lieder_mini"]
    signature: dict[str, str] = task.dump_config()["metadata"]["signature"]
    return signature


def test_an_option_that_changes_prompts_or_scores_changes_the_signature(tmp_path: Path) -> None:
    plain = signed(tmp_path)
    page = Path(__file__).parents[1].joinpath("docs/discovery.md").read_text(encoding="utf-8")
    quoted = {f"|{key}:{plain[key]}|" for key in ("version", "data", "sha256", "config")}
    for pair in quoted:
        assert pair in page
    # lm-eval lays --metadata and --model_args over a task's metadata.
    laid: dict[str, Any] = {
        "version": "7",
        "lm_eval_ext": {"prompt": "x"},
        "seed": 3,
        "config": "y",
        "sha256": "z",
    }
    assert signed(tmp_path, **laid) == plain
    mine = "task: lieder_mini\nmetadata: {version: '9'}"
    assert signed(tmp_path, mine, **laid) == {**plain, "version": "9"}
    changed = signed(tmp_path, "task: lieder_mini\ndescription: 'Judge: '")
    assert {key for key in plain if plain[key] != changed[key]} == {"config"}
    rescored = signed(tmp_path, "task: lieder_mini\nprocess_results: !function json.dumps")
    assert rescored["config"] not in {plain["config"], changed["config"]}


def test_documents_are_loaded_once_and_chosen_ones_are_signed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lm-eval copies configurations deeply; the loader must survive that."""
    from lm_eval_ext.benchmarks.lieder import load

    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    signatures, datasets = [], []
    with caplog.at_level(logging.WARNING, logger="lm_eval"):
        for samples in ([0, 5], [5, 0], None, [0, 6]):
            task = load_task("lieder_mini")
            assert task.config.custom_dataset is load.documents
            datasets.append(task.dataset)
            task.build_all_requests(samples=samples, rank=0, world_size=1)
            signatures.append(json.dumps(task.dump_config()["metadata"]["signature"]))
    assert all(dataset is datasets[0] for dataset in datasets)
    assert signatures[0] == signatures[1]
    assert len(set(signatures)) == 3
    assert "Custom kwargs" not in caplog.text, "lm-eval's warning about metadata"
