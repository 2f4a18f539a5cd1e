"""Assigning results to models, labels of models, and selection of tasks."""

import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import read_results
from lm_eval_ext.results.models import choose_tasks, read_models
from lm_eval_ext.text import counted


def a_run(
    folder: Path,
    task: str = "lieder_base",
    date: str = "2026-01-01",
    documents: int = 48,
    **arguments: Any,
) -> Path:
    content = {
        "results": {task: {"direct,none": 0.5}},
        "configs": {task: {}},
        "n-samples": {task: {"original": 48, "effective": documents}},
        "config": {"model": "hf", "model_args": arguments},
        "model_name": "org/model",
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"results_{date}.json"
    file.write_text(json.dumps(content))
    return file


def labels(*paths: Path) -> list[str]:
    return [model.label for model in read_models(paths, joined=False)]


def test_a_model_is_called_by_its_file(tmp_path: Path) -> None:
    a_run(tmp_path / "a")
    (tmp_path / "a" / "model.yaml").write_text("display_name: The first\n")
    a_run(tmp_path / "b" / "org__model")
    (tmp_path / "b" / "model.yaml").write_text('display_name: "The second\\a"\n')
    a_run(tmp_path / "c")
    (tmp_path / "c" / "model.yaml").write_text("[")
    assert sorted(labels(tmp_path)) == ["The first", "The second", "org/model"]


def test_results_below_one_display_name_are_one_model(tmp_path: Path) -> None:
    """Recorded answers of one model come from a file per task, and so with other arguments."""
    for task in ("one", "two"):
        a_run(tmp_path / "x" / task, task, path=f"{task}.jsonl")
    (tmp_path / "x" / "model.yaml").write_text("display_name: X\n")
    (model,) = read_models([tmp_path])
    assert model.label == "X"
    assert sorted(model.runs) == ["one", "two"]


def test_two_models_with_one_display_name_are_told_apart(tmp_path: Path) -> None:
    """A display name that two model files share by mistake hides no result."""
    for name in ("small", "large"):
        a_run(tmp_path / name, pretrained=name)
        (tmp_path / name / "model.yaml").write_text("display_name: X\n")
    models = read_models([tmp_path])
    assert sorted(model.label for model in models) == [
        f"X · {tmp_path / 'large'}",
        f"X · {tmp_path / 'small'}",
    ]


def test_one_display_name_joins_folders_with_different_tasks(tmp_path: Path) -> None:
    """Two fine-tuned models stand for one system, as overestimation of COGS needs."""
    for task in ("one", "two"):
        a_run(tmp_path / task, task, pretrained=task)
        (tmp_path / task / "model.yaml").write_text("display_name: X\n")
    (model,) = read_models([tmp_path])
    assert (model.label, sorted(model.runs)) == ("X", ["one", "two"])


def test_a_repeated_run_with_one_display_name_is_one_model(tmp_path: Path) -> None:
    """Where model and settings are the same, the newest of two runs counts without a word."""
    for date in ("2026-01-01", "2026-01-02"):
        a_run(tmp_path / date, date=date, pretrained="a")
        (tmp_path / date / "model.yaml").write_text("display_name: X\n")
    (model,) = read_models([tmp_path])
    assert model.runs["lieder_base"].file.path.parent.name == "2026-01-02"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        pytest.param(
            {"config": {"model": "hf", "model_args": {"pretrained": "b"}}},
            "older: pretrained=a; newest: pretrained=b",
            id="another model below one model.yaml",
        ),
        pytest.param(
            {"chat_template": "{{ messages }}"},
            "older: no chat template; newest: chat template",
            id="a chat template",
        ),
    ],
)
def test_a_run_that_hides_a_different_one_says_so(
    tmp_path: Path,
    changes: dict[str, Any],
    difference: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    a_run(tmp_path, pretrained="a")
    newest = a_run(tmp_path, date="2026-01-02", pretrained="a")
    newest.write_text(json.dumps(json.loads(newest.read_text()) | changes))
    (tmp_path / "model.yaml").write_text("display_name: X\n")
    (model,) = read_models([tmp_path])
    assert model.runs["lieder_base"].file.path == newest
    (message,) = caplog.messages
    assert message.startswith(
        f"left out: older results of X on lieder_base, which ran differently ({difference})"
    )


def test_models_of_one_name_get_their_path(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "one").parent
    neighbour = a_run(tmp_path / "two").parent
    assert labels(folder, neighbour) == [f"org/model · {folder}", f"org/model · {neighbour}"]
    assert labels(folder, folder) == [f"org/model · {folder}", f"org/model · {folder} (2)"]
    a_run(neighbour / "other", pretrained="b")
    assert len(set(labels(neighbour))) == 2


def test_the_setting_that_differs_names_models_of_one_name(tmp_path: Path) -> None:
    """Base and chat prompts of one model are named by the setting, not by paths of folders."""
    for name, template in (("base", None), ("chat", "{{ messages }}")):
        file = a_run(tmp_path / name, pretrained="/models/tiny", note=name)
        content = json.loads(file.read_text())
        content |= {"model_name": "/models/tiny", "chat_template": template}
        file.write_text(json.dumps(content))
    assert sorted(labels(tmp_path)) == ["tiny · chat template", "tiny · no chat template"]
    assert labels(tmp_path / "base") == ["tiny"]


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [
        pytest.param(2, "country", "2 countries", id="y"),
        pytest.param(2, "key", "2 keys", id="y after a vowel"),
        pytest.param(2, "dish", "2 dishes", id="sh"),
        pytest.param(1, "country", "1 country", id="one"),
        pytest.param(1200, "item", "1,200 items", id="many"),
    ],
)
def test_a_count_has_the_plural_of_its_unit(number: int, unit: str, expected: str) -> None:
    """A user's word for a cluster gets its plural."""
    assert counted(number, unit) == expected


def test_a_model_behind_another_address_is_the_same(tmp_path: Path) -> None:
    a_run(tmp_path, "lieder_base", "2026-01-01", model="m", base_url="http://127.0.0.1:1")
    a_run(tmp_path, "lieder_diff", "2026-01-02", model="m", base_url="http://127.0.0.1:2")
    (model,) = read_models([tmp_path])
    assert set(model.runs) == {"lieder_base", "lieder_diff"}


def test_results_that_are_being_written_are_not_read(tmp_path: Path) -> None:
    visible = a_run(tmp_path / "m")
    a_run(tmp_path / "m" / ".part-1", date="2026-02-01")
    assert [results.path for results in read_results(tmp_path)] == [visible]
    hidden = a_run(tmp_path / ".demo")
    assert [results.path for results in read_results(tmp_path / ".demo")] == [hidden]


@pytest.mark.parametrize("folder", [".__model", "..__models__mine"])
def test_a_relative_model_path_makes_no_hidden_results(tmp_path: Path, folder: str) -> None:
    """lm-eval names the folder of ``pretrained=./model`` with a dot, and it is found."""
    visible = a_run(tmp_path / folder)
    assert [results.path for results in read_results(tmp_path)] == [visible]


def test_results_under_a_file_name_are_found(tmp_path: Path) -> None:
    """With ``--output_path out/x.json`` lm-eval writes ``out/x_TIME.json``; both names find it."""
    named = a_run(tmp_path).rename(tmp_path / "x_2026-01-01T09-30-00.123456.json")
    later = a_run(tmp_path, "lieder_diff", "2026-02-01")
    (tmp_path / "x_notes.json").write_text("{}")
    (tmp_path / "config.json").write_text("{}")
    assert [results.path for results in read_results(tmp_path)] == [named, later]
    assert [results.path for results in read_results(tmp_path / "x.json")] == [named]
    with pytest.raises(OptionError, match="no such folder or file"):
        read_results(tmp_path / "absent" / "x.json")


def test_tasks_are_those_that_two_models_have(tmp_path: Path) -> None:
    for name, tasks in (("a", ["lieder_base", "lieder_two"]), ("b", ["lieder_base", "arc"])):
        for day, task in enumerate(tasks, start=1):
            a_run(tmp_path / name, task, f"2026-01-0{day}", pretrained=name)
    models = read_models([tmp_path])
    assert choose_tasks(models, []) == ["lieder_base"]
    assert choose_tasks(models, ["lieder"]) == ["lieder_base"], "a group is its members"
    assert choose_tasks(models, ["*base"]) == ["lieder_base"]
    with pytest.raises(OptionError, match="lieder_base"):
        choose_tasks(models, ["arc"])
    with pytest.raises(OptionError, match=r"^no task is in the results of two models$"):
        choose_tasks(models[:1], [])
