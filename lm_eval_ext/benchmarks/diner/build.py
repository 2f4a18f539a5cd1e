"""DiNeR's dataset and splits, built from a corpus of recipes (paper, section 3).

The corpus, XiaChuFang (Liu et al. 2022), has one JSON object per line, of which ``name`` and
``recipeInstructions`` are used. It is read twice, line by line; only the
recipes of dishes are kept in memory. As in the paper, titles are counted before recipes are
dropped, so a dish may keep fewer recipes than :data:`MIN_OCCURRENCES`.
"""

import codecs
import gzip
import hashlib
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from lm_eval_ext.atomic import atomic_folder, sha256_of
from lm_eval_ext.benchmarks.diner.glossary import (
    KINDS,
    Components,
    Glossary,
    clean_name,
    simplified,
)
from lm_eval_ext.benchmarks.diner.load import GLOSSARY, SOURCE
from lm_eval_ext.benchmarks.diner.records import PARTS, Categories
from lm_eval_ext.benchmarks.diner.tmcd import Partition, search
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.reading import Strict

VERSION = 4
"""Must be raised when the same corpus and options give another dataset or report."""

REPORT = "report.json"

MIN_OCCURRENCES = 20
"""Number of recipes with a cleaned title that makes it a dish name."""

MIN_CHARACTERS = 20
"""The shortest instruction that is kept."""

VALID_SHARE = 0.2
"""Share of the training recipes (paper, section 5.2)."""

MAX_UNPARSED = 50
"""Number of names that do not parse, in the report."""

Pair = tuple[str, str]
"""Name and instruction of a recipe."""

SplitParts = Mapping[str, Mapping[str, Sequence[str]]]
"""The names and the instructions of each part of a split, as files have them."""


class Options(Strict):
    """The options that change the dataset.

    Attributes:
        divergence: The search for the TMCD split stops here; the paper's main split has 0.98.
        compounds: The compounds of a name: its ``whole`` component set, or all its ``subsets``.
        seed: The seed of both splits.
    """

    divergence: float = Field(0.98, gt=0, le=1)
    compounds: Literal["whole", "subsets"] = "whole"
    seed: int = 0


def build(corpus: Path, out: Path, glossary: Path | None, options: Options) -> dict[str, Any]:
    """Build the dataset in a new folder, which appears only when it is complete.

    The same corpus and options give the same files on every machine and in any order of the
    recipes. Without a glossary file, the published one is used.

    Returns:
        The content of ``report.json``.

    Raises:
        DataError: The corpus or the glossary cannot be used.
        OptionError: The folder has files, or cannot be written.
    """
    if out.is_dir() and any(out.iterdir()):
        raise OptionError(f"--output {out} is not empty; name another folder")
    words = Glossary.read(glossary or require(SOURCE, "glossary").path)
    with atomic_folder(out) as folder:
        dishes = _collect(corpus, words)
        test_names, course = search(
            dishes.names, target=options.divergence, compounds=options.compounds, seed=options.seed
        )
        splits = divided(list(dishes.recipes), test_names, options.seed)
        report = {
            "version": VERSION,
            "corpus": {"file": corpus.name, "sha256": sha256_of(corpus)},
            "options": options.model_dump(),
            "glossary": {"digest": words.digest},
            "kept": dishes.counts,
            "forms": forms(dishes.names, dishes.recipes_by_name),
            "figures": _figures_of_splits(dishes.names, splits, options.compounds),
            "course": course,
            "unparsed": dishes.unparsed,
        }
        for split, texts in splits.items():
            _write_json(folder / f"{split}_data.json", texts, indent=None)
        _write_json(folder / GLOSSARY, words.as_dict(), indent=1)
        _write_json(folder / REPORT, report, indent=1)
    return report


def _write_json(path: Path, content: object, *, indent: int | None) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    path.write_text(f"{text}\n", encoding="utf-8")


@dataclass(frozen=True)
class _Dishes:
    """The dishes of a corpus that names parse for, with their recipes.

    Attributes:
        names: The components of each name, sorted by name.
        recipes: Different recipes of these names.
        counts: What was kept at each step, for the report.
        unparsed: The most frequent names that do not parse, and their numbers of recipes.
    """

    names: Mapping[str, Components]
    recipes: Sequence[Pair]
    counts: Mapping[str, int]
    unparsed: Sequence[tuple[str, int]]

    @property
    def recipes_by_name(self) -> Mapping[str, int]:
        """The number of recipes of each name."""
        return Counter(name for name, _ in self.recipes)


def _collect(corpus: Path, glossary: Glossary) -> _Dishes:
    """Read the corpus.

    Raises:
        DataError: It has no dish, or no dish that can be used.
    """
    titles = Counter(line.title for line in read(corpus, "Counting titles"))
    dish_names = _dish_names(titles)
    copies = Counter[Pair]()
    for line in read(corpus, "Collecting recipes"):
        title = line.title
        if title in dish_names:
            copies[title, line.instruction] += 1
    parsed: dict[str, Components] = {}
    unparsed = Counter[str]()
    for name in sorted(dish_names):
        components = glossary.parse(name)
        if components:
            parsed[name] = components
        else:
            unparsed[name] = dish_names[name]
    recipes = []
    for name, instruction in copies:
        if name in parsed and len(instruction) >= MIN_CHARACTERS:
            recipes.append((name, instruction))
    if not recipes:
        raise DataError(
            f"none of {len(dish_names):,} dish names parses and has a recipe with an instruction "
            f"of {MIN_CHARACTERS} characters; use another glossary, or check recipeInstructions"
        )
    kept_names = sorted({name for name, _ in recipes})
    counts = {
        "recipes": titles.total(),
        "with a title": titles.total() - titles[""],
        "titles": len(titles.keys() - {""}),
        "dish names": len(dish_names),
        "with a dish name": sum(dish_names.values()),
        "dish names that parse": len(parsed),
        "with such a name": sum(dish_names[name] for name in parsed),
        "long enough": sum(copies[recipe] for recipe in recipes),
        "different": len(recipes),
        "their dishes": len(kept_names),
    }
    names = {name: parsed[name] for name in kept_names}
    return _Dishes(names, recipes, counts, unparsed.most_common(MAX_UNPARSED))


def _dish_names(titles: Counter[str]) -> dict[str, int]:
    """Return the frequent titles, with their numbers of recipes.

    Raises:
        DataError: No title is frequent.
    """
    dish_names = {}
    for title, occurrences in titles.items():
        if title and occurrences >= MIN_OCCURRENCES:
            dish_names[title] = occurrences
    if not dish_names:
        raise DataError(
            f"there are no dish names: no title occurs {MIN_OCCURRENCES} times in "
            f"{titles.total():,} recipes; use a larger corpus"
        )
    return dish_names


def _figures_of_splits(
    names: Mapping[str, Components], splits: Mapping[str, SplitParts], compounds: str
) -> dict[str, Mapping[str, float]]:
    by_split: dict[str, Mapping[str, float]] = {"paper, TMCD": PAPER}
    for split, texts in splits.items():
        by_split[split] = figures(names, texts, compounds)
    return by_split


# The corpus.


class Line(BaseModel):
    """A recipe of the corpus."""

    name: str | None = None
    steps: list[str | None] | None = Field(None, alias="recipeInstructions")

    @property
    def title(self) -> str:
        """The name in simplified characters, without brackets and others; may be empty."""
        return simplified(clean_name(self.name or ""))

    @property
    def instruction(self) -> str:
        """The steps on one line, each ending in punctuation."""
        sentences = []
        for raw_step in self.steps or ():
            step = _SPACE.sub(" ", raw_step or "").strip()
            if not step:
                continue
            # Python may not know new emojis (Cn) yet.
            is_ended = unicodedata.category(step[-1]).startswith(("P", "S", "Cn"))
            sentences.append(step if is_ended else f"{step}。")
        return "".join(sentences)


BATCH = 1_000
"""Lines between two steps of the progress bar."""

_SPACE = re.compile(r"[\s\0-\x1f\x7f-\x9f]+")


def read(corpus: Path, title: str) -> Iterator[Line]:
    """Yield the recipes of a corpus, plain or gzipped, with a progress bar on terminals.

    Raises:
        DataError: The corpus cannot be read; the message has the number of the line.
    """
    from tqdm import tqdm

    number = 0
    try:
        with (
            corpus.open("rb") as raw,
            gzip.open(raw) if corpus.suffix == ".gz" else raw as lines,
            tqdm(
                total=corpus.stat().st_size, desc=title, unit="B", unit_scale=True, disable=None
            ) as bar,
        ):
            for number, line in enumerate(lines, 1):
                if number % BATCH == 0:
                    bar.update(raw.tell() - bar.n)
                text = line.removeprefix(codecs.BOM_UTF8).strip()
                if text:
                    yield Line.model_validate_json(text)
    except ValidationError as error:
        problem = f"line {number}: {first_problem(error)}"
    except (OSError, EOFError, zlib.error) as error:
        problem = f"cannot be read: {error}"
    else:
        return
    raise DataError(
        f"the corpus {corpus}: {problem}; each line must be a JSON object in UTF-8 with "
        '"name" (text) and "recipeInstructions" (a list of texts)'
    )


def documents(corpus: Path, dishes: Collection[str]) -> list[str]:
    """Return running text for continued pretraining: recipes, each after a line with its title.

    The paper (section 4) keeps those with "titles unrelated to any dish names in our dataset": here
    those whose title contains no name of a dish.

    Args:
        corpus: XiaChuFang's file, or another one in its format.
        dishes: Names of all dishes, those that are tested among them.

    Raises:
        DataError: The corpus cannot be read.
    """
    recipes = set()
    for line in read(corpus, "Reading recipes"):
        title = line.title
        if title and not _contains_dish(title, dishes):
            recipes.add((title, line.instruction))
    texts = []
    for title, instruction in sorted(recipes):
        if len(instruction) >= MIN_CHARACTERS:
            texts.append(f"{title}\n{instruction}")
    return texts


def _contains_dish(title: str, dishes: Collection[str]) -> bool:
    spans = combinations(range(len(title) + 1), 2)
    return any(title[start:end] in dishes for start, end in spans)


# The splits.


def divided(
    recipes: Collection[Pair], test_names: Collection[str], seed: int
) -> dict[str, SplitParts]:
    """Return the TMCD split, by names, and a random split in the published format.

    The random split divides recipes, not dishes (paper, section 3.4), and has as many test recipes
    as the TMCD split. A fifth of the other recipes is for validation. The orders are those of
    hashes, so they are the same on every machine and in any order of the corpus.
    """
    by_name = {recipe for recipe in recipes if recipe[0] in test_names}
    drawn_recipes = set(_by_hash(recipes, "random", seed)[: len(by_name)])
    splits: dict[str, SplitParts] = {}
    for split, test in (("tmcd", by_name), ("random", drawn_recipes)):
        training = [recipe for recipe in recipes if recipe not in test]
        valid_count = round(VALID_SHARE * len(training))
        valid = set(_by_hash(training, "valid", seed)[:valid_count])
        texts: dict[str, dict[str, list[str]]] = {}
        for part_name in PARTS:
            texts[part_name] = {"instructions": [], "names": []}
        for recipe in _by_hash(recipes, "order", seed):
            name, instruction = recipe
            part_name = "train"
            if recipe in test:
                part_name = "test"
            elif recipe in valid:
                part_name = "valid"
            texts[part_name]["names"].append(name)
            texts[part_name]["instructions"].append(instruction)
        splits[split] = texts
    return splits


def _by_hash(recipes: Iterable[Pair], purpose: str, seed: int) -> list[Pair]:
    hashes = {}
    for recipe in recipes:
        key = "\x1f".join((str(seed), purpose, *recipe))
        hashes[recipe] = hashlib.md5(key.encode()).digest()
    return sorted(hashes, key=hashes.__getitem__)


# The report: the paper's tables 2 to 4.

MIX = {"CombTwo": 43, "AddOne": 11, "RecoTwo": 619, "RecoThree": 21, "none": 0}
"""The paper's test names by category (table 2)."""

PAPER: Mapping[str, float] = {
    "training dishes": 3_109,
    "test dishes": 694,
    "training recipes, valid included": 187_520,
    "test recipes": 37_861,
    "training components": 479,
    "test components": 383,
    "test components that training lacks": 0,
    "training dishes per test component": 19.3,
    "different compounds per training dish": 2_317 / 3_109,
    "different compounds per test dish": 616 / 694,
    "share of the test compounds that training has": 0.0067,
    "divergence of compounds": 0.98,
    **{f"share of {category}": n / sum(MIX.values()) for category, n in MIX.items()},
    "distance of these shares from the paper's": 0,
}
"""Figures of the paper's split, as published scores hold for a split like it."""


def figures(names: Mapping[str, Components], texts: SplitParts, compounds: str) -> dict[str, float]:
    """Return the figures of :data:`PAPER` of a split; each name counts once on each side.

    The distance is half the sum of differences: 0 for the paper's mix, 1 for a disjoint one.
    """
    train_recipes = [*texts["train"]["names"], *texts["valid"]["names"]]
    test_recipes = texts["test"]["names"]
    train = sorted(set(train_recipes))
    test = sorted(set(test_recipes))
    sides = [False] * len(train) + [True] * len(test)
    partition = Partition([names[name] for name in (*train, *test)], sides, compounds)
    in_train = partition.train > 0
    in_test = partition.test > 0
    training_dishes = partition.atoms_in_train
    is_tested = partition.atoms_in_test > 0
    shares = _shares_of_categories(names, train, test)
    distance = sum(abs(share - PAPER[name]) for name, share in shares.items()) / 2
    values = {
        "training dishes": len(train),
        "test dishes": len(test),
        "training recipes, valid included": len(train_recipes),
        "test recipes": len(test_recipes),
        "training components": (training_dishes > 0).sum(),
        "test components": is_tested.sum(),
        "test components that training lacks": (training_dishes[is_tested] == 0).sum(),
        "training dishes per test component": training_dishes[is_tested].mean(),
        "different compounds per training dish": in_train.sum() / len(train),
        "different compounds per test dish": in_test.sum() / len(test),
        "share of the test compounds that training has": (in_train & in_test).sum()
        / max(1, in_test.sum()),
        "divergence of compounds": max(0, partition.divergence),
        **shares,
        "distance of these shares from the paper's": distance,
    }
    return {name: float(value) for name, value in values.items()}


def _shares_of_categories(
    names: Mapping[str, Components], train: Sequence[str], test: Sequence[str]
) -> dict[str, float]:
    categories = Categories(names[name] for name in train)
    counts = Counter(categories.of(names[name]) or "none" for name in test)
    return {f"share of {category}": counts[category] / len(test) for category in MIX}


def forms(names: Mapping[str, Components], recipes: Mapping[str, int]) -> dict[str, list[int]]:
    """Return table 3: the numbers of dishes and of recipes by form of the name.

    A form is how many components of each kind a name has.
    """
    dishes = Counter[str]()
    recipes_of_form = Counter[str]()
    for name, components in names.items():
        counts = Counter(component.kind for component in set(components))
        kinds = [f"{counts[kind]} {kind}" for kind in reversed(KINDS) if counts[kind]]
        form = " + ".join(kinds)
        dishes[form] += 1
        recipes_of_form[form] += recipes[name]
    return {form: [count, recipes_of_form[form]] for form, count in dishes.most_common()}
