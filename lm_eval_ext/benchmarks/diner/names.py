"""Titles of recipes made into names of dishes.

The paper (section 3.1) removes "non-Chinese characters and content inside the parentheses".
The patterns are written in what Python's ``re`` and RE2 have in common, so that a database
which cleans a million titles can use the same ones.
"""

import re

_PAIRS = ("(（﹙:)）﹚", "[［:]］", "{｛:}｝", "<＜〈:>＞〉", "【〖〔〘〚︻:】〗〕〙〛︼")  # noqa: RUF001
"""Opening and closing brackets of one shape, ASCII and full width, which authors mix.

Corner brackets and 《》 are quotation marks in Chinese: the name itself stands between them.
"""


def _pattern() -> str:
    parts = []
    for pair in _PAIRS:
        opening, closing = (re.escape(marks) for marks in pair.split(":"))
        parts.append(f"[{opening}][^{opening}{closing}]*[{closing}]")
    return "|".join(parts)


BRACKETED = _pattern()
"""An innermost pair of brackets with what stands between them."""

NESTING = 3
"""So often :data:`BRACKETED` is removed: brackets nested deeper lose only themselves."""

NOT_CHINESE = "[^〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"  # noqa: RUF001
"""Everything but Chinese characters: letters, digits, signs, emojis, kana, space."""

_BRACKETED = re.compile(BRACKETED)
_NOT_CHINESE = re.compile(NOT_CHINESE)


def clean_name(title: str) -> str:
    """The name of the dish in a recipe's title.

    Args:
        title: Any text.

    Returns:
        The title without bracketed text and without characters that are not Chinese; may be
        empty. A bracket without its partner is removed alone.
    """
    for _ in range(NESTING):
        title = _BRACKETED.sub("", title)
    return _NOT_CHINESE.sub("", title)
