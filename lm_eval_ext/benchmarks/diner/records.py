"""Recipes, splits, and the generalization categories of test names (paper, section 3.3)."""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, ValidationError, model_validator

from lm_eval_ext.benchmarks.diner.glossary import Components, Glossary, simplified
from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.reading import Exact

TRAIN, VALID, TEST = "train", "valid", "test"
PARTS = (TRAIN, VALID, TEST)
"""The published file's keys."""

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
        """A text that instructions have in common which differ in case and punctuation alone."""
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
    def train_names(self) -> Mapping[str, Components]:
        """The training dishes whose names parse, sorted, with their components."""
        parsed = {}
        for name in sorted({recipe.name for recipe in self.train}):
            components = self.glossary.parse(name)
            if components:
                parsed[name] = components
        return parsed


_Texts = list[Annotated[str, StringConstraints(pattern=r"\S")]]


class _Part(Exact):
    instructions: _Texts
    names: _Texts

    @model_validator(mode="after")
    def _of_one_length(self) -> "_Part":
        if len(self.instructions) != len(self.names):
            raise ValueError("every instruction needs one name")
        return self


class _File(Exact):
    train: _Part
    valid: _Part
    test: _Part


def read_split(path: Path, glossary: Glossary) -> Split:
    """Read a file in the published format.

    Raises:
        DataError: The file cannot be read or has another format; part and number of the recipe are
            named.
    """
    try:
        content = _File.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise DataError(
            f"{path}: not DiNeR data ({first_problem(error)}); fetch or build it again, the format "
            'is {"train" | "valid" | "test": {"instructions": [text, ...], "names": [text, ...]}}, '
            "with texts that are not empty"
        ) from None
    train = _recipes(TRAIN, content.train)
    valid = _recipes(VALID, content.valid)
    test = _recipes(TEST, content.test)
    if not train or not test:
        raise DataError(f"{path}: train or test has no recipes; fetch or build it again")
    return Split((*train, *valid), tuple(test), glossary)


def _recipes(part: str, texts: _Part) -> list[Recipe]:
    recipes = []
    for number, name in enumerate(texts.names):
        instruction = texts.instructions[number]
        recipes.append(Recipe(f"{part}-{number}", instruction, simplified(name)))
    return recipes


COMB_TWO, ADD_ONE, RECO_TWO, RECO_THREE = "CombTwo", "AddOne", "RecoTwo", "RecoThree"
CATEGORIES = (COMB_TWO, ADD_ONE, RECO_TWO, RECO_THREE)
"""Generalization categories (paper, table 2), in the order in which they are tried."""

_PAIR = 2


class Categories:
    """The ways in which test names combine components of training names.

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
        """Take the components of every training name; repeated names do not matter."""
        self._names = {frozenset(name) for name in train}

    def of(self, name: Collection[Hashable]) -> str | None:
        """Return the category of a test name, given its components; None if it has none."""
        components = frozenset(name)
        shares = self._shares(components)
        if not components or components in shares:
            return None
        if len(components) == _PAIR and self._are_names(components):
            return COMB_TWO
        is_covered = frozenset().union(*shares) == components
        if len(components) > _PAIR and is_covered and self._extends_a_name(components):
            return ADD_ONE
        for size, category in ((2, RECO_TWO), (3, RECO_THREE)):
            for some_shares in combinations(shares, size):
                if frozenset().union(*some_shares) == components:
                    return category
        return None

    def _shares(self, components: frozenset[Hashable]) -> set[frozenset[Hashable]]:
        """Return what training names have of the components.

        A share within a larger share adds nothing and is left out.
        """
        shares = {components & name for name in self._names}
        maximal = set()
        for share in shares:
            if not any(share < larger for larger in shares):
                maximal.add(share)
        return maximal

    def _are_names(self, components: frozenset[Hashable]) -> bool:
        """Return whether each component is a training name by itself."""
        return all(frozenset([component]) in self._names for component in components)

    def _extends_a_name(self, components: frozenset[Hashable]) -> bool:
        """Return whether the components without one of them are a training name."""
        return any(components - {component} in self._names for component in components)
