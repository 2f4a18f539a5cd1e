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
    def train_names(self) -> Mapping[str, Components]:
        """The training dishes whose names parse, sorted, with their components."""
        parsed = (
            (name, self.glossary.parse(name)) for name in sorted({r.name for r in self.train})
        )
        return {name: components for name, components in parsed if components}


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
    """Reads a file in the published format.

    Raises:
        DataError: It cannot be read or has another format; part and number of the recipe are named.
    """
    try:
        parts = _File.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise DataError(
            f"{path}: not DiNeR data ({first_problem(error)}); fetch or build it again, the format "
            'is {"train" | "valid" | "test": {"instructions": [text, ...], "names": [text, ...]}}, '
            "with texts that are not empty"
        ) from None
    train, valid, test = (
        tuple(
            Recipe(f"{part}-{number}", instruction, simplified(name))
            for number, (instruction, name) in enumerate(
                zip(one.instructions, one.names, strict=True)
            )
        )
        for part, one in parts
    )
    if not train or not test:
        raise DataError(f"{path}: train or test has no recipes; fetch or build it again")
    return Split((*train, *valid), test, glossary)


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

    def of(self, name: Collection[Hashable]) -> str | None:
        """The category of a test name, given by its components; None if it has none."""
        wanted = frozenset(name)
        # What each training name has of it; a share within another share adds nothing.
        shares = {wanted & known for known in self._names}
        shares = {share for share in shares if not any(share < other for other in shares)}
        if not wanted or wanted in shares:
            return None
        if len(wanted) == _PAIR and all(frozenset([part]) in self._names for part in wanted):
            return COMB_TWO
        known = frozenset().union(*shares)
        if (
            len(wanted) > _PAIR
            and known == wanted
            and any(wanted - {part} in self._names for part in wanted)
        ):
            return ADD_ONE
        for size, category in ((2, RECO_TWO), (3, RECO_THREE)):
            if any(frozenset().union(*some) == wanted for some in combinations(shares, size)):
                return category
        return None
