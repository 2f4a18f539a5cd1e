"""What a column is to its table, by its values and the last word of its name."""

import re
from collections.abc import Mapping

from lm_eval_ext.benchmarks.magnifico.generate import english
from lm_eval_ext.benchmarks.magnifico.generate.lexicon import ColumnEntry, Role
from lm_eval_ext.sql.schema import Column
from lm_eval_ext.sql.values import Value

FEWEST_ROWS = 4
"""A table with fewer rows is not asked about: nearly every question on it is trivial."""

MOST_WORDS = 3
_FIRST_YEAR, _LAST_YEAR = 1000, 2200
_MOST_TEXT = 32
MOST_CATEGORIES = 40
MOST_VALUES = 60

UNSAID = frozenset(
    re.findall(
        r"\w+",
        """id ids code key number no num phone telephone fax email mail url zip zipcode postal
        postcode long
    password hash token uuid guid ssn isbn latitude longitude index rank position order sequence
    line version flag abbreviation initial initials symbol image picture photo file path page link
    description comment comments note notes remark remarks text details detail summary content body
    updated created modified timestamp active enabled deleted available is has was can
    installed opened closed hired final round select check see""",
    )
)
"""Last (or first) words of columns that are no property a person asks for."""

_TOTAL = frozenset(
    re.findall(
        r"\w+",
        """amount cost price salary quantity total revenue income budget sales profit payment
        fee fees
    population attendance capacity enrollment area stock points balance spending expense expenses
    money tax rent goals copies votes visits views downloads bytes milliseconds minutes hours days
    distance duration weight turnover units count passengers seats beds employees students visitors
    allowance bonus commission discount yield output production turnout earnings loan deposit
    assets value volume credits donation kilometers miles damage cases injured killed mileage""",
    )
)
"""Last words of amounts whose sum means something."""

_MONEY = frozenset(
    re.findall(r"\w+", "sales earnings expenses fees assets savings credits profits losses")
)
PLACES = frozenset(
    re.findall(
        r"\w+",
        """city town country state county province region district location nationality hometown
    origin continent area village neighborhood destination headquarters department""",
    )
)
_ROOM = frozenset(re.findall(r"\w+", "classroom room building floor apartment house gate track"))
_DATE = frozenset(re.findall(r"\w+", "date day birthday time start end begin deadline"))
NO_ROW = frozenset(
    re.findall(
        r"\w+",
        """has in of by for with and to is at on from takes plays lives teaches ref list data info
    history record log status map detail entry item line""",
    )
)
"""Words in names of tables whose rows are relations rather than things."""


def role_of(  # noqa: PLR0911
    column: Column, phrase: str, counts: Mapping[Value, int], rows: int,
    entry: ColumnEntry | None, *, linked: bool,
) -> Role:  # fmt: skip
    """The role of a column by its values, with their numbers of rows; ``linked``: a foreign key."""
    words = phrase.split()
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    texts = [value for value in counts if isinstance(value, str)]
    if phrase in {"first name", "last name"} and texts:
        return "first" if words[0] == "first" else "last"
    if head in {"name", "title"} and len(texts) > 1:
        return "name"
    if column.primary_key or linked:
        return "other"
    if entry is None and (head in UNSAID or words[0] in UNSAID or head.endswith("ed")):
        return "other"
    numbers = [value for value in counts if isinstance(value, int | float)]
    if counts and len(numbers) == len(counts):
        return _numeric_role(words, head, numbers)
    if not texts or len(texts) < len(counts) or not all(map(_is_tidy, texts)):
        return "other"
    if all(_is_day(text) for text in texts):
        return "date"
    if head in _DATE or any(_is_day(text[:10]) for text in texts):
        return "other"  # in a spelling that does not sort
    if head in PLACES and len(counts) < rows:
        return "place"
    short = all(1 < len(text) <= _MOST_TEXT and not text.isdigit() for text in texts)
    few = len(counts) <= min(MOST_CATEGORIES, max(2, rows * 6 // 10))
    return "category" if short and few and len(counts) > 1 else "other"


def _numeric_role(words: list[str], head: str, numbers: list[int | float]) -> Role:
    if head in {"year", "founded", "since"}:
        good = all(
            isinstance(value, int) and _FIRST_YEAR <= value < _LAST_YEAR for value in numbers
        )
        return "year" if good and head == "year" else "other"
    if head in _DATE | PLACES | _ROOM - {"area"} or len(set(numbers)) < FEWEST_ROWS:
        return "other"
    rate = {"average", "maximum", "minimum", "percentage", "percent", "rate", "unit"} & set(words)
    return "total" if head in _TOTAL and not rate else "amount"


def quantity(phrase: str) -> str:
    """``adults`` as a number is "number of adults"."""
    head = phrase.rsplit(maxsplit=1)[-1]
    if " of " in phrase or english.singular(head) == head:
        return phrase
    return f"{'amount' if head in _MONEY else 'number'} of {phrase}"


def _is_day(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None


def _is_tidy(text: str) -> bool:
    return bool(text.strip() == text and text.isprintable() and text and '"' not in text)
