"""Choosing demonstrations for each sample, independent of benchmarks and of lm-eval.

A benchmark turns the possible demonstrations into a :class:`Pool` of items with an id, a key
that copies have in common, and features (concepts, facts, constructions). A selection gives
every sample its demonstrations, each with the reason why it was picked, and names the samples
that it has too few for. The same seed, sample and pool give the same demonstrations, whatever
the order and number of the samples and the number of workers.

Every selection takes these arguments, and raises an ``OptionError`` if k is below 1:

- ``pool``: the possible demonstrations; the samples may be among them, but neither a sample nor
  a copy of it is ever shown to itself;
- ``samples``: the items to choose for;
- ``k``: demonstrations per sample;
- ``seed``: breaks ties, or draws; different seeds choose differently among equals.
"""

from lm_eval_ext.fewshot.choices import Choice, Choices, Item, Picked, Pool, shuffled
from lm_eval_ext.fewshot.clusters import clustered
from lm_eval_ext.fewshot.selections import Rule, at_random, fitting, overlapping, ranked, sharing

__all__ = [
    "Choice",
    "Choices",
    "Item",
    "Picked",
    "Pool",
    "Rule",
    "at_random",
    "clustered",
    "fitting",
    "overlapping",
    "ranked",
    "sharing",
    "shuffled",
]
