"""Tables of text, with commas (CSV) or tabs (TSV) between cells, read so that no row is lost.

The rules are those of RFC 4180, as Python's csv and spreadsheets write it: a cell that begins with
a quotation mark ends at the next single one, and a doubled one within it stands for one. Such a
cell may hold the delimiter and line breaks. In any cell that begins otherwise, a quotation mark is
an ordinary character.

Python's csv reader forgives a quotation mark that is never closed and text behind a closing one.
Both swallow rows: the rows up to the next quotation mark, or to the end of the file, become a part
of one cell. Here both are errors, and so is a quoted cell that runs over a line which reads as a
row. With ``quotes=False`` all quotation marks are ordinary characters, and a cell ends at the next
delimiter or line break.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

QUOTE = '"'

REMEDY = (
    'a cell that begins with " must end with ", and a " within it is written ""; with --no-quotes '
    "all quotation marks are ordinary characters"
)
"""The end of an error about quotation marks: how to write a cell."""

_LINE_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class TableRow:
    """One row of a table.

    Attributes:
        line: The number of the line on which it begins, from 1.
        cells: Its cells, without the quotation marks around them.
    """

    line: int
    cells: list[str]


class TableError(Exception):
    """A quotation mark that makes the table ambiguous; ``line`` is where it stands."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


class TableReader:
    """Reads the rows of a table from a text.

    Args:
        text: The whole table.
        delimiter: The character between cells.
        quotes: Whether cells may be quoted.

    Attributes:
        reads_as_row: Says of the text of a single line whether it would be a row of its own. It
            is asked about the lines that a quoted cell runs over; it may be set once the header
            is known.
    """

    def __init__(self, text: str, delimiter: str, *, quotes: bool = True) -> None:
        self.reads_as_row: Callable[[str], bool] = _never_a_row
        self._text = text
        self._delimiter = delimiter
        self._quotes = quotes
        self._plain_cell = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
        self._position = 0
        self._line = 1

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows in order; an empty line is no row.

        Raises:
            TableError: A quotation mark is not closed, or text stands behind a closing one.
        """
        while self._position < len(self._text):
            line_break = _LINE_BREAK.match(self._text, self._position)
            if line_break:
                self._position = line_break.end()
                self._line += 1
                continue
            yield self._next_row()

    def _next_row(self) -> TableRow:
        first_line = self._line
        start = self._position
        cells = [self._next_cell()]
        while self._text.startswith(self._delimiter, self._position):
            self._position += 1
            cells.append(self._next_cell())
        if self._line > first_line:
            self._refuse_swallowed_rows(start, first_line)
        line_break = _LINE_BREAK.match(self._text, self._position)
        if line_break:
            self._position = line_break.end()
            self._line += 1
        return TableRow(first_line, cells)

    def _next_cell(self) -> str:
        if self._quotes and self._text.startswith(QUOTE, self._position):
            return self._quoted_cell()
        match = self._plain_cell.match(self._text, self._position)
        if match is None:
            raise AssertionError("a pattern that may be empty always matches")
        self._position = match.end()
        return match[0]

    def _quoted_cell(self) -> str:
        start = self._position + 1
        end = self._closing_quote(start)
        if end < 0:
            raise TableError(
                self._line, f"a quotation mark opens a cell that is never closed; {REMEDY}"
            )
        content = self._text[start:end]
        first_line = self._line
        lines = _LINE_BREAK.split(content)
        self._refuse_rows_among(lines[1:], first_line)
        self._line += len(lines) - 1
        self._position = end + 1
        character_behind = self._text[self._position : self._position + 1]
        if character_behind not in ("", "\r", "\n", self._delimiter):
            raise TableError(
                first_line,
                "a quotation mark opens a cell, and text follows the mark that closes it in line "
                f"{self._line}; {REMEDY}",
            )
        return content.replace(QUOTE * 2, QUOTE)

    def _closing_quote(self, start: int) -> int:
        """Return the position of the mark that closes a cell, or -1."""
        position = self._text.find(QUOTE, start)
        while position >= 0 and self._text.startswith(QUOTE, position + 1):
            position = self._text.find(QUOTE, position + 2)
        return position

    def _refuse_rows_among(self, lines: list[str], first_line: int) -> None:
        """Raise an error if one of the lines within a quoted cell reads as a row."""
        for number, line in enumerate(lines, first_line + 1):
            if self.reads_as_row(line):
                _refuse(first_line, number)

    def _refuse_swallowed_rows(self, start: int, first_line: int) -> None:
        """Raise an error if a row over several lines can also be read as one row per line.

        The last line may hold the closing mark in one of its first cells, so that what the quoted
        cell has of it is no row, but the line is.
        """
        line_end = _LINE_BREAK.search(self._text, self._position)
        end = line_end.start() if line_end else len(self._text)
        lines = _LINE_BREAK.split(self._text[start:end])
        if self.reads_as_row(lines[0]) and self.reads_as_row(lines[-1]):
            _refuse(first_line, self._line)


def _refuse(first_line: int, swallowed_line: int) -> NoReturn:
    raise TableError(
        first_line,
        f"a quotation mark opens a cell that runs over line {swallowed_line}, which reads as a row "
        f"of its own; {REMEDY}",
    )


def _never_a_row(_: str) -> bool:
    return False


def quoted_cell(cell: str, delimiter: str) -> str:
    """Return a cell as a table has it, in quotation marks if it could be misread without them."""
    if any(character in cell for character in (QUOTE, delimiter, "\r", "\n")):
        return QUOTE + cell.replace(QUOTE, QUOTE * 2) + QUOTE
    return cell
