"""What pages say of the command line exists: every command, and every option beside it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lm_eval_ext.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CALL = re.compile(r"(?:^|`|\$\(|\n|bin/)lm-eval-ext((?: +[^\s`#|&()]+| *\\\n *)+)")


def unknown(text: str) -> Iterator[str]:
    """Commands and options of ``lm-eval-ext`` in a text's code that do not exist."""
    for call in CALL.findall(text):
        words = call.replace("\\\n", " ").split()
        command: Any = typer.main.get_command(app)
        while hasattr(command, "commands") and words and re.match("[a-z]", words[0]):
            word = words.pop(0)
            if word not in command.commands:
                yield f"lm-eval-ext {word}"
                break
            command = command.commands[word]
        else:
            legal = {name for one in command.params for name in one.opts + one.secondary_opts}
            given = {word.partition("=")[0].rstrip(".,;:") for word in words if word[0] == "-"}
            yield from (f"{command.name} {name}" for name in given - legal - {"--help"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_of_a_page_exist(page: Path) -> None:
    assert not list(unknown(page.read_text(encoding="utf-8")))


def test_what_does_not_exist_is_found() -> None:
    text = "`lm-eval-ext show results --famly x`, `lm-eval-ext sho`; `lm-eval-ext show -o x`"
    assert sorted(unknown(text)) == ["lm-eval-ext sho", "show --famly", "show -o"]
    assert not list(unknown("`lm-eval-ext show results \\\n  --by family`, and lm-eval-ext is"))


def test_paragraphs_of_help_are_not_broken() -> None:
    commands: list[Any] = [typer.main.get_command(app)]
    for one in commands:
        commands += getattr(one, "commands", {}).values()
        assert not re.search(r"\n\n.+\n.", one.help or ""), one.name
