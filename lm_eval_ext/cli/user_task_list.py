"""What ``lm-eval-ext tasks FILE`` prints: a user's own tasks, and which commands know them."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from lm_eval_ext.cli.shared_options import shell_words
from lm_eval_ext.cli.task_list import MODELS_NEEDED, WIDTH
from lm_eval_ext.harness.user_files import UserFiles, UserTask
from lm_eval_ext.task_folder import tasks_folder
from lm_eval_ext.text import counted

_INDENT = "    "

_LOGLIKELIHOODS = ("loglikelihood", "loglikelihood_rolling", "multiple_choice")
"""Kinds of requests that need log-probabilities."""

COMMANDS_FOR_CARDS = (
    "Commands that know it: run (include_path in a model's file) and cite (with the file); then, "
    "by its results, show, samples, compare, power and leaderboard."
)
COMMANDS_FOR_PLAIN_TASKS = (
    "It has no card. Commands that know it: run (include_path in a model's file); then, by its "
    "results, show, samples, compare, power and leaderboard, without facets and clusters."
)
COMMANDS_FOR_OURS = (
    "Commands that know only what ships: plot, data, train, power without results, and those named "
    "after a benchmark (docs/adding.md)."
)


def user_task_lines(files: UserFiles) -> Iterator[str]:
    """Yield the tasks of a user's files with their benchmark, metrics, models and problems."""
    file = None
    for task in files.tasks:
        if task.file != file:
            file = task.file
            yield f"{file}:"
        yield from _task_lines(task)
    if files.other_files:
        names = ", ".join(str(path) for path in files.other_files)
        yield from wrap(f"no task files: {names}", WIDTH, break_long_words=False)
    for line in files.unreadable:
        yield from wrap(f"lm-eval passes over: {line}", WIDTH, break_long_words=False)
    yield ""
    names = ",".join(task.name for task in files.tasks if not task.members)
    if names:
        yield "to evaluate a model:"
        yield f"  lm_eval --include_path {shell_words([files.folder])} --tasks {names} \\"
        yield "    --model hf-prefix --model_args pretrained=MODEL \\"
        yield "    --output_path results/MY_MODEL --log_samples"
    has_card = any(task.card is not None for task in files.tasks)
    known = COMMANDS_FOR_CARDS if has_card else COMMANDS_FOR_PLAIN_TASKS
    yield from wrap(known, WIDTH)
    yield from wrap(COMMANDS_FOR_OURS, WIDTH)


def _task_lines(task: UserTask) -> Iterator[str]:
    """Yield the lines about one task or group."""
    if task.members:
        yield f"  {task.name}: a group of {', '.join(task.members)}"
        return
    yield from _indented(f"{task.name}: {_kind(task)}", "  ")
    metrics = "lm-eval's defaults"
    if task.metrics:
        headline = " (the headline)" if task.card is not None else ""
        metrics = ", ".join([f"{task.metrics[0]}{headline}", *task.metrics[1:]])
    yield from _indented(f"metrics: {metrics}")
    yield from _indented(_models(task))
    if task.max_new_tokens is not None:
        yield f"{_INDENT}answers of up to {counted(task.max_new_tokens, 'token')}"
    for problem in task.problems:
        yield from _indented(f"! {problem}")


def _kind(task: UserTask) -> str:
    """Return what benchmark a task is of."""
    if task.card is None:
        return "a task of plain lm-eval, of no benchmark (its file has no card)"
    if task.file.resolve().parent == Path(tasks_folder()).resolve():
        return f"our task, of the benchmark {task.card.name}"
    if not task.ships:
        return f"a task of a benchmark of your own, {task.card.name} ({task.card.title})"
    if task.replaces_ours:
        return f"a variant that replaces our task of that name, of the benchmark {task.card.name}"
    return f"a variant of a task of our benchmark {task.card.name}"


def _models(task: UserTask) -> str:
    """Return which models can answer."""
    kind = "loglikelihood" if task.output_type in _LOGLIKELIHOODS else "generate_until"
    return MODELS_NEEDED[kind]


def _indented(text: str, indent: str = _INDENT) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False
    )


def user_task_content(files: UserFiles) -> list[dict[str, object]]:
    """Return the tasks and groups for JSON."""
    content: list[dict[str, object]] = []
    for task in files.tasks:
        content.append(
            {
                "task": task.name,
                "file": str(task.file),
                "members": task.members,
                "benchmark": None if task.card is None else task.card.name,
                "ships": task.ships,
                "output_type": task.output_type,
                "max_new_tokens": task.max_new_tokens,
                "metrics": task.metrics,
                "problems": task.problems,
            }
        )
    return content
