"""The question about the size of a comparison, and the spread that an answer rests on."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from lm_eval_ext.cards import card_of
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.planning import TypicalSpread
from lm_eval_ext.task_settings import task_settings


class PowerQuery(BaseModel):
    """A question about the size of a comparison.

    Attributes:
        task: The task's name.
        difference: The difference between two models, in the metric's unit; None to ask only what
            items show.
        items: A number of clusters; None for as many as the task has.
        metric: The metric's name; "" for the one that stands for the task.
        power: The probability with which the difference is to be found.
        models: How many are compared, each with each: the level is divided by the number of
            pairs, as Holm's method does for the smallest p-value.
        rate: The mean of two models' shares of right answers, where there is no pilot.
        icc: Intra-cluster correlation; with ``rate``. None for a typical range.
        per_cluster: Documents per cluster; with ``rate``. None for as many as the task has.
        across_settings: Whether the pilot may have models with different prompts.
        pilot: The pilot's task; "" for the same task, or for the only one that can stand for it.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    task: str
    difference: float | None = Field(None, gt=0)
    items: int | None = Field(None, ge=LEAST_CLUSTERS)
    metric: str = ""
    power: float = Field(0.8, ge=0.5, lt=1)
    models: int = Field(2, ge=2)
    rate: float | None = None
    icc: float | None = Field(None, ge=0, le=1)
    per_cluster: float | None = Field(None, ge=1)
    across_settings: bool = False
    pilot: str = ""


@dataclass(frozen=True)
class PilotTrial:
    """A pilot of a part of the documents, of which the whole task has more in each cluster.

    Attributes:
        documents: The number of documents, as ``--limit`` counts them, that the task's clusters
            have together if each has as many as in the pilot.
        total: The number of documents that the task has.
    """

    documents: float
    total: int


@dataclass(frozen=True)
class Spread:
    """How differences vary between clusters.

    Attributes:
        metric: The metric's name; "" where a rate was stated for a task that is not ours.
        unit: The word for a cluster.
        variance: The variance of a cluster's mean difference.
        per_cluster: Documents per cluster.
        source: Where this comes from.
        available: The clusters that the task has; None if that is not known.
        least_variance: The smallest variance that is likely, where ``variance`` is the largest;
            None where there is one variance.
        icc: The intra-cluster correlation with which the pilot's rates have its variance; None
            without a pilot, or if no correlation from 0 to 1 does.
        trial: The pilot, if more documents of each cluster can make the spread smaller; else None.
        share: The share of the task's documents that the metric counts.
    """

    metric: str
    unit: str
    variance: float
    per_cluster: float
    source: str
    available: int | None
    least_variance: float | None = None
    icc: float | None = None
    trial: PilotTrial | None = None
    share: float = 1.0


def metric_without_pilot(query: PowerQuery) -> str:
    """Return the metric that a question without results is about; "" if the task is not ours."""
    card = card_of(query.task)
    if query.metric or card is None:
        return query.metric
    return card.headline_of(task_settings(query.task).metrics)


def typical_spread(query: PowerQuery, metric: str) -> TypicalSpread | None:
    """Return what the card says about the differences of real models; None if it does not."""
    card = card_of(query.task)
    return card.typical_spreads.get(metric) if card else None
