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
        documents: The number of documents; None if it is not known.
    """

    unit: str
    clusters: int | None = None
    documents: int | None = None

    @property
    def per_cluster(self) -> float | None:
        """The mean number of documents in a cluster; None if it is not known."""
        if self.clusters is None or self.documents is None:
            return None
        return self.documents / self.clusters


def size_by_card(task: str) -> TaskSize:
    """Return the size of a task by the card of its benchmark.

    A task of a single cluster whose intervals are about its documents has these as clusters.
    """
    card = card_of(task)
    if card is None:
        return TaskSize("cluster")
    facts = card.tasks[task]
    documents = facts.documents or None
    if facts.clusters == 1 and card.cluster.documents_within:
        return TaskSize(DOCUMENT_UNIT, documents, documents)
    return TaskSize(card.cluster.unit, facts.clusters or None, documents)


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
