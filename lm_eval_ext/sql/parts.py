"""Parts of a file of predictions, which several processes or machines judge apart."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.values import Prediction

MAX_PARTS = 10_000

_PART = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Part:
    """One of several parts of a file.

    All predictions for the same gold are in the same part, since its result is computed once for
    them; the golds go to the parts in turn.

    Attributes:
        number: Its number, from 1.
        count: How many parts there are.
    """

    number: int
    count: int

    def __str__(self) -> str:
        return f"part {self.number} of {self.count}"

    def has(self, question: int) -> bool:
        """Return whether the predictions for the question of this number, from 0, are in it."""
        return question % self.count == self.number - 1


def parse_part(text: str) -> Part:
    """Return the part that an option such as ``3/16`` names.

    Raises:
        OptionError: It names none.
    """
    match = _PART.fullmatch(text)
    if match is None:
        raise OptionError(f"--part {text}: write K/N for the K-th of N parts, such as 3/16")
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count <= MAX_PARTS:
        raise OptionError(f"--part {text}: K must be from 1 to N, and N at most {MAX_PARTS:,}")
    return Part(number, count)


class FileContent:
    """What the rows of a file ask, noted while they are read.

    Attributes:
        rows: The number of rows.
        questions: The distinct golds with their databases, and their numbers, from 0, in the order
            of the file; as predictions without a query.
    """

    def __init__(self, predictions: Iterable[Prediction] = ()) -> None:
        self.rows = 0
        self.questions: dict[Prediction, int] = {}
        self._digest = hashlib.sha256()
        for prediction in predictions:
            self.add(prediction)

    def add(self, prediction: Prediction) -> int:
        """Note the prediction of the next row; return the number of its question."""
        self.rows += 1
        lengths = " ".join(str(len(text)) for text in prediction)
        content = " ".join([lengths, *prediction])
        self._digest.update(content.encode("utf-8", "surrogatepass"))
        question = prediction._replace(predicted="")
        return self.questions.setdefault(question, len(self.questions))

    @property
    def digest(self) -> str:
        """A checksum of all predictions."""
        return self._digest.hexdigest()
