"""Stop strings of all benchmarks that generate: the task's, after a chat template none, or the
user's; and what the results file says of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder

TASKS = {
    "magnifico_mini": [";", "\n\n", "--", "#"],
    "cogs_mini_id": ["\n"],
    "conceptual_mini": ["\n"],
    "diner_mini_name": ["\n\n"],
    "diner_mini_icl": ["\n"],
}
"""With the stop strings of their files."""


def template(turns: list[dict[str, str]], **_: Any) -> str:
    return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)


CHAT = {"apply_chat_template": True, "chat_template": template}


@pytest.fixture(scope="module", params=TASKS)
def loaded(request: pytest.FixtureRequest, run_cache: Path) -> Iterator[Any]:
    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        yield manager.load(request.param)["tasks"][request.param]


@pytest.fixture
def task(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A task as it is after loading, which takes seconds."""
    monkeypatch.setattr(loaded, "_given_stops", None)
    monkeypatch.setattr(loaded.config, "generation_kwargs", dict(loaded.config.generation_kwargs))
    return loaded


def stops(task: Any, **options: Any) -> Any:
    """The stop strings of all requests, which must agree."""
    task.build_all_requests(limit=2, rank=0, world_size=1, **options)
    first, *others = [instance.args[1]["until"] for instance in task.instances]
    assert all(other == first for other in others)
    return first


def logged(task: Any) -> Any:
    """What the results file says."""
    return task.dump_config()["generation_kwargs"]["until"]


def give(task: Any, **generation: Any) -> None:
    """As lm-eval merges --gen_kwargs."""
    task.set_config(key="generation_kwargs", value=generation, update=True)


def test_stops_are_the_tasks_or_none_in_a_chat_or_the_users(task: Any) -> None:
    own = TASKS[task.task_name]
    signatures = []
    for given in (None, own, "!", ["!", "?"]):
        if given:
            give(task, until=given)
        for options, expected in (({}, given or own), (CHAT, given or [])):
            assert stops(task, **options) == logged(task) == expected
            signatures.append(task.dump_config()["metadata"]["signature"])
    plain, chat, plain_given, chat_given, *_ = signatures
    assert plain == plain_given
    assert chat["answers"] == "chat-1" and chat == {**chat, **plain}
    assert chat_given == {**chat, "stops": "given"}, "its requests are others than chat's"


def test_other_settings_leave_the_stops(task: Any) -> None:
    give(task, max_gen_toks=5)
    assert stops(task, **CHAT) == []
    assert task.instances[0].args[1]["max_gen_toks"] == 5
