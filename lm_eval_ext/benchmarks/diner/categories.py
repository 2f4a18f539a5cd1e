"""How a test name combines what the training names have (paper, section 3.3 and table 2)."""

from collections.abc import Collection, Hashable, Iterable
from itertools import combinations

COMB_TWO, ADD_ONE, RECO_TWO, RECO_THREE = "CombTwo", "AddOne", "RecoTwo", "RecoThree"
CATEGORIES = (COMB_TWO, ADD_ONE, RECO_TWO, RECO_THREE)
"""Of generalization, in the order in which they are tried."""

_PAIR = 2


class Categories:
    """The generalization categories relative to one set of training names.

    A name is the set of its components here. The paper describes the categories by an example
    each; they are read as follows, and a name has the first that holds:

    - none, where all its components stand in one training name (nothing is combined anew), or
      where three training names do not give them together;
    - CombTwo: two components, each of which is a training name of its own;
    - AddOne: all but one of its components are a training name, which has two or more;
    - RecoTwo: two training names give all its components together;
    - RecoThree: three do.

    That AddOne's base has two components or more is inferred: it has them in the paper's example,
    and a single component would make AddOne of many names, where the paper counts 11 of 694.
    """

    def __init__(self, train: Iterable[Collection[Hashable]]) -> None:
        """Args: the components of every training name; repeats change nothing."""
        self._names = {frozenset(name) for name in train}
        self._with: dict[Hashable, list[frozenset[Hashable]]] = {}
        for name in self._names:
            for component in name:
                self._with.setdefault(component, []).append(name)

    def of(self, name: Collection[Hashable]) -> str | None:
        """The category of a test name; None where it has none.

        Args:
            name: Its components.
        """
        wanted = frozenset(name)
        # What single training names give of it; what lies within another's share adds nothing.
        shares = {wanted & known for part in wanted for known in self._with.get(part, ())}
        shares = {share for share in shares if not any(share < other for other in shares)}
        if not wanted or wanted in shares or frozenset().union(*shares) != wanted:
            return None
        if len(wanted) == _PAIR and all(frozenset([part]) in self._names for part in wanted):
            return COMB_TWO
        if len(wanted) > _PAIR and any(wanted - {part} in self._names for part in wanted):
            return ADD_ONE
        for size, category in ((2, RECO_TWO), (3, RECO_THREE)):
            if any(frozenset().union(*some) == wanted for some in combinations(shares, size)):
                return category
        return None
