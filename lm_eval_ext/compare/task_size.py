"""How many clusters a task has: by its card, or by the run of a pilot."""

from dataclasses import dataclass

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.comparison import Table
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import CLUSTER

DOCUMENT_UNIT = "document"
"""The word for a cluster where each document is one."""


@dataclass(frozen=True)
class TaskSize:
    """The clusters and documents of a task.

    Attributes:
        unit: The word for a cluster.
        clusters: The number of clusters; None if it is not known.
        documents: The number of documents; None if it is not known. Of a metric about a part of
            them, those of the part.
        total: The number of all documents of the task; None if it is not known.
        unevenness: By how much clusters of several sizes raise the part of the variance that lies
            between clusters: their number by that of clusters of one size that say as much.
    """

    unit: str
    clusters: int | None = None
    documents: int | None = None
    total: int | None = None
    unevenness: float = 1.0

    @property
    def is_part(self) -> bool:
        """Whether a metric counts a part of the task's documents."""
        return self.documents != self.total

    @property
    def share(self) -> float:
        """The share of the task's documents that a metric counts."""
        if self.documents is None or self.total is None:
            return 1.0
        return self.documents / self.total

    @property
    def per_cluster(self) -> float | None:
        """The mean number of documents in a cluster; None if it is not known."""
        if self.clusters is None or self.documents is None:
            return None
        return self.documents / self.clusters


def size_by_card(task: str, metric: str = "") -> TaskSize:
    """Return the size of a task by the card of its benchmark.

    A task of a single cluster whose intervals are about its documents has these as clusters.

    Args:
        task: The task.
        metric: A metric, which may be about a part of the documents; "" for all documents.
    """
    card = card_of(task)
    if card is None:
        return TaskSize("cluster")
    facts = card.tasks[task]
    total = facts.documents or None
    if facts.clusters == 1 and card.cluster.documents_within:
        return TaskSize(DOCUMENT_UNIT, total, total, total)
    unevenness = facts.clusters / facts.effective_clusters if facts.effective_clusters else 1.0
    part = facts.parts.get(metric)
    if part is not None:
        return TaskSize(card.cluster.unit, part.clusters, part.documents, total, unevenness)
    return TaskSize(card.cluster.unit, facts.clusters or None, total, total, unevenness)


def clusters_of_task(run: Run, table: Table) -> int | None:
    """Return how many clusters of a task a metric is about; None if nothing shows that.

    A trial of our tasks takes its documents from as many clusters as possible, so the share of the
    documents says nothing about that of the clusters. But the card says how many there are.

    Args:
        run: A pilot's results.
        table: The comparison of the pilot's models by the metric.
    """
    if run.is_whole:
        return table.clusters
    scored, total = run.documents
    if run.card is None or (table.cluster == DOCUMENT_UNIT and table.clusters == scored):
        # Each document is a cluster.
        return total
    facts = run.card.tasks.get(run.task)
    if facts is None or facts.documents != total or not facts.clusters:
        return None
    if table.cluster != run.card.cluster.unit:
        return None
    clusters_in_trial = rows(run)[CLUSTER].nunique()
    if clusters_in_trial == facts.clusters:
        return table.clusters
    # A metric about a part of the documents may leave out clusters that the trial has.
    return facts.clusters if table.clusters == clusters_in_trial else None
