"""What a comparison is asked, and what it finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lm_eval_ext.stats.paired import Difference


@dataclass(frozen=True)
class Settings:
    """How to compare.

    Attributes:
        metrics: Which; see :func:`~lm_eval_ext.compare.metrics.choose_metrics`.
        alpha: Level of tests and groups; intervals have 1 - alpha.
        seed: Of resampling.
        across_settings: See :func:`~lm_eval_ext.compare.aligning.align`.
    """

    metrics: tuple[str, ...] = ()
    alpha: float = 0.05
    seed: int = 0
    across_settings: bool = False


@dataclass(frozen=True)
class Pair:
    """Two systems on one metric.

    Attributes:
        first: One, by name.
        second: The other.
        difference: First less second.
        p_holm: Adjusted for all pairs of the metric.
    """

    first: str
    second: str
    difference: Difference
    p_holm: float | None = None


@dataclass(frozen=True)
class Table:
    """One metric of one task.

    Attributes:
        task: Its name, or those of two that are compared.
        metric: As in results files.
        documents: Scored by all systems.
        clusters: That the documents come from.
        unit: What a cluster is.
        values: By system, the best first; None: undefined.
        marks: By system, letters: two that share one cannot be told apart.
        pairs: All of them, in the order in which the systems were named.
        note: Why there is no test, if there is none.
    """

    task: str
    metric: str
    documents: int
    clusters: int
    unit: str
    values: Mapping[str, float | None]
    marks: Mapping[str, str]
    pairs: Sequence[Pair]
    note: str = ""


@dataclass(frozen=True)
class Refusal:
    """A task that was not compared: why, and the signatures of the runs."""

    task: str
    reason: str
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """All that a comparison found.

    Attributes:
        tables: One per task and metric.
        refused: Tasks that could not be compared.
        signatures: By task, of the first system's run.
        settings: How it was compared.
    """

    tables: Sequence[Table]
    refused: Sequence[Refusal]
    signatures: Mapping[str, str]
    settings: Settings
