"""SQL text cut into tokens as SQLite cuts it: enough to see the outermost clauses of a gold.

Predictions are never looked at this way; they are only run.
"""

import re
from typing import Literal, NamedTuple

Kind = Literal["word", "quoted", "string", "number", "sign"]


class Token(NamedTuple):
    """A token that means something; ``text`` is the source's text, quotes and all."""

    kind: Kind
    text: str
    start: int
    end: int
    depth: int
    """Parentheses open around it; a parenthesis itself stands at the depth outside it."""

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the words (given in upper case), outside of quotes."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def name(self) -> str | None:
        """The identifier that it spells, without quotes; None if it is none."""
        if self.kind == "word":
            return self.text
        if self.kind == "quoted":
            mark = self.text[0]
            return self.text[1:-1] if mark == "[" else self.text[1:-1].replace(mark * 2, mark)
        return None


_TOKEN = re.compile(
    r"""
      (?P<skip> \s+ | \ufeff | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string> [xX]?'(?:[^']|'')*' )
    | (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]{0,1000}\] )
    | (?P<number> 0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(sql: str) -> list[Token]:
    """Returns the tokens without spaces and comments; any text can be cut, SQL or not."""
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup, match.group()
        if kind == "skip":
            continue
        if text == ")":
            depth -= 1
        found.append(Token(kind, text, match.start(), match.end(), depth))  # type: ignore[arg-type]
        if text == "(":
            depth += 1
    return found
