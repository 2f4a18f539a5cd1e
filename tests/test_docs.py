"""Commands, options and names of tasks that pages mention exist."""

import re
from collections.abc import Iterator
from fnmatch import filter as matching
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main
from lm_eval._cli.harness import HarnessCLI

from lm_eval_ext.cards import cards
from lm_eval_ext.cli.app import app
from lm_eval_ext.data.sources import sources
from lm_eval_ext.training.recipe import shipped

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CALL = re.compile(r"(?:^|`|\$\(|\n|bin/)lm-eval-ext((?: +[^\s`#|&()]+| *\\\n *)+)")
HARNESS_CALL = re.compile(r"(?:^|`|\n|bin/)lm_eval((?: +[^\s`#|&()]+| *\\\n *)+)")

BENCHMARKS = tuple(cards())
TASKS = {name for card in cards().values() for name in (*card.tasks, *card.groups)}
FILES = {path.stem for path in (ROOT / "docs").rglob("*") if path.is_file()}
PLACEHOLDERS = {"TASK", "TASKS"}
USERS_TASKS = {"magnifico_generated_shop", "plurals", "quiz"}
"""Tasks that a page makes before it runs them."""


def option_names() -> set[str]:
    """Return the metadata keys of all benchmarks, from the loaders that their task files name."""
    names = set[str]()
    for benchmark in BENCHMARKS:
        text = (ROOT / "tasks" / f"{benchmark}.yaml").read_text(encoding="utf-8")
        loaders = re.findall(r"custom_dataset:(?: &\w+)? !function ([\w.]+)\.(\w+)", text)
        for module, loader in loaders:
            names |= getattr(import_module(module), loader).fields.keys()
    return names


def unknown_words(words: list[str]) -> Iterator[str]:
    """Yield the command, or the options, behind ``lm-eval-ext`` that do not exist."""
    words = list(words)
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and re.match("[a-z]", words[0]):
        word = words.pop(0)
        if word not in command.commands:
            yield f"lm-eval-ext {word}"
            return
        command = command.commands[word]
    legal = {"--help"}
    for option in command.params:
        legal.update(option.opts, option.secondary_opts)
    for word in words:
        name = word.partition("=")[0].rstrip(".,;:")
        if word.startswith("-") and name not in legal:
            yield f"{command.name} {name}"


def unknown(text: str) -> Iterator[str]:
    """Yield commands and options of ``lm-eval-ext`` in a text's code that do not exist."""
    for call in CALL.findall(text):
        yield from unknown_words(call.replace("\\\n", " ").split())


def unknown_harness_options(text: str) -> Iterator[str]:
    """Yield options of ``lm_eval`` in a text's code that do not exist."""
    subcommands = HarnessCLI()._subparsers.choices
    for call in HARNESS_CALL.findall(text):
        words = call.replace("\\\n", " ").split()
        subcommand = words[0] if words and words[0] in subcommands else "run"
        legal = subcommands[subcommand]._option_string_actions
        for word in words:
            name = word.partition("=")[0].rstrip(".,;:")
            if word.startswith("-") and name not in legal:
                yield f"lm_eval {subcommand} {name}"


def unknown_tasks(text: str) -> Iterator[str]:
    """Yield names that a text gives to ``--tasks``, or quotes as ours, and that do not exist."""
    for names in re.findall(r"--tasks[ =]+([\w,*-]+)", text):
        for name in names.strip(",").split(","):
            if not matching(TASKS, name) and name not in PLACEHOLDERS | USERS_TASKS:
                yield f"--tasks {name}"
    legal = TASKS | FILES | set(sources()) | set(shipped()) | option_names() | USERS_TASKS
    ours = "|".join(BENCHMARKS)
    for name in re.findall(rf"`((?:{ours})_[a-z0-9_*]+)`", text):
        if not matching(legal, name):
            yield name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_of_a_page_exist(page: Path) -> None:
    """Every command and option of ours and of lm_eval that a page shows can be typed."""
    text = page.read_text(encoding="utf-8")
    assert not list(unknown(text))
    assert not list(unknown_harness_options(text))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stem != "CHANGELOG"],  # which has the names of earlier days
    ids=lambda page: page.stem,
)
def test_tasks_that_a_page_names_exist(page: Path) -> None:
    """Every task, group, data source, recipe and metadata key that a page names exists."""
    assert not list(unknown_tasks(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("ending", ["", "_mini"])
def test_a_benchmark_is_found_by_its_name(benchmark: str, ending: str) -> None:
    """A benchmark's name and its mini task can be given to ``--tasks`` as one guesses them."""
    assert benchmark + ending in TASKS


def test_wrong_commands_and_options_are_noticed() -> None:
    """Right ones are passed over."""
    text = "`lm-eval-ext show results --famly x`, `lm-eval-ext sho`; `lm-eval-ext show -o x`"
    assert sorted(unknown(text)) == ["lm-eval-ext sho", "show --famly", "show -o"]
    assert not list(unknown("`lm-eval-ext show results \\\n  --by family`, and lm-eval-ext is"))


def test_wrong_options_of_lm_eval_are_noticed() -> None:
    """Each subcommand has its own options."""
    text = "`lm_eval --tasks lieder --limt 3`; `lm_eval run --limit 3`"
    assert list(unknown_harness_options(text)) == ["lm_eval run --limt"]


def test_wrong_tasks_are_noticed() -> None:
    """Groups, patterns and names of files are passed over."""
    text = "`--tasks lieder,cogs_minni`, `slog_genn`, `cogs_icl_*`, `lieder_items`, `--tasks cogs`"
    assert list(unknown_tasks(text)) == ["--tasks cogs_minni", "slog_genn"]


def test_paragraphs_of_help_are_not_broken() -> None:
    """A paragraph of ``--help`` is one line, which a terminal wraps by itself."""
    commands: list[Any] = [typer.main.get_command(app)]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        assert not re.search(r"\n\n.+\n.", command.help or ""), command.name
