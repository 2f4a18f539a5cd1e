"""Hides the syntax of DuckDB and PostgreSQL from the rules that read SQLite's."""

import re
from typing import Final

_FIRST_MASK: Final = 0xE000
_MAX_MASKS: Final = 6_000
"""The first of the characters that Unicode leaves to programs, and how many of them are used."""

_MASKS = re.compile(f"[{chr(_FIRST_MASK)}-{chr(_FIRST_MASK + _MAX_MASKS)}]")
_FOREIGN = re.compile(
    r"""
      ::                                          # casts
    | \{'[^{}\n]*\}                               # structs
    | (?<![\w'])E'(?:[^'\\]|\\.|'')*'             # strings with escapes
    # An operator with the spaces around it. Spaces are tried from the first one only: from each of
    # them, a run of spaces would take quadratic time.
    | (?:(?<!\s)\s+)?(?:@>|<@|!~|(?<=[\w'"\])]\ )~~\*?(?=\ '))\s*
    | \b(?:FETCH\s+(?:FIRST|NEXT)(?:\s+\d+)?\s+ROWS?\s+(?:ONLY|WITH\s+TIES)|SIMILAR\s+TO
      |AT\s+TIME\s+ZONE|WITH(?:OUT)?\s+TIME\s+ZONE|DOUBLE\s+PRECISION|QUALIFY\s(?=\s*\w))
    """,
    re.IGNORECASE | re.VERBOSE,
)


class DialectMasks:
    """Replaces what SQLite lacks by single characters that it reads as letters, and back."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    @staticmethod
    def can_mask(text: str) -> bool:
        """Return whether a text has none of the characters that masks are."""
        return not _MASKS.search(text)

    def mask(self, text: str) -> str:
        """Return a text with masks."""
        return _FOREIGN.sub(self._mask, text, count=_MAX_MASKS)

    def unmask(self, text: str) -> str:
        """Return a text, or a part of it, without masks."""
        return _MASKS.sub(lambda mask: self._pieces[ord(mask[0]) - _FIRST_MASK], text)

    def _mask(self, piece: re.Match[str]) -> str:
        self._pieces.append(piece[0])
        return chr(_FIRST_MASK + len(self._pieces) - 1)
