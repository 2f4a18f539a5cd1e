"""Text from other sources on one line."""

import pytest

from lm_eval_ext.text import one_line


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        pytest.param(None, "abcdefgh", id="no limit"),
        pytest.param(8, "abcdefgh", id="as long as the text"),
        pytest.param(7, "abc…fgh", id="one shorter"),
        pytest.param(4, "a…h", id="even"),
        pytest.param(3, "a…h", id="one letter on each side"),
        pytest.param(2, "…", id="no letter on both sides"),
        pytest.param(1, "…", id="one"),
    ],
)
def test_a_text_that_is_too_long_loses_its_middle(limit: int | None, shown: str) -> None:
    assert one_line("abcdefgh", limit=limit) == shown


def test_line_breaks_and_what_does_not_print_become_spaces() -> None:
    assert one_line(" two\nwords\x1b[1m \u202e") == "two words [1m"


def test_a_very_long_text_keeps_both_ends() -> None:
    assert one_line("a" * 10**6 + "b" * 10**6, limit=5) == "aa…bb"
