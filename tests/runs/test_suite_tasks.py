"""Names of tasks, and which results are there already."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.files import identity
from lm_eval_ext.runs.job import Wanted, check_same_model
from lm_eval_ext.runs.tasks import select

STOCK = """\
task: stock_sums
custom_dataset: !function sums.load
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

LOAD = """\
from datasets import Dataset

def load(**kwargs):
    rows = [{"question": f"{n} + 1 =", "answer": str(n + 1)} for n in range(5)]
    return {"test": Dataset.from_list(rows)}
"""


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "stock_sums.yaml").write_text(STOCK)
    (folder / "sums.py").write_text(LOAD)
    return folder


@pytest.fixture(scope="module")
def made_once(
    own_tasks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[dict[str, Any]], Path]:
    """A folder with results of stock_sums under some options."""
    known: dict[str, Path] = {}

    def make(options: dict[str, Any]) -> Path:
        key = repr(options)
        if key not in known:
            known[key] = tmp_path_factory.mktemp("made")
            evaluated(known[key], "stock_sums", [str(own_tasks)], **options)
        return known[key]

    return make


def test_own_names_need_our_folder_only() -> None:
    chosen = select("lieder_mini, cogs_mini,lieder_mini")
    assert chosen.own_only
    assert chosen.units["lieder_mini"] == ("lieder_mini",)
    assert chosen.units["cogs_mini"] == ("cogs_mini_id", "cogs_mini_testlex", "cogs_mini_gen")
    assert "arc_easy" not in chosen.manager.all_tasks
    assert chosen.is_group("cogs_mini")
    assert not chosen.is_group("lieder_mini")


@pytest.mark.slow
def test_patterns_and_other_tasks_need_the_whole_index() -> None:
    chosen = select("lieder*,arc_easy")
    assert not chosen.own_only
    assert set(chosen.units) == {"lieder", "lieder_mini", "arc_easy"}, "members come with the group"
    assert chosen.units["lieder"] == ("lieder_base", "lieder_diff", "lieder_two")


@pytest.fixture
def small_index(small_lm_eval: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval's index has one task of its own."""
    from lm_eval.tasks import manager

    file = small_lm_eval / "lm_eval" / "tasks" / "manager.py"
    monkeypatch.setattr(manager, "__file__", str(file))


@pytest.mark.usefixtures("small_index")
def test_a_pattern_of_ours_leaves_the_processes_our_folder_only() -> None:
    assert select("cogs_mini_i*").own_only


def test_data_are_checked_with_a_models_own_metadata() -> None:
    selection = select("cogs_mini_fresh_gen")
    selection.check({"cogs_seed": 3})
    with pytest.raises(OptionError, match="cogs_sed"):
        selection.check({"cogs_sed": 3})


def test_a_users_folder_and_file(own_tasks: Path) -> None:
    chosen = select("stock_sums", [str(own_tasks)])
    assert chosen.own_only
    assert set(chosen.load("stock_sums", {})) == {"stock_sums"}
    file = str(own_tasks / "stock_sums.yaml")
    assert select(file).units == {file: ("stock_sums",)}


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "said"),
    [("leider_mini", "similar are .*lieder_mini"), ("zzz*", "no task 'zzz\\*'"), (" ,", "no task")],
)
def test_unknown_names(names: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        select(names)


class Silent(LM):
    """Answers nothing, at once."""

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [(0.0, False) for _ in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        return [0.0 for _ in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        return ["" for _ in requests]


def evaluated(folder: Path, task: str, tasks: list[str], **options: Any) -> None:
    """Writes results as plain lm_eval does, through a model of no use."""
    from lm_eval_ext.runs.tasks import own_manager

    folder.mkdir(exist_ok=True)
    tracker = EvaluationTracker(output_path=str(folder))
    results = simple_evaluate(
        model=Silent(),
        tasks=[task],
        task_manager=own_manager(tasks, options.pop("metadata", {})),
        evaluation_tracker=tracker,
        bootstrap_iters=0,
        log_samples=True,
        **options,
    )
    results["config"].update(model="dummy", model_args={})
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name, rows in samples.items():
        tracker.save_results_samples(task_name=name, samples=rows)
    assert list(folder.rglob("samples_*"))


@pytest.mark.parametrize(
    ("made", "asked", "limit", "there"),
    [
        ({}, {}, None, True),
        ({"limit": 3}, {}, 3, True),
        ({"limit": 3}, {}, None, False),
        ({"limit": 3}, {}, 0.5, True),  # half of five is three, rounded up
        ({}, {}, 5, True),
        ({}, {}, 4, False),
        ({}, {"num_fewshot": 1}, None, False),
        ({}, {"system_instruction": "Be brief."}, None, False),
        ({"system_instruction": "Be brief."}, {"system_instruction": "Be brief."}, None, True),
        ({}, {"gen_kwargs": {"max_gen_toks": 3}}, None, False),
        ({"gen_kwargs": {"max_gen_toks": 3}}, {"gen_kwargs": "max_gen_toks=3"}, None, True),
        ({}, {"batch_size": 8, "device": "cpu"}, None, True),
        ({}, {"model_args": {"num_concurrent": 3}}, None, True),
        ({}, {"model_args": {"pretrained": "other"}}, None, False),
        ({}, {"apply_chat_template": True}, None, False),
    ],
)
def test_results_count_under_the_same_signature(
    *,
    own_tasks: Path,
    made_once: Callable[[dict[str, Any]], Path],
    made: dict[str, Any],
    asked: dict[str, Any],
    limit: float | None,
    there: bool,
) -> None:
    folder = made_once(made)
    wanted = Wanted({"model": "dummy", **asked}, limit, select("stock_sums", [str(own_tasks)]))
    assert wanted.missing(folder) == ([] if there else ["stock_sums"])


def test_our_tasks_options_count(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    settings = {"metadata": {"cogs_seed": 5}}
    evaluated(folder, "cogs_mini_fresh_gen", [], limit=2, **settings)
    selection = select("cogs_mini_fresh_gen")
    same = Wanted({"model": "dummy", **settings}, 2, selection)
    assert same.missing(folder) == []
    other = Wanted({"model": "dummy", "metadata": {"cogs_seed": 6}}, 2, selection)
    assert other.missing(folder) == ["cogs_mini_fresh_gen"]


def test_results_without_samples_do_not_count(own_tasks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    evaluated(folder, "stock_sums", [str(own_tasks)])
    for file in folder.rglob("samples_*"):
        file.unlink()
    wanted = Wanted({"model": "dummy"}, None, select("stock_sums", [str(own_tasks)]))
    assert wanted.missing(folder) == ["stock_sums"]
    assert wanted.missing(tmp_path / "nothing") == ["stock_sums"]


def test_another_model_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("model: hf\nmodel_args: pretrained=a\ndisplay_name: x\n")
    same = {"model": "hf", "model_args": {"pretrained": "a", "num_concurrent": 2}}
    check_same_model(tmp_path, same, Path("m.yaml"))
    with pytest.raises(DataError, match="rename the file, or remove"):
        check_same_model(tmp_path, {"model": "hf", "model_args": {"pretrained": "b"}}, Path("m"))
    (tmp_path / "model.yaml").write_text("[")
    with pytest.raises(DataError, match="cannot be read"):
        check_same_model(tmp_path, same, Path("m.yaml"))


def test_where_a_model_runs_is_not_which_it_is() -> None:
    assert identity({"model": "m", "model_args": "base_url=a,model=b"}) == identity(
        {"model": "m", "model_args": {"model": "b", "base_url": "c"}}
    )
    assert identity({"model": "m"}) != identity({"model": "n"})
