"""The verdicts of a command that is not finished, kept in files beside the one to be written."""

import glob
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from lm_eval_ext.atomic import sha256_of_json
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.executor import DatabaseFinder
from lm_eval_ext.sql.parts import FileContent, Part
from lm_eval_ext.sql.values import STATUSES, Place, Verdict

_DIGEST_LENGTH = 12


class PartialOutput:
    """The verdicts so far, a line of JSON for each row, with its number.

    The names of the files have a checksum of everything that verdicts depend on, so that a command
    that would judge otherwise neither reads them nor writes to them. Since each line has its row's
    number, several files are read as one: that of the whole command, and those of its parts.

    Args:
        out: The file that is to be written in the end.
        content: What the rows ask.
        databases: The originals.
        signature: What verdicts depend on other than rows and originals.
    """

    def __init__(
        self, out: Path, content: FileContent, databases: DatabaseFinder, signature: str
    ) -> None:
        db_ids = sorted({question.db_id for question in content.questions})
        states = [_state(databases.find(db_id)) for db_id in db_ids]
        digest = sha256_of_json([signature, content.digest, states])
        self.digest = digest[:_DIGEST_LENGTH]
        self._out = out
        self._rows = content.rows

    def path(self, part: Part | None = None) -> Path:
        """Return the file of the verdicts on a part, or of a command that judges all rows."""
        ending = "part"
        if part is not None:
            ending = f"{part.number}-of-{part.count}.part"
        return self._out.with_name(f"{self._out.name}.{self.digest}.{ending}")

    def verdicts(self) -> dict[int, Verdict]:
        """Return all verdicts of earlier commands by the row's number, from 0."""
        return dict(self._all_lines())

    def judged_rows(self) -> Iterator[int]:
        """Yield the numbers, from 0, of all rows that have verdicts, some of them repeatedly."""
        for row, _ in self._all_lines():
            yield row

    def rows_of_part(self, part: Part) -> set[int]:
        """Return the numbers of the rows, from 0, that earlier commands for a part have judged."""
        return {row for row, _ in self._lines(self.path(part))}

    def _all_lines(self) -> Iterator[tuple[int, Verdict]]:
        for path in self._out.parent.glob(f"{glob.escape(self._out.name)}.{self.digest}.*part"):
            yield from self._lines(path)

    def _lines(self, path: Path) -> Iterator[tuple[int, Verdict]]:
        """Yield the rows' numbers and verdicts of a file that may be missing."""
        try:
            with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
                for line in file:
                    entry = _parse_line(line)
                    if entry is not None and 0 <= entry[0] < self._rows:
                        yield entry
        except OSError:
            return

    @contextmanager
    def appending(self, part: Part | None = None) -> Iterator["VerdictLog"]:
        """Open the file of a part, or of all rows, for further verdicts.

        Raises:
            OptionError: The file cannot be written.
        """
        try:
            # Line by line to the system: a killed process loses no row that was judged.
            with self.path(part).open("a", encoding="utf-8", buffering=1) as file:
                file.write("\n")  # ends a line that was cut off
                yield VerdictLog(file)
        except OSError as error:
            raise OptionError(f"cannot write {self._out}: {error.strerror}") from None

    def remove(self) -> None:
        """Remove the files, and those of other commands for the same output."""
        for path in self._out.parent.glob(f"{glob.escape(self._out.name)}.*.part"):
            path.unlink(missing_ok=True)


class VerdictLog:
    """Writes verdicts to an open file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def add(self, row: int, verdict: Verdict) -> None:
        """Write the verdict on the row with this number, from 0."""
        self._file.write(json.dumps({"row": row, **asdict(verdict)}) + "\n")


def _parse_line(line: str) -> tuple[int, Verdict] | None:
    """Return a row's number and verdict; None for a line that was cut off."""
    try:
        entry = json.loads(line)
        row = entry.pop("row")
        verdict = Verdict(**entry)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(row, int) or verdict.status not in STATUSES:
        return None
    return row, verdict


def _state(location: Place | None) -> list[object]:
    """Return what changes if a database's file does; for a server, only its address."""
    if location is None:
        return [None]
    path = Path(location.address)
    if not path.is_file():
        return [list(location)]
    status = path.stat()
    return [location.engine, str(path.resolve()), status.st_size, status.st_mtime_ns]
