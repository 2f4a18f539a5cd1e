"""Choosing demonstrations for each sample; knows no benchmark and no lm-eval.

A benchmark turns what may be shown into a :class:`Pool` of items with an id, a key by which
copies are told, and features (concepts, facts, constructions). A selection gives every sample
its demonstrations, each with the reason why it was picked, and names the samples that it has
too few for. The same seed, sample and pool give the same demonstrations, whatever else is
asked: no order, no limit and no number of workers matters.
"""

from lm_eval_ext.fewshot.choices import Choice, Choices, Item, Picked, Pool, shuffled
from lm_eval_ext.fewshot.covering import Group, covering
from lm_eval_ext.fewshot.selections import at_random, overlapping, ranked, sharing

__all__ = [
    "Choice",
    "Choices",
    "Group",
    "Item",
    "Picked",
    "Pool",
    "at_random",
    "covering",
    "overlapping",
    "ranked",
    "sharing",
    "shuffled",
]
