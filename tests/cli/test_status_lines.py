"""What a long command says where there is no terminal."""

from lm_eval_ext.cli.runs import once_a_minute


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
