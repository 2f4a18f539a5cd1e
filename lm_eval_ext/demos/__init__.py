"""Choosing demonstrations for each sample; knows no benchmark and no lm-eval.

A benchmark turns what may be shown into a :class:`Pool` of items with an id, a key by which
copies are told, and features (concepts, facts, constructions). A selection gives every sample
its demonstrations, each with the reason why it was picked, and names the samples that it has
too few for. The same seed, sample and pool give the same demonstrations, whatever else is
asked: no order, no limit and no number of workers matters.
"""

from lm_eval_ext.demos.at_random import at_random
from lm_eval_ext.demos.choices import Choice, Choices, Picked
from lm_eval_ext.demos.covering import Group, covering
from lm_eval_ext.demos.draws import shuffled
from lm_eval_ext.demos.overlapping import overlapping
from lm_eval_ext.demos.pool import Item, Pool
from lm_eval_ext.demos.ranked import ranked
from lm_eval_ext.demos.sharing import sharing

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
