"""The verdicts of a command that was interrupted, kept in a file beside the one to be written."""

import glob
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from lm_eval_ext.atomic import sha256_of_json
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.executor import DatabaseFinder
from lm_eval_ext.sql.values import STATUSES, Place, Prediction, Verdict

_DIGEST_LENGTH = 12


class PartialOutput:
    """The verdicts so far, a line of JSON for each row, with its number.

    The file's name has a checksum of everything that verdicts depend on, so that another command
    neither goes on with them nor writes among them. Since each line has its row's number, two of
    the same commands may write at once.

    Args:
        out: The file that is to be written in the end.
        predictions: What is judged, by row.
        databases: The originals.
        signature: What verdicts depend on other than rows and originals.
    """

    def __init__(
        self,
        out: Path,
        predictions: Sequence[Prediction],
        databases: DatabaseFinder,
        signature: str,
    ) -> None:
        db_ids = sorted({prediction.db_id for prediction in predictions})
        states = [_state(databases.find(db_id)) for db_id in db_ids]
        digest = sha256_of_json([signature, [list(p) for p in predictions], states])
        self._out = out
        self._rows = len(predictions)
        self.path = out.with_name(f"{out.name}.{digest[:_DIGEST_LENGTH]}.part")

    def verdicts(self) -> dict[int, Verdict]:
        """Return the verdicts of an earlier command by the row's number, from 0."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return {}
        verdicts: dict[int, Verdict] = {}
        for line in lines:
            entry = _parse_line(line)
            if entry is not None and 0 <= entry[0] < self._rows:
                verdicts[entry[0]] = entry[1]
        return verdicts

    @contextmanager
    def appending(self) -> Iterator["VerdictLog"]:
        """Open the file for further verdicts.

        Raises:
            OptionError: The file cannot be written.
        """
        try:
            # Line by line to the system: a killed process loses no row that was judged.
            with self.path.open("a", encoding="utf-8", buffering=1) as file:
                file.write("\n")  # ends a line that was cut off
                yield VerdictLog(file)
        except OSError as error:
            raise OptionError(f"cannot write {self._out}: {error.strerror}") from None

    def remove(self) -> None:
        """Remove the file, and those of other commands for the same output."""
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


def _state(place: Place | None) -> list[object]:
    """Return what changes if a database's file does; of a server only where it is."""
    if place is None:
        return [None]
    if not Path(place.address).is_file():
        return [list(place)]
    status = Path(place.address).stat()
    return [list(place), status.st_size, status.st_mtime_ns]
