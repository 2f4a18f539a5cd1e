"""A user's own task files: what ``tasks FILE`` and ``cite FILE`` say about them."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.cli.task_list import WIDTH
from lm_eval_ext.cli.user_task_list import COMMANDS_FOR_CARDS, COMMANDS_FOR_OURS
from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.harness.user_files import read_user_files
from lm_eval_ext.task_folder import tasks_folder

ROOT = Path(__file__).parents[2]
PLURALS = ROOT / "examples" / "plurals"

PLAIN = """\
task: capitals
dataset_path: json
output_type: multiple_choice
doc_to_text: question
metric_list:
  - metric: acc
"""


def output_of(*words: object) -> str:
    """Return the output of a command that succeeds, in one line."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.exception
    return " ".join(result.output.split())


def error_of(*words: object) -> str:
    """Return the error of a command that fails."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code != 0, result.output
    return str(result.exception)


def changed_example(folder: Path, old: str, new: str) -> Path:
    """Copy the example and change its task file; return the file."""
    shutil.copytree(PLURALS, folder, dirs_exist_ok=True)
    file = folder / "plurals.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return file


@pytest.mark.parametrize("path", [PLURALS, PLURALS / "plurals.yaml"], ids=["folder", "file"])
def test_a_task_is_listed_with_benchmark_metrics_and_models(path: Path) -> None:
    output = output_of("tasks", path)
    assert "plurals: a task of a benchmark of your own, plurals (Plurals: forming" in output
    assert "metrics: accuracy (the headline), accuracy/es, no_answer" in output
    assert "models: any that write answers" in output
    assert "answers of up to 16 tokens" in output
    assert f"lm_eval --include_path {PLURALS} --tasks plurals" in output
    assert "--model hf-prefix --model_args pretrained=MODEL" in output
    assert COMMANDS_FOR_CARDS in output
    assert COMMANDS_FOR_OURS in output
    assert "!" not in output, "nothing is missing"


def test_lines_are_no_wider_than_a_terminal() -> None:
    lines = CliRunner().invoke(app, ["tasks", str(PLURALS)]).output.splitlines()
    too_wide = [line for line in lines if len(line) > WIDTH and str(ROOT) not in line]
    assert too_wide == []


def test_json_has_the_same() -> None:
    (task,) = json.loads(CliRunner().invoke(app, ["tasks", str(PLURALS), "--json"]).output)
    assert (task["task"], task["benchmark"], task["ships"]) == ("plurals", "plurals", False)
    assert task["output_type"] == "generate_until"
    assert task["max_new_tokens"] == 16
    assert task["metrics"] == ["accuracy", "accuracy/es", "no_answer"]
    assert task["problems"] == []


def test_a_task_of_plain_lm_eval_has_no_benchmark(tmp_path: Path) -> None:
    (tmp_path / "capitals.yaml").write_text(PLAIN)
    (tmp_path / "all.yaml").write_text("group: geography\ntask: [capitals]\n")
    output = output_of("tasks", tmp_path)
    assert "capitals: a task of plain lm-eval, of no benchmark (its file has no card)" in output
    assert "metrics: acc models: those that return log-probabilities" in output
    assert "geography: a group of capitals" in output
    assert "It has no card." in output


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lieder_mini", "a variant that replaces our task of that name, of the benchmark lieder"),
        ("lieder_mine", "a variant of a task of our benchmark lieder"),
    ],
)
def test_a_variant_is_of_our_benchmark(name: str, kind: str, tmp_path: Path) -> None:
    text = f"include: {tasks_folder()}/lieder.yaml\ntask: {name}\nmetadata: {{version: 'mine'}}\n"
    (tmp_path / "mine.yaml").write_text(text)
    output = output_of("tasks", tmp_path)
    assert f"{name}: {kind}" in output
    assert "models: those that return log-probabilities" in output


def test_a_file_of_several_tasks_lists_them_and_their_groups(tmp_path: Path) -> None:
    file = changed_example(tmp_path, "task: plurals\n", "")
    text = file.read_text().replace("card:\n", "card:\n  groups: {both: [p2, p3]}\n")
    tasks = "tasks:\n  p2: {}\n  p3: {metric_list: [no_answer]}\n"
    file.write_text(text + tasks)
    p2, p3, both = read_user_files(file).tasks
    assert (p2.name, p2.metrics[0]) == ("p2", "accuracy")
    assert (p3.name, p3.metrics) == ("p3", ("no_answer",))
    assert (both.name, both.members) == ("both", ("p2", "p3"))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        pytest.param(
            "output_type: generate_until\n",
            "",
            "! output_type is missing, so lm-eval takes generate_until; add output_type:",
            id="no output_type",
        ),
        pytest.param(
            "output_type: generate_until",
            "output_type: generate",
            "! output_type generate is not legal; legal: loglikelihood,",
            id="unknown output_type",
        ),
        pytest.param(
            "task.ExtTask",
            "task.GroupedLoglikelihoodTask",
            "! output_type is generate_until, and its class needs output_type: loglikelihood",
            id="another class",
        ),
        pytest.param(
            ", max_gen_toks: 16",
            "",
            "! generation_kwargs has no max_gen_toks, so each model's default decides",
            id="no max_gen_toks",
        ),
        pytest.param(
            "metadata:\n", "metric_list: [f1]\nmetadata:\n", "! metric_list has f1, which the card",
            id="no such metric",
        ),
        pytest.param(
            '  version: "1.0"\n', "", "! metadata has no version, a text in quotes", id="no version"
        ),
    ],
)  # fmt: skip
def test_what_a_task_lacks_is_a_line(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert problem in output_of("tasks", changed_example(tmp_path, old, new))


def test_paths_without_a_task_are_refused(tmp_path: Path) -> None:
    assert "no such file or folder" in error_of("tasks", tmp_path / "none.yaml")
    assert "it holds no file that ends in .yaml" in error_of("tasks", tmp_path)
    (tmp_path / "model.yaml").write_text("model: hf\n")
    assert "have no key task, group or card: model.yaml" in error_of("tasks", tmp_path)
    assert "model.yaml is no task file" in error_of("tasks", tmp_path / "model.yaml")
    (tmp_path / "broken.yaml").write_text("task: [\n")
    assert "has no task that can be read" in error_of("tasks", tmp_path)


def test_files_that_lm_eval_passes_over_are_named(tmp_path: Path) -> None:
    changed_example(tmp_path, "task: plurals", "task: plurals")
    (tmp_path / "broken.yaml").write_text("task: [\n")
    (tmp_path / "model.yaml").write_text("model: hf\n")
    output = output_of("tasks", tmp_path)
    assert "lm-eval passes over:" in output
    assert "broken.yaml: not valid YAML" in output
    assert "no task files:" in output


def test_a_folder_with_the_name_of_a_benchmark_hides_it_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slog").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "slog_mini" in output_of("tasks", "slog")


def test_an_unknown_name_points_to_files() -> None:
    assert "for tasks of your own give their file" in error_of("tasks", "plurals")
    assert "for a benchmark of your own give its task file" in error_of("cite", "plurals")


def test_a_paper_on_the_card_is_cited(tmp_path: Path) -> None:
    paper = (
        "card:\n  paper: {title: On Plurals, authors: 'Ann Bee, Carl Dee and Eve Fey', "
        "venue: Plural 2025, url: 'https://example.org/plurals'}\n"
    )
    file = changed_example(tmp_path, "card:\n", paper)
    output = output_of("cite", file)
    entry = (
        "@misc{plurals, author = {Ann Bee and Carl Dee and Eve Fey}, title = {{On Plurals}}, "
        "howpublished = {Plural 2025}, year = {2025}, url = {https://example.org/plurals}, }"
    )
    assert entry in output
    assert "@misc{lmevalext," in output


def test_a_card_without_a_paper_is_not_cited_silently(caplog: pytest.LogCaptureFixture) -> None:
    output_of("cite", PLURALS)
    assert "the card of plurals names no paper, so nothing of it is cited" in caplog.text


def test_a_variant_cites_our_paper(tmp_path: Path) -> None:
    text = f"include: {tasks_folder()}/lieder.yaml\ntask: my_lieder\n"
    (tmp_path / "mine.yaml").write_text(text)
    assert "zhu2024lieder" in output_of("cite", tmp_path)


def test_a_malformed_card_is_named(tmp_path: Path) -> None:
    file = changed_example(tmp_path, "facets:", "facet:")
    with pytest.raises(LmEvalExtError, match=r"the card of plurals: facet: unknown key"):
        read_user_files(file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("generation_kwargs: [1]", "generation_kwargs is not legal; legal: keys with values"),
        ("generation_kwargs: {max_gen_toks: true}", "max_gen_toks True is not legal"),
        ("metric_list: 3", "metric_list is not legal; legal: a list"),
        ("metric_list: acc", "metric_list is not legal; legal: a list"),
        ("tasks: [a, b]", "tasks is not legal; legal: names, each with the keys"),
        ("tasks: {a: hello}", "tasks is not legal; legal: names, each with the keys"),
    ],
)
def test_a_malformed_key_is_named_and_ends_no_listing(
    tmp_path: Path, line: str, message: str
) -> None:
    bad_file = tmp_path / "bad.yml"
    bad_file.write_text(f"task: bad\n{line}\n")
    (tmp_path / "capitals.yaml").write_text(PLAIN)
    assert message in error_of("tasks", bad_file)
    assert message in error_of("cite", bad_file)
    assert "capitals: a task of plain lm-eval" in output_of("tasks", tmp_path)


def test_a_group_without_tasks_is_named(tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text("group: g\n")
    assert "group has no key task" in error_of("tasks", file)
