"""The base class: a new benchmark needs a class of its own only for the hooks that it uses."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from pydantic import BaseModel

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness import missing, preflight, provenance
from lm_eval_ext.harness.fewshot import FewshotTask
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask, GroupedLoglikelihoodTask

ROWS = [{"id": str(n), "q": f"What is {n}?", "a": str(n), "kind": "ab"[n % 2]} for n in range(4)]


class Toys(BaseModel):
    """Options."""

    named: bool = False


@loader(prefix="toy_", options=Toys)
def toys(options: Toys) -> DatasetDict:
    """Questions with one answer, or groups of them."""
    columns = {"context": ["one", "two", "one"], "continuation": [" 1", " 2", " 3"]}
    info = provenance.describe_embedded("toys", "0" * 64)
    if options.named:
        info = provenance.with_left_out(info, {"broken": ["9"]})
    return DatasetDict({"test": Dataset.from_list([{**row, **columns} for row in ROWS], info=info)})


def right(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
    """How lm-eval wants a scoring function."""
    return {"right": float(results[0] == doc["a"])}


def by_kind(doc: Mapping[str, Any], results: Sequence[Any], *, kinds: list[str]) -> dict[str, Any]:
    """One that needs what is known once the documents are loaded."""
    return {f"in_{kind}": float(kind == doc["kind"]) for kind in kinds}


def entries(*names: str) -> list[dict[str, Any]]:
    return [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names]


def make(kind: type[ExtTask] = ExtTask, **config: Any) -> Any:
    return kind(
        {
            "task": "toy", "class": kind, "custom_dataset": toys, "test_split": "test",
            "output_type": "generate_until", "doc_to_text": "q", "doc_to_target": "a",
            "process_results": right, "metric_list": entries("right"),
            "num_fewshot": 0, "metadata": {"version": "1.0"}, **config,
        }
    )  # fmt: skip


class ByKind(ExtTask):
    def prepare(self, config: Mapping[str, Any]) -> None:
        self.kinds = sorted(set(self.dataset["test"]["kind"]))

    def metrics(self) -> Any:
        return entries(*(f"in_{kind}" for kind in self.kinds))

    def scoring_arguments(self) -> dict[str, Any]:
        return {"kinds": self.kinds, "other": "not asked for"}


def test_plain_generation_needs_no_class() -> None:
    task = make()
    task.build_all_requests(rank=0, world_size=1)
    assert [instance.args[0] for instance in task.instances] == [row["q"] for row in ROWS]
    assert all(missing.is_allowed(instance) for instance in task.instances)
    assert task.process_results(ROWS[1], ["1"]) == {"right": 1.0}
    assert task.process_results(ROWS[1], [missing.MissingText()]) == {}
    assert set(task.aggregation()) == {"right"}


def test_groups_need_no_class() -> None:
    asked = make(GroupedGenerationTask, doc_to_text="context")
    asked.build_all_requests(limit=1, rank=0, world_size=1)
    assert [(i.idx, i.args[0]) for i in asked.instances] == [(0, "one"), (1, "two"), (2, "one")]
    read = make(GroupedLoglikelihoodTask, doc_to_text="context", output_type="loglikelihood")
    read.build_all_requests(limit=1, rank=0, world_size=1)
    assert [i.args for i in read.instances] == [("one", " 1"), ("two", " 2"), ("one", " 3")]


def test_documents_decide_about_metrics_and_scoring() -> None:
    task = make(ByKind, process_results=by_kind, metric_list=None)
    assert [entry["metric"] for entry in task.config.metric_list] == [
        "in_a", "in_b",
    ]  # fmt: skip
    scored = task.process_results(ROWS[1], ["1"])
    assert scored == {"in_a": 0.0, "in_b": 1.0}


def test_a_users_own_scoring_function_gets_what_it_declares() -> None:
    task = make(ByKind, process_results=right)
    assert task.process_results(ROWS[1], ["1"]) == {"right": 1.0}


def test_nothing_is_scored_under_predict_only() -> None:
    task = make(ByKind, process_results=by_kind)
    task.override_metric("bypass")
    assert list(task.process_results(ROWS[0], ["0"])) == ["bypass"]


def test_examples_that_count_nowhere_are_named() -> None:
    assert "not_scorable" not in make().dump_config()["metadata"]
    dumped = make(metadata={"version": "1.0", "toy_named": True}).dump_config()
    assert dumped["metadata"]["not_scorable"] == {"broken": ["9"]}


def test_the_check_before_the_model_asks_the_class() -> None:
    index = SimpleNamespace(task_index={}, metadata=None)

    class Shown(FewshotTask):
        pass

    config = {"task": "toy", "custom_dataset": toys}
    preflight.check(index, [{**config, "class": ExtTask}], num_fewshot=0)
    preflight.check(index, [{**config, "class": Shown}], num_fewshot=1)
    with pytest.raises(OptionError, match="toy is asked with demonstrations"):
        preflight.check(index, [{**config, "class": Shown}], num_fewshot=0)
