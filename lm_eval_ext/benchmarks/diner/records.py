"""What a recipe and a split are, as typed records.

How a test name combines what the training names have (paper, section 3.3 and table 2).
"""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from lm_eval_ext.benchmarks.diner.glossary import Component, Glossary
from lm_eval_ext.errors import DataError

TRAIN, VALID, TEST = "train", "valid", "test"
PARTS = (TRAIN, VALID, TEST)
"""Keys of the published file."""

FORMAT = '{"train" | "valid" | "test": {"instructions": [text, ...], "names": [text, ...]}}'

_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Recipe:
    """An instruction and the name of the dish that it makes.

    Attributes:
        id: Unique in its split: the part and the place in it.
        instruction: The steps, in Chinese.
        name: The gold name.
    """

    id: str
    instruction: str
    name: str

    @property
    def copy_key(self) -> str:
        """Equal for instructions of the same letters and digits."""
        return _NO_LETTER.sub("", self.instruction).casefold()


@dataclass(frozen=True)
class Split:
    """Recipes to learn from, recipes to ask about, and what their names are made of.

    Attributes:
        train: What may be shown: the parts ``train`` and ``valid``, since the paper takes its
            validation set out of the training set (section 5.2).
        test: What is asked.
        glossary: Of both.
    """

    train: tuple[Recipe, ...]
    test: tuple[Recipe, ...]
    glossary: Glossary

    @cached_property
    def by_id(self) -> Mapping[str, Recipe]:
        """The training recipes."""
        return {recipe.id: recipe for recipe in self.train}

    @cached_property
    def train_names(self) -> Mapping[str, tuple[Component, ...]]:
        """The dishes of the training set that parse, sorted, with their components."""
        parsed = (
            (name, self.glossary.parse(name)) for name in sorted({r.name for r in self.train})
        )
        return {name: components for name, components in parsed if components}


def split_of(content: object, glossary: Glossary, place: str) -> Split:
    """Checks what a file of the published format holds.

    Args:
        content: The parsed JSON.
        glossary: Of the names.
        place: The file, for errors.

    Raises:
        DataError: It has another format; the part and the number of the recipe are named.
    """
    if not isinstance(content, Mapping) or set(content) != set(PARTS):
        raise DataError(f"{place}: no DiNeR data; legal is {FORMAT}")
    parts = {part: _recipes(content[part], part, place) for part in PARTS}
    for part in (TRAIN, TEST):
        if not parts[part]:
            raise DataError(f"{place}: the part {part!r} has no recipe; build or fetch it again")
    return Split((*parts[TRAIN], *parts[VALID]), parts[TEST], glossary)


def _recipes(content: object, part: str, place: str) -> tuple[Recipe, ...]:
    if not isinstance(content, Mapping) or set(content) != {"instructions", "names"}:
        raise DataError(f"{place}: {part}: no recipes; legal is {FORMAT}")
    columns = [content["instructions"], content["names"]]
    if not all(isinstance(column, list) for column in columns):
        raise DataError(f"{place}: {part}: instructions or names are no list; legal is {FORMAT}")
    instructions, names = columns
    if len(instructions) != len(names):
        raise DataError(
            f"{place}: {part}: {len(instructions)} instructions and {len(names)} names; "
            "give one name to each instruction"
        )
    _check(instructions, "instruction", f"{place}: {part}")
    _check(names, "name", f"{place}: {part}")
    return tuple(
        Recipe(f"{part}-{number}", instruction, name)
        for number, (instruction, name) in enumerate(zip(instructions, names, strict=True))
    )


def _check(column: Sequence[object], what: str, place: str) -> None:
    for number, value in enumerate(column):
        if not isinstance(value, str) or not value.strip():
            raise DataError(f"{place}: {what} {number} (from 0) is {value!r:.80}; write a text")


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
