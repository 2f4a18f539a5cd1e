"""What a selection gives back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lm_eval_ext.demos.pool import Item
from lm_eval_ext.errors import OptionError


@dataclass(frozen=True)
class Picked:
    """One demonstration: its id, and in words why it was picked."""

    id: str
    why: str


@dataclass(frozen=True)
class Choice:
    """The demonstrations of one sample.

    Attributes:
        sample: Its id.
        picked: In the order of picking; a prompt that shows them in this order shows the
            best first where a selection ranks.
        uncovered: Features of the sample that none of them has; only :func:`covering` says.
    """

    sample: str
    picked: tuple[Picked, ...]
    uncovered: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the demonstrations."""
        return tuple(one.id for one in self.picked)


@dataclass(frozen=True)
class Choices:
    """A selection for many samples.

    Attributes:
        by_sample: The choices, by id of the sample: k demonstrations each.
        not_enough: Samples without k demonstrations: how many there would have been.
    """

    by_sample: Mapping[str, Choice]
    not_enough: Mapping[str, int]


def collected(choices: Iterable[Choice], k: int) -> Choices:
    """Parts the choices that are complete from those that are not."""
    full: dict[str, Choice] = {}
    short: dict[str, int] = {}
    for choice in choices:
        if len(choice.picked) == k:
            full[choice.sample] = choice
        else:
            short[choice.sample] = len(choice.picked)
    return Choices(full, short)


def check_k(k: int) -> None:
    """Refuses a number of demonstrations that is none.

    Raises:
        OptionError: k is below 1.
    """
    if k < 1:
        raise OptionError(f"{k} demonstrations per sample; use 1 or more")


class Picking:
    """The demonstrations of one sample as they are picked: k at most, and no copies."""

    def __init__(self, sample: Item, k: int) -> None:
        self.sample = sample
        self.picked: list[Picked] = []
        self._k = k
        self._ids = {sample.id}
        self._keys = {sample.copy_key}

    @property
    def full(self) -> bool:
        """Whether k are there."""
        return len(self.picked) == self._k

    def take(self, item: Item, why: str) -> bool:
        """Picks an item, unless it is a copy of the sample or of one picked before."""
        if self.full or item.id in self._ids or item.copy_key in self._keys:
            return False
        self._ids.add(item.id)
        self._keys.add(item.copy_key)
        self.picked.append(Picked(item.id, why))
        return True

    def choice(self, uncovered: Iterable[str] = ()) -> Choice:
        """What has been picked."""
        return Choice(self.sample.id, tuple(self.picked), tuple(sorted(uncovered)))
