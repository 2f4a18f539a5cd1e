"""Chinese script: names are compared in simplified characters, whichever they are written in."""

import functools
import re
from typing import Any

_CHINESE = "〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # noqa: RUF001
CHINESE = f"[{_CHINESE}]"
NOT_CHINESE = f"[^{_CHINESE}]+"
"""Letters, digits, punctuation, emojis, kana and spaces among them."""

_RUN = re.compile(f"{CHINESE}+")


def simplified(text: str) -> str:
    """The text with simplified characters for traditional ones, by OpenCC's table t2s.

    Words that are written with such a character in simplified script, too, stay (蒜薹).
    """
    # Runs of Chinese only: OpenCC refuses half surrogates, which JSON may contain.
    return _RUN.sub(lambda run: str(_converter().convert(run[0])), text)


def traditional() -> str:
    """All traditional characters of Unicode's first block of Chinese characters."""
    block = "\n".join(map(chr, range(0x4E00, 0xA000)))
    return "".join(a for a, b in zip(block, simplified(block), strict=True) if a != b)


@functools.cache
def _converter() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")
