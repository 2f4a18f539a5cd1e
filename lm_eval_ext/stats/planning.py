"""What a card says for planning a comparison: sizes of parts, and how much real models differ."""

from pydantic import Field

from lm_eval_ext.reading import Exact


class PartSize(Exact):
    """The documents of a task that a metric counts, where it does not count all.

    Attributes:
        documents: The number of documents.
        clusters: The number of clusters that they are in.
    """

    documents: int = Field(ge=1)
    clusters: int = Field(ge=1)


class TypicalSpread(Exact):
    """How much real models differ from cluster to cluster, for planning without a pilot.

    Attributes:
        smallest: The smallest standard deviation of a cluster's mean difference, of all pairs of
            models that were measured.
        largest: The largest one.
        pairs: The number of pairs.
        documents: The number of documents in each cluster.
    """

    smallest: float = Field(gt=0)
    largest: float = Field(gt=0)
    pairs: int = Field(ge=1)
    documents: float = Field(ge=1)


class TypicalCorrelation(Exact):
    """The intra-cluster correlations of real models' scores, for planning with a rate alone.

    Attributes:
        smallest: The smallest one that was measured.
        largest: The largest one.
        source: Whose they are, in words.
    """

    smallest: float = Field(ge=0, le=1)
    largest: float = Field(ge=0, le=1)
    source: str
