"""What a long command says where there is no terminal."""

import pytest

from lm_eval_ext.cli.runs import fit_status, once_a_minute


def test_a_status_is_printed_once_a_minute() -> None:
    """A job's log shows that the work goes on, without a line for every look at it."""
    now = 0

    def clock() -> float:
        return now

    printed: list[tuple[int, str]] = []
    show = once_a_minute(lambda text: printed.append((now, text)), clock)
    for now in range(0, 201, 10):
        show(f"{now} of 200")
    assert printed == [(60, "60 of 200"), (120, "120 of 200"), (180, "180 of 200")]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param(
            "SmolLM2-135M on lieder_mini: Running loglikelihood requests: 613 of 832; 10 min since "
            "the start",
            "SmolLM2-135M on lied…glikelihood requests: 613 of 832; 10 min since the start",
            id="count",
        ),
        pytest.param(
            "SmolLM2-135M on lieder_mini: Running requests: 1.2k of 8.3k; 10 min since the start; "
            "no output for 50 s",
            "SmolLM2-1… requests: 1.2k of 8.3k; 10 min since the start; no output for 50 s",
            id="quiet",
        ),
        pytest.param(
            "SmolLM2-135M on discourse_entities_mini and lieder_mini: loading the model; 10 s "
            "since the start",
            "SmolLM2-135M on discourse_e…der_mini: loading the model; 10 s since the start",
            id="no count",
        ),
        pytest.param(
            "a: loading the model; 10 s since the start",
            "a: loading the model; 10 s since the start",
            id="short",
        ),
    ],
)
def test_a_narrow_terminal_shows_the_count_and_the_time(line: str, shown: str) -> None:
    """A line that is too long loses the middle of what is before the count."""
    assert fit_status(line, 78) == shown
    assert len(shown) <= 78
