"""What demonstrations are chosen from, and for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lm_eval_ext.errors import DataError


@dataclass(frozen=True)
class Item:
    """A sample, a possible demonstration, or both.

    Attributes:
        id: Unique in its pool.
        copy_key: Equal for items that are copies of each other, such as the question in
            lower case without punctuation. No sample is shown a copy of itself, nor two
            demonstrations that are copies of each other.
        features: What it can have in common with others.
    """

    id: str
    copy_key: str
    features: frozenset[str] = frozenset()


class Pool:
    """Possible demonstrations, sorted by id: the order they were given in changes nothing."""

    def __init__(self, items: Iterable[Item]) -> None:
        """Args: the items.

        Raises:
            DataError: An id stands twice: what is chosen would depend on the order.
        """
        self.items = tuple(sorted(items, key=lambda item: item.id))
        for one, other in zip(self.items, self.items[1:], strict=False):
            if one.id == other.id:
                raise DataError(f"two possible demonstrations have the id {one.id!r}; rename one")

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __getitem__(self, place: int) -> Item:
        return self.items[place]
