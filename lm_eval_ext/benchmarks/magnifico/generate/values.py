"""Numbers and dates that questions compare with: those that a person would choose."""

import math
import random
import re

from lm_eval_ext.benchmarks.magnifico.generate.profile import Field

MONTHS = re.findall(
    r"\w+",
    """January February March April May June July August September October November December""",
)
_EDGE = 6
"""A threshold leaves at least a sixth of the different values on either side."""


def threshold(field: Field, rng: random.Random) -> int | float | str | None:
    """A round number, or a date, with values of the column on either side; None without any."""
    values = [value for value in field.values if not isinstance(value, bytes | None)]
    least = max(1, len(values) // _EDGE)
    if len(values) < 2 * least + 1:
        return None
    place = rng.randrange(least, len(values) - least)
    low, high = values[place - 1], values[place]
    if isinstance(low, str) or isinstance(high, str):
        return str(low)
    return simplest(low, high)


def simplest(low: float, high: float) -> int | float:
    """The number with the fewest digits that is at least ``low`` and below ``high``."""
    for power in range(math.ceil(math.log10(abs(high) + 1)) + 1, -6, -1):
        step = 10.0**power
        found = math.ceil(low / step - 1e-9) * step
        if low <= found < high:
            rounded = round(found, max(0, -power))
            return int(rounded) if float(rounded).is_integer() else rounded
    return low


def months(day: str) -> tuple[str, str, str]:
    """The month of a day and the next one: the first day, the day behind, and their names."""
    year, month = int(day[:4]), int(day[5:7])
    later = [((month + n - 1) % 12 + 1, year + (month + n - 1) // 12) for n in (1, 2)]
    (second, its_year), (behind, last_year) = later
    names = f"{MONTHS[month - 1]} or {MONTHS[second - 1]} {its_year}"
    if its_year != year:
        names = f"{MONTHS[month - 1]} {year} or {MONTHS[second - 1]} {its_year}"
    return f"{year:04}-{month:02}-01", f"{last_year:04}-{behind:02}-01", names
