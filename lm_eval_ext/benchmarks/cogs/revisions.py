"""Gen as it was before September 2022, from Gen as it is now.

On 2022-09-13 the authors corrected 51 logical forms of obj_pp_to_subj_pp: the subject of a verb
such as "rolled" is its theme, not its agent. The paper used the file from before (fact sheet).
No commit upstream is known for certain to have that file, but the correction can be taken back:
the sentences and everything else are the same. A digest over the result vouches for it.
"""

import hashlib
from collections.abc import Sequence

from lm_eval_ext.errors import DataError

REVISIONS = ("2020", "2022")
"""Before and after the correction; the paper's is the first."""

SHA256_2020 = "410369d993e7cf3af9bb75835a77b1a332b56e60985a8bf1e7d75c30e91d4828"
"""Of the whole file from before."""

CORRECTED = (
    592, 868, 1125, 1309, 1820, 2416, 2425, 2499, 3494, 3542, 4021, 4388, 5287, 6343, 6394, 8322,
    9822, 9879, 10035, 10304, 10318, 10504, 11081, 11197, 11419, 11808, 12100, 12117, 12231,
    12528, 13180, 13707, 13831, 14171, 14377, 14419, 14632, 15014, 15472, 15586, 16810, 17043,
    17725, 18446, 18916, 19066, 19347, 19921, 19929, 20018, 20576,
)  # fmt: skip
"""The lines, from 1, that were corrected. In each it is the last role of the logical form."""


def before_correction(lines: Sequence[str]) -> list[str]:
    """Takes the correction back.

    Args:
        lines: Of today's file.

    Raises:
        DataError: If the result is not the file that the paper used, byte for byte.
    """
    old = list(lines)
    for index in (number - 1 for number in CORRECTED if number <= len(old)):
        before, _, after = old[index].rpartition(" theme ")
        old[index] = f"{before} agent {after}"
    content = "".join(f"{line}\n" for line in old)
    if hashlib.sha256(content.encode()).hexdigest() != SHA256_2020:
        raise DataError(
            "the gen file of 2020 cannot be had from this gen file, which is not that of COGS; "
            "fetch it again (lm-eval-ext data fetch cogs)"
        )
    return old
