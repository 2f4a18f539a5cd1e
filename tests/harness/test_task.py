"""The task classes: from a benchmark author's files to lm-eval's requests and metrics."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, Field
from support.tasks import load_task

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import missing
from lm_eval_ext.harness.loading import TaskData, loader
from lm_eval_ext.harness.metrics import Document
from lm_eval_ext.harness.provenance import describe_embedded
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask, GroupedLoglikelihoodTask
from lm_eval_ext.stats.table import Row

ROWS = [{"id": str(n), "q": f"What is {n}?", "a": str(n), "kind": "ab"[n % 2],
         "context": ["one", "two", "one"], "continuation": [" 1", " 2", " 3"]}
        for n in range(4)]  # fmt: skip
CASES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("author_cases.yaml").read_text()
)
calls: list[int] = []


class ToyOptions(BaseModel):
    """Options; values that cannot be hashed are no problem."""

    count: int = Field(4, ge=1)
    seed: int | list[int] | None = None


@loader(prefix="toy_", options=ToyOptions)
def toys(options: ToyOptions) -> TaskData:
    """Questions with one answer, or groups of them."""
    calls.append(options.count)
    return TaskData(
        documents=ROWS[: options.count],
        resources={"count": options.count},
        excluded={"broken": ["9"]},
        provenance=describe_embedded("toys", "f" * 64),
    )


@loader(prefix="toy_", options=ToyOptions)
def repeated_toys(_options: ToyOptions) -> list[dict[str, Any]]:
    """Documents of which two have the same id."""
    return ROWS * 2


class PromptOptions(BaseModel):
    """An option that would overwrite the signature's prompt."""

    prompt: str = ""


@loader(prefix="toy_", options=PromptOptions)
def toys_with_prompt(_options: PromptOptions) -> list[dict[str, Any]]:
    """Documents with an illegal option."""
    return ROWS


def score_answer(doc: Mapping[str, Any], results: Sequence[str], **arguments: float) -> list[Row]:
    """Score an answer; the row also has the arguments of the task."""
    return [{"kind": doc["kind"], "right": float(results[0] == doc["a"]), **arguments}]


CARD = {
    "name": "toys", "title": "Toys", "facets": {"kind": "of toys"},
    "measures": {"right": {"title": "Right", "value": ["right"]}},
    "metrics": {"right": {}, "right/a": {"where": {"kind": ["a"]}}},
}  # fmt: skip


def make(
    task_class: type[ExtTask] = ExtTask,
    *,
    metadata: Mapping[str, object] | None = None,
    **config: object,
) -> Any:
    """Make a task whose configuration differs in these keys; None: without the key."""
    all_metadata = {
        "version": "2.1",
        "lm_eval_ext": {"prompt": "plain", "scoring": "exact"},
        "seed": 1234,
        **(metadata or {}),
    }
    settings = {
        "task": "toy", "custom_dataset": toys, "output_type": "generate_until",
        "doc_to_text": "q", "doc_to_target": "a", "process_results": score_answer, "card": CARD,
        "metadata": all_metadata, **config,
    }  # fmt: skip
    return task_class({key: value for key, value in settings.items() if value is not None})


def test_a_task_of_one_prompt_for_each_document_needs_no_class() -> None:
    task = make()
    task.build_all_requests(rank=0, world_size=1)
    assert [instance.args[0] for instance in task.instances] == [row["q"] for row in ROWS]
    for instance in task.instances:
        assert missing.is_allowed(instance)
    scored = task.process_results(ROWS[1], ["1"])
    assert {**scored} == {"rows": [{"kind": "b", "right": 1.0}]}
    assert dict(scored.items())["right/a"] == Document("1", ("1",), scored["rows"])


def test_a_missing_answer_is_not_scored() -> None:
    assert make().process_results(ROWS[1], [missing.MissingText()]) == {}


def test_a_scoring_function_may_return_one_row() -> None:
    def score(_doc: Mapping[str, Any], _results: Sequence[str]) -> dict[str, float]:
        return {"right": 0.5}

    task = make(process_results=score)
    assert task.process_results(ROWS[1], ["1"])["rows"] == [{"right": 0.5}]


def test_a_scoring_function_may_return_no_row_but_not_for_all_documents() -> None:
    def score(_doc: Mapping[str, Any], _results: Sequence[str]) -> None:
        return None

    task = make(process_results=score)
    assert task.process_results(ROWS[1], ["1"]) == {}
    with pytest.raises(DataError, match="toy: its scoring function returned no row for any docum"):
        task.dump_config()


def test_predictions_alone_are_logged_without_scores() -> None:
    task = make()
    task.override_metric("bypass")  # lm-eval's --predict_only
    assert list(task.process_results(ROWS[0], ["0"])) == ["bypass"]


def test_groups_of_texts_need_no_class() -> None:
    task = make(GroupedGenerationTask, doc_to_text="context")
    task.build_all_requests(limit=1, rank=0, world_size=1)
    prompts = [(request.idx, request.args[0]) for request in task.instances]
    assert prompts == [(0, "one"), (1, "two"), (2, "one")]


def test_groups_of_log_probabilities_need_no_class() -> None:
    task = make(
        GroupedLoglikelihoodTask,
        doc_to_text="context",
        doc_to_target=None,
        output_type="loglikelihood",
    )
    task.build_all_requests(limit=1, rank=0, world_size=1)
    pairs = [request.args for request in task.instances]
    assert pairs == [("one", " 1"), ("two", " 2"), ("one", " 3")]
    assert task.doc_to_target(ROWS[0]) == "", "lm-eval logs it"


class ByKind(ExtTask):
    """A task whose metrics follow from its documents, and its scoring from its options."""

    def prepare(self, config: Mapping[str, Any]) -> None:
        self.kinds = sorted(set(self.dataset["test"]["kind"]))

    def metrics(self) -> list[str]:
        return [f"right/{kind}" for kind in self.kinds if kind == "a"]

    def scoring_arguments(self) -> dict[str, object]:
        assert isinstance(self.options, ToyOptions)
        return {"count": self.options.count}


def test_documents_and_options_decide_about_metrics_and_scoring() -> None:
    task = make(ByKind)
    assert [entry["metric"] for entry in task.config.metric_list] == ["right/a"]
    assert task.process_results(ROWS[1], ["1"])["rows"][0]["count"] == 4


def test_the_dumped_metadata_have_all_that_decides_about_scores() -> None:
    dumped = make(metadata={"toy_count": 3, "toy_seed": [7]}).dump_config()["metadata"]
    assert {**dumped["signature"], "config": "?"} == {
        "task": "toy", "version": "2.1", "data": "toys@embedded", "sha256": "f" * 16,
        "prompt": "plain", "scoring": "exact", "seed": "[7]", "count": "3", "config": "?",
        "lm-eval-ext": sys.modules["lm_eval_ext"].__version__,
    }  # fmt: skip
    assert make().dump_config()["metadata"]["signature"]["seed"] == "none"
    assert dumped["not_scorable"] == {"broken": ["9"]}
    assert (dumped["benchmark"], dumped["card"]["tasks"]) == ("toys", {"toy": {}})


def test_a_loader_takes_only_its_keys_and_loads_once() -> None:
    calls.clear()
    three_toys = toys(toy_count=3, pretrained="x", version="1.0", config_source="y")
    assert three_toys is toys(toy_count=3, toy_seed=None)
    assert len(toys(toy_count=1)["test"]) == 1
    assert calls == [3, 1]
    assert toys.__doc__ == "Questions with one answer, or groups of them."
    with pytest.raises(OptionError, match="toy_count: Input should be greater than or equal to 1"):
        make(metadata={"toy_count": 0})


DATASETS = {"prompts": toys_with_prompt, "twice": repeated_toys, "dict": dict}
"""Loaders that the cases name."""


@pytest.mark.parametrize("case", CASES["forgotten"], ids=lambda case: str(case["changes"]))
def test_a_mistake_in_a_task_file_is_one_line(case: dict[str, Any]) -> None:
    config = dict(case["changes"])
    if "custom_dataset" in config:
        config["custom_dataset"] = DATASETS[config["custom_dataset"]]
    if config.get("card"):
        config["card"] = CARD | config["card"]
    with pytest.raises(DataError, match=case["error"]):
        make(**config)


@pytest.mark.parametrize("case", CASES["no_value"], ids=lambda case: str(case["metric"]))
def test_a_metric_without_a_value_names_the_missing_column_or_facet(
    case: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A run of some documents only is not stopped: others may have it."""
    facets = {"kind": "", "sort": ""}
    task = make(card={**CARD, "facets": facets, "metrics": {"right": case["metric"]}})
    scored = [Document(str(row["id"]), ["0"], score_answer(row, [""])) for row in ROWS]
    task.aggregation()["right"](scored[:3])
    task.dump_config()
    assert case["error"] in caplog.text
    task.aggregation()["right"](scored)
    with pytest.raises(DataError, match=case["error"]):
        task.dump_config()


@pytest.mark.parametrize("case", CASES["returned"], ids=lambda case: repr(case["returned"]))
def test_rows_of_a_scoring_function_are_checked(case: dict[str, Any]) -> None:
    def score(_doc: Mapping[str, Any], _results: Sequence[str]) -> object:
        return case["returned"]

    task = make(process_results=score)
    if not case["error"]:
        task.process_results(ROWS[0], ["0"])
        return
    with pytest.raises(DataError, match=f"scoring 0 of toy: .*{case['error']}"):
        task.process_results(ROWS[0], ["0"])


def test_an_error_in_a_scoring_function_names_document_and_line() -> None:
    def score(_doc: Mapping[str, Any], results: Sequence[str]) -> int:
        return int(results[0])

    task = make(process_results=score)
    with pytest.raises(DataError, match=r"0 of toy: ValueError: .*'x' \(test_task.py, line \d+\)"):
        task.process_results(ROWS[0], ["x"])


def test_a_defect_of_ours_keeps_its_traceback() -> None:
    task = load_task("lieder_mini")
    with pytest.raises(TypeError):
        task.process_results(task.eval_docs[0], None)


def test_a_trial_without_a_word_in_the_card_has_all_clusters() -> None:
    task = make(card={**CARD, "cluster": {"unit": "kind", "column": "kind"}})
    for limit in (2, 3):
        kinds = [doc["kind"] for _, doc in task.doc_iterator(limit=limit)]
        assert len(kinds) == limit
        assert set(kinds) == {"a", "b"}


@pytest.mark.parametrize("name", ["conceptual_mini", "cogs_mini_icl_gen", "diner_mini_icl"])
def test_tasks_that_choose_demonstrations_need_one(name: str) -> None:
    task = load_task(name)
    task.set_config("num_fewshot", 0)
    with pytest.raises(OptionError, match=f"{name} is asked with demonstrations: give --num_few"):
        task.build_all_requests(limit=1, rank=0, world_size=1)


STOPS = {
    "magnifico_mini": [";", "\n\n", "--", "#"], "cogs_mini_id": ["\n"], "conceptual_mini": ["\n"],
    "diner_mini_name": ["\n\n"], "diner_mini_icl": ["\n"],
}  # fmt: skip
"""Tasks with the stop strings of their files."""


def chat_template(turns: list[dict[str, str]], **_options: object) -> str:
    """Mark each turn by its role."""
    return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)


def stops_and_signature(task: Any, *, chat: bool) -> tuple[str | list[str], dict[str, str]]:
    """Build requests; return their stop strings, which the results file has, and the signature."""
    options = {"apply_chat_template": True, "chat_template": chat_template} if chat else {}
    task.build_all_requests(limit=2, rank=0, world_size=1, **options)
    dumped = task.dump_config()
    stops = dumped["generation_kwargs"]["until"]
    assert task.instances
    for request in task.instances:
        assert request.args[1]["until"] == stops
    return stops, dumped["metadata"]["signature"]


@pytest.mark.usefixtures("kept_cache")
@pytest.mark.parametrize(("name", "task_stops"), STOPS.items(), ids=STOPS)
def test_stops_are_the_tasks_or_none_in_a_chat_or_the_users(
    name: str, task_stops: list[str]
) -> None:
    task = load_task(name)
    stops, plain = stops_and_signature(task, chat=False)
    assert stops == task_stops
    stops, chat = stops_and_signature(task, chat=True)
    assert stops == []
    assert chat["answers"] == "chat-2"
    assert chat == {**chat, **plain}

    signatures = {}
    for user_stops in (task_stops, "!", ["!", "?"]):
        # As lm-eval merges --gen_kwargs.
        task.set_config(key="generation_kwargs", value={"until": user_stops}, update=True)
        for with_template in (False, True):
            stops, signature = stops_and_signature(task, chat=with_template)
            assert stops == user_stops
            signatures[str(user_stops), with_template] = signature
    assert signatures[str(task_stops), False] == plain
    expected = {**chat, "stops": "given"}
    assert signatures[str(task_stops), True] == expected, "its requests are others than chat's"
