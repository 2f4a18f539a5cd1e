"""What copying scores: stand-ins for a model that answer with what the demonstrations show.

They need no model. A gain that is no larger than theirs may be copying.
"""

from collections import Counter
from collections.abc import Sequence

from lm_eval_ext.benchmarks.conceptual.answers import ACCURACY, ROUGE_L, score

LAST, MAJORITY = "copy_last", "copy_majority"
SHARE, SHOWN = "answer_share", "answer_shown"

_COPIED = (ROUGE_L, ACCURACY)
SCORES = (
    *(f"{name}_{stand_in}" for name in _COPIED for stand_in in (LAST, MAJORITY)),
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
    compared = {stand_in: score(answer, gold) for stand_in, answer in stand_ins(shown).items()}
    copied = {f"{name}_{one}": compared[one][name] for name in _COPIED for one in compared}
    return {**copied, SHARE: shown.count(gold) / len(shown), SHOWN: float(gold in shown)}
