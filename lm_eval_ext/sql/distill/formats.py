"""Ways to write dates, times and codes."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from lm_eval_ext.sql.values import Value


@dataclass(frozen=True)
class Format:
    """A way to write dates or times; ``step`` is the time from one value to the next."""

    pattern: str
    written: str
    step: timedelta

    def read(self, value: Value) -> datetime | None:
        """Returns the moment; None if the value is not written in this way, or does not exist."""
        found = re.fullmatch(self.pattern, str(value))
        if found is None:
            return None
        parts = {name: int(text) for name, text in found.groupdict().items()}
        try:
            return datetime(**{"year": 2000, "month": 1, "day": 1, **parts})  # type: ignore[arg-type]
        except ValueError:
            return None

    def write(self, moment: datetime) -> str:
        """Returns the text of a moment."""
        return self.written.format(moment)


_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>\d\d)", r"(?P<day>\d\d)"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)"
_SECOND = r":(?P<second>\d\d)"
_LOOSE_MONTH, _LOOSE_DAY = r"(?P<month>[1-9]|1[0-2])", r"(?P<day>[1-9]|[12]\d|3[01])"
_LOOSE_DATE = f"{_LOOSE_MONTH}/{_LOOSE_DAY}/{_YEAR}"
_LOOSE_CLOCK = r"(?P<hour>\d|1\d|2[0-3]):(?P<minute>\d\d)"
_A_DAY, _A_MINUTE, _A_SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)

FORMATS = (
    Format(f"{_YEAR}-{_MONTH}-{_DAY}", "{0:%Y-%m-%d}", _A_DAY),
    Format(f"{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}{_SECOND}", "{0:%Y-%m-%d %H:%M:%S}", _A_SECOND),
    Format(f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_SECOND}", "{0:%Y-%m-%dT%H:%M:%S}", _A_SECOND),
    Format(f"{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}", "{0:%Y-%m-%d %H:%M}", _A_MINUTE),
    Format(f"{_YEAR}-{_LOOSE_MONTH}-{_LOOSE_DAY}", "{0:%Y}-{0.month}-{0.day}", _A_DAY),
    Format(f"{_YEAR}/{_MONTH}/{_DAY}", "{0:%Y/%m/%d}", _A_DAY),
    Format(f"{_MONTH}/{_DAY}/{_YEAR}", "{0:%m/%d/%Y}", _A_DAY),
    Format(f"{_DAY}/{_MONTH}/{_YEAR}", "{0:%d/%m/%Y}", _A_DAY),
    Format(_LOOSE_DATE, "{0.month}/{0.day}/{0:%Y}", _A_DAY),
    Format(f"{_LOOSE_DATE} {_LOOSE_CLOCK}", "{0.month}/{0.day}/{0:%Y} {0.hour}:{0:%M}", _A_MINUTE),
    Format(f"{_CLOCK}{_SECOND}", "{0:%H:%M:%S}", _A_SECOND),
    Format(f"{_CLOCK}", "{0:%H:%M}", _A_MINUTE),
    Format(r"(?P<year>1[89]\d\d|20\d\d)(?P<month>\d\d)(?P<day>\d\d)", "{0:%Y%m%d}", _A_DAY),
)
"""The first one that all of a column's values are written in is the column's."""


def next_text(text: str, by: int, *, wide: bool) -> str:
    """Counts a text's last number up or down, else its last letter; a word gets a letter more."""
    digits = re.search(r"\d+(?=\D*$)", text)
    if digits is not None:
        number = int(digits[0]) + by
        written = str(number).zfill(len(digits[0]))
        if number >= 0 and (wide or len(written) == len(digits[0])):
            return text[: digits.start()] + written + text[digits.end() :]
        return text
    if wide:
        return text + "a" if by > 0 else text[:-1]
    last = text[-1:]
    following = chr(ord(last) + by) if last else ""
    same = last.isascii() and following.isalpha() and last.isupper() == following.isupper()
    return text[:-1] + following if same else text


@lru_cache(maxsize=1 << 16)
def pattern_of(text: str, *, exact: bool) -> str:
    """Returns a text with A for letters and 9 for digits; unless exact, one for a run of them."""
    plain = re.sub(r"[^\W\d_]", "A", re.sub(r"\d", "9", text))
    return plain if exact else re.sub(r"(A+)", "A", re.sub(r"(9+)", "9", plain))
