"""The glue: loading, the check before the model, the error guard, signatures, provenance."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from pydantic import BaseModel, Field

from lm_eval_ext import errors
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import preflight, provenance, signature
from lm_eval_ext.harness.loading import Loader, loader


def a_loader() -> tuple[Loader, list[dict[str, Any]]]:
    calls: list[dict[str, Any]] = []

    class Toys(BaseModel):
        size: int = Field(2, ge=1)
        seed: Any = 0

    @loader(prefix="toy_", options=Toys)
    def dataset(options: Toys) -> DatasetDict:
        """Loads toys."""
        calls.append({"toy_size": options.size, "toy_seed": options.seed})
        return DatasetDict({"test": Dataset.from_list([{"n": n} for n in range(options.size)])})

    return dataset, calls


def test_a_loader_takes_its_own_keys_and_loads_once() -> None:
    dataset, calls = a_loader()
    first = dataset(toy_size=3, pretrained="x", version="1.0", config_source="y")
    assert first is dataset(toy_size=3, toy_seed=0)
    assert len(dataset(toy_size=1)["test"]) == 1
    assert calls == [{"toy_size": 3, "toy_seed": 0}, {"toy_size": 1, "toy_seed": 0}]
    assert dataset.__doc__ == "Loads toys."


def test_a_loader_names_unknown_keys_and_takes_any_value() -> None:
    dataset, _ = a_loader()
    with pytest.raises(OptionError, match=r"key toy_sed .nearest: toy_seed.; .*toy_size, toy_seed"):
        dataset(toy_sed=1)
    assert len(dataset(toy_seed=[1, {"a": 2}])["test"]) == 2, "unhashable values are no problem"
    with pytest.raises(OptionError, match="toy_size: Input should be greater than or equal to 1"):
        preflight.check(
            manager({"task": "a", "custom_dataset": dataset}, metadata={"toy_size": 0}), ["a"]
        )


def manager(*configs: dict[str, Any], metadata: dict[str, Any] | None = None) -> Any:
    """An index as lm-eval's ``TaskManager`` holds it."""
    index = {}
    for config in configs:
        name = config.get("group") or config.get("task") or config["tag"]
        tags = set(config.get("members", ()))
        index[name] = SimpleNamespace(yaml_path=None, tags=tags, cfg=None if tags else config)
    return SimpleNamespace(task_index=index, metadata=metadata)


def test_the_check_opens_groups_tags_and_overrides() -> None:
    dataset, calls = a_loader()
    index = manager(
        {"task": "a", "custom_dataset": dataset, "metadata": {"toy_size": 4}},
        {"task": "b", "custom_dataset": dataset, "metadata": {"toy_size": 5}},
        {"task": "stock", "custom_dataset": lambda **_: pytest.fail("called")},
        {"group": "inner", "task": ["b"]},
        {"group": "outer", "task": ["a", {"group": "inner"}, "stock",
                                    {"task": "b", "metadata": {"toy_size": 6}}]},
        {"tag": "tagged", "members": ["a", "stock"]},
        metadata={"toy_seed": 9},
    )  # fmt: skip
    preflight.check(index, ["outer"])
    assert [(call["toy_size"], call["toy_seed"]) for call in calls] == [(4, 9), (5, 9), (6, 9)]
    calls.clear()
    dataset._kept.clear()
    preflight.check(index, ["tagged", {"task": "mine", "custom_dataset": dataset}, "unknown"])
    assert [call["toy_size"] for call in calls] == [4, 2]


def test_the_check_takes_the_users_members_and_odd_metadata() -> None:
    dataset, calls = a_loader()
    index = manager(
        {"task": "a", "custom_dataset": dataset, "metadata": {"toy_size": 4}},
        {"task": "b", "custom_dataset": dataset, "metadata": 1.0},
        {"group": "ours", "task": ["a"]},
    )
    preflight.check(index, [{"group": "ours", "task": ["b"]}])
    assert [call["toy_size"] for call in calls] == [2], "the user's group, not the index's"


def test_the_guard_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught, errors.one_line_errors():
        raise DataError("a file\nis  missing; fetch it")
    assert caught.value.code == 1
    assert capsys.readouterr().err == "lm-eval-ext: error: a file is missing; fetch it\n"


def test_the_guard_lets_everything_else_pass() -> None:
    for error in (ValueError("defect"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)), errors.one_line_errors():
            raise error


def test_a_signature_names_every_option() -> None:
    data = {"source": "toys", "revision": "0123456789abcdef", "sha256": "f" * 64}
    metadata = {
        "version": "2.1",
        "seed": 1234,  # from --model_args: not ours
        "lm_eval_ext": {"prompt": "plain", "scoring": "exact"},
    }
    made = signature.of_task("toy", metadata, data, {"size": 3, "seed": 7})
    assert made == {
        "task": "toy", "version": "2.1", "data": "toys@0123456789ab", "sha256": "f" * 16,
        "prompt": "plain", "scoring": "exact", "seed": "7", "size": "3",
        "lm-eval-ext": sys.modules["lm_eval_ext"].__version__,
    }  # fmt: skip
    assert signature.of_task("toy", metadata, data, {})["seed"] == "none"


def test_datasets_remember_several_files_in_any_order() -> None:
    def info(*digests: str) -> dict[str, Any]:
        files = [
            SimpleNamespace(
                name=str(i), sha256=d, size=1, source="s", revision="r", licence="l",
                citation="c", homepage="h",
            )
            for i, d in enumerate(digests)
        ]  # fmt: skip
        described = provenance.describe(files)  # type: ignore[arg-type]
        return provenance.of_dataset(
            DatasetDict({"test": Dataset.from_list([{"n": 1}], info=described)})
        )

    assert info("aa" * 32)["sha256"] == "aa" * 32
    assert info("aa" * 32, "bb" * 32) == info("bb" * 32, "aa" * 32)
    assert info("aa" * 32, "bb" * 32) != info("aa" * 32, "cc" * 32)
