"""Seven benchmarks of learning new words, concepts and combinations, for lm-evaluation-harness.

Importing the package costs nothing: no torch, no transformers, no pandas. Its tasks appear in plain
``lm_eval`` (see docs/discovery.md); what it offers to Python itself, in ``__all__``, is imported
where it is used (see docs/python.md).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lm_eval_ext.api import (
        Results,
        load_documents,
        load_results,
        plot,
        score,
        score_sql,
    )

__version__ = "0.1.0"

__all__ = ["Results", "load_documents", "load_results", "plot", "score", "score_sql"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("lm_eval_ext.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
