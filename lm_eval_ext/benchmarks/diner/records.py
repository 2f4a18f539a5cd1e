"""Recipes, splits, and the generalization categories of test names (paper, section 3.3)."""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from lm_eval_ext.benchmarks.diner.glossary import Component, Glossary
from lm_eval_ext.benchmarks.diner.script import simplified
from lm_eval_ext.errors import DataError

TRAIN, VALID, TEST = "train", "valid", "test"
PARTS = (TRAIN, VALID, TEST)
"""The published file's keys."""

FORMAT = '{"train" | "valid" | "test": {"instructions": [text, ...], "names": [text, ...]}}'

_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Recipe:
    """An instruction and the name of its dish.

    Attributes:
        id: Unique in its split: the part and the recipe's number in it.
        instruction: The steps, in Chinese.
        name: The gold name, in simplified characters.
    """

    id: str
    instruction: str
    name: str

    @property
    def copy_key(self) -> str:
        """Equal for instructions that differ only in case, punctuation and white space."""
        return _NO_LETTER.sub("", self.instruction).casefold()


@dataclass(frozen=True)
class Split:
    """Recipes that may be shown, recipes that are asked about, and their glossary.

    Attributes:
        train: The parts ``train`` and ``valid``: the paper takes its validation set from the
            training set (section 5.2).
        test: The part ``test``.
        glossary: Parses the names of both.
    """

    train: tuple[Recipe, ...]
    test: tuple[Recipe, ...]
    glossary: Glossary

    @cached_property
    def by_id(self) -> Mapping[str, Recipe]:
        """The training recipes by id."""
        return {recipe.id: recipe for recipe in self.train}

    @cached_property
    def train_names(self) -> Mapping[str, tuple[Component, ...]]:
        """The training dishes whose names parse, sorted, with their components."""
        parsed = (
            (name, self.glossary.parse(name)) for name in sorted({r.name for r in self.train})
        )
        return {name: components for name, components in parsed if components}


def split_of(content: object, glossary: Glossary, place: str) -> Split:
    """Makes a split of the parsed JSON of a file in the published format.

    Raises:
        DataError: The format is wrong; ``place``, part and number of the recipe are named.
    """
    if not isinstance(content, Mapping) or set(content) != set(PARTS):
        raise DataError(f"{place}: not DiNeR data; the format is {FORMAT}")
    parts = {part: _recipes(content[part], part, place) for part in PARTS}
    for part in (TRAIN, TEST):
        if not parts[part]:
            raise DataError(f"{place}: the part {part!r} has no recipes; fetch or build it again")
    return Split((*parts[TRAIN], *parts[VALID]), parts[TEST], glossary)


def _recipes(content: object, part: str, place: str) -> tuple[Recipe, ...]:
    if not isinstance(content, Mapping) or set(content) != {"instructions", "names"}:
        raise DataError(f"{place}: {part}: not instructions and names; the format is {FORMAT}")
    columns = [content["instructions"], content["names"]]
    if not all(isinstance(column, list) for column in columns):
        raise DataError(
            f"{place}: {part}: instructions and names must be lists; the format is {FORMAT}"
        )
    instructions, names = columns
    if len(instructions) != len(names):
        raise DataError(
            f"{place}: {part}: {len(instructions)} instructions and {len(names)} names; "
            "every instruction needs one name"
        )
    _check(instructions, "instruction", f"{place}: {part}")
    _check(names, "name", f"{place}: {part}")
    return tuple(
        Recipe(f"{part}-{number}", instruction, simplified(name))
        for number, (instruction, name) in enumerate(zip(instructions, names, strict=True))
    )


def _check(column: Sequence[object], what: str, place: str) -> None:
    for number, value in enumerate(column):
        if not isinstance(value, str) or not value.strip():
            raise DataError(
                f"{place}: {what} {number} (from 0) is {value!r:.80}; it must be a text that is "
                "not empty"
            )


COMB_TWO, ADD_ONE, RECO_TWO, RECO_THREE = "CombTwo", "AddOne", "RecoTwo", "RecoThree"
CATEGORIES = (COMB_TWO, ADD_ONE, RECO_TWO, RECO_THREE)
"""Generalization categories (paper, table 2), in the order in which they are tried."""

_PAIR = 2


class Categories:
    """Determines how a test name combines components of training names.

    A name is a set of components here. The paper describes each category only by an example; we
    define them as follows, and a name has the first category that applies:

    - none, if one training name has all its components, so that nothing is combined, or if no
      three training names have them together;
    - CombTwo: it has two components, each of which is a training name by itself;
    - AddOne: without one of its components it is a training name of two or more;
    - RecoTwo: two training names together have all its components;
    - RecoThree: three do.

    That AddOne needs two or more other components is inferred from the paper's example and its
    counts: one would make many names AddOne, where the paper counts 11 of 694.
    """

    def __init__(self, train: Iterable[Collection[Hashable]]) -> None:
        """Takes the components of every training name; repeated names do not matter."""
        self._names = {frozenset(name) for name in train}
        self._with: dict[Hashable, list[frozenset[Hashable]]] = {}
        for name in self._names:
            for component in name:
                self._with.setdefault(component, []).append(name)

    def of(self, name: Collection[Hashable]) -> str | None:
        """The category of a test name, given by its components; None if it has none."""
        wanted = frozenset(name)
        # What each training name has of it; a share within another share adds nothing.
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
