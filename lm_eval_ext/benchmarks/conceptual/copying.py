"""What copying scores: stand-ins for a model that answer with what the demonstrations show.

They need no model. A gain that is no larger than theirs may be copying.
"""

from collections import Counter
from collections.abc import Sequence

from lm_eval_ext.benchmarks.conceptual.answers import ACCURACY, ROUGE_L, score

LAST, MAJORITY = "copy_last", "copy_majority"
SHARE, SHOWN = "answer_share", "answer_shown"

SCORES = (
    *(f"{name}_{stand_in}" for name in (ROUGE_L, ACCURACY) for stand_in in (LAST, MAJORITY)),
    SHARE,
    SHOWN,
)


def stand_ins(shown: Sequence[str]) -> dict[str, str]:
    """The stand-ins' answers: the last demonstration's, and the one that most of them have.

    Of several answers that are equally frequent, the majority is the one that comes last.
    """
    counts = Counter(shown)
    majority = max(reversed(shown), key=counts.__getitem__)
    return {LAST: shown[-1], MAJORITY: majority}


def scores(gold: str, shown: Sequence[str]) -> dict[str, float]:
    """The stand-ins' scores, and how far copying can go.

    Args:
        gold: The right answer.
        shown: The demonstrations' answers, in the order of the prompt; one or more.

    Returns:
        ``rouge_l_copy_last`` and the like; ``answer_share``, the share of demonstrations that
        have the right answer; ``answer_shown``, whether any has it.
    """
    found: dict[str, float] = {}
    for stand_in, answer in stand_ins(shown).items():
        compared = score(answer, gold)
        found |= {f"{name}_{stand_in}": compared[name] for name in (ROUGE_L, ACCURACY)}
    found[SHARE] = shown.count(gold) / len(shown)
    found[SHOWN] = float(gold in shown)
    return found
