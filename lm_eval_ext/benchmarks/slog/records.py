"""SLOG's examples as typed records."""

from typing import NamedTuple


class Example(NamedTuple):
    """A sentence with its logical form; ``type`` is what it tests, ``id`` split and line."""

    id: str
    sentence: str
    form: str
    type: str
