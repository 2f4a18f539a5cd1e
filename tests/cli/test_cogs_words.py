"""What the command line prints of names in brackets, and options that a lexicon would ignore."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import OptionError


def printed(*arguments: str) -> str:
    """The output, without line breaks and boxes."""
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    return " ".join(re.sub(r"[│╭╮╰╯─┃┏┓┡┩└┘]", " ", done.output).split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("cogs", "--help"),
        ("cogs", "add-tokens", "--help"),
        ("cogs", "substitute", "--help"),
        ("tasks", "cogs_tokens"),
    ],
)
def test_tokens_in_brackets_are_no_markup(arguments: tuple[str, ...]) -> None:
    text = printed(*arguments)
    assert "[w_0] to [w_20]" in text
    assert "\\[" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lexicon", "unmodified", "--seed", "1"), "words of unmodified are fixed"),
        (("--lexicon", "tokens", "--seed", "1"), "words of tokens are fixed"),
        (("--lexicon", "cvcv_long", "--shape", "cvcv_long"), "words of cvcv_long are fixed"),
    ],
)
def test_an_option_that_the_lexicon_would_ignore_is_refused(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "in.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    for command in (
        ["substitute", str(tmp_path / "in.tsv"), "-o", str(tmp_path / "out.tsv")],
        ["substitute", "-o", str(tmp_path / "out")],
    ):
        done = CliRunner().invoke(app, ["cogs", *command, *options])
        assert isinstance(done.exception, OptionError)
        assert message in str(done.exception)
        assert [path.name for path in tmp_path.iterdir()] == ["in.tsv"]
