"""How many digits a figure shows."""

_PERCENT = 1.5
"""Above it figures are percentages: one decimal says as much as three of a share."""


def number(value: float, *, like: float | None = None, sign: bool = False) -> str:
    """A figure with the digits that a reader needs: three up to 1.5, one above.

    Args:
        value: Which.
        like: Whose digits it gets; its own if None. Bounds look like what they bound.
        sign: Whether a plus is written.
    """
    digits = 1 if abs(value if like is None else like) > _PERCENT else 3
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
