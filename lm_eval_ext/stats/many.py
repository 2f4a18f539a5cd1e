"""Many comparisons at once: adjusted p-values, and which systems cannot be told apart."""

from collections.abc import Collection, Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values so that the chance of any false finding stays below the level.

    Holm (1979): the smallest is multiplied by the number of tests, the next by one less, and
    so on; none may be below the one before.

    Returns:
        Adjusted p-values in the order given.
    """
    adjusted = [1.0] * len(p_values)
    least = 0.0
    ranked = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(ranked):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def letters(count: int, different: Collection[tuple[int, int]]) -> list[str]:
    """The compact letter display of Piepho (2004, doi 10.1198/1061860043515).

    Two systems share a letter exactly if they are not told apart.

    Args:
        count: How many systems; they are numbered from 0, the best one first.
        different: The pairs that are told apart.

    Returns:
        For each system its letters, such as ``"ab"``.
    """
    columns = [frozenset(range(count))] if count else []
    for first, second in sorted(tuple(sorted(pair)) for pair in different):
        split = [
            part
            for column in columns
            for part in (
                (column - {first}, column - {second}) if {first, second} <= column else (column,)
            )
        ]
        distinct = list(dict.fromkeys(split))
        columns = [one for one in distinct if not any(one < other for other in distinct)]
    columns.sort(key=sorted)
    names = [_letter(place) for place in range(len(columns))]
    return [
        "".join(name for name, column in zip(names, columns, strict=True) if system in column)
        for system in range(count)
    ]


def _letter(place: int) -> str:
    """A to z in small letters, then with numbers: a1 to z1 and so on."""
    turn, rest = divmod(place, 26)
    return chr(ord("a") + rest) + (str(turn) if turn else "")
