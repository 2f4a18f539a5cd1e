"""Answers that are not there, and are to be left out rather than scored as wrong."""


class LeftOut:
    """Marks a stand-in for an answer; see :mod:`lm_eval_ext.models.recorded`."""


class LeftOutText(LeftOut, str):
    """Stands in for a generated text. It is empty, so that filters pass over it unharmed."""

    __slots__ = ()


class LeftOutLogprob(LeftOut, tuple[float, bool]):
    """Stands in for ``(log-probability, is greedy)``."""

    __slots__ = ()

    def __new__(cls) -> "LeftOutLogprob":
        """The log-probability is not a number, the continuation not greedy."""
        return super().__new__(cls, (float("nan"), False))

    def __getnewargs__(self) -> tuple[()]:
        """For pickling (``--use_cache`` keeps answers so)."""
        return ()
