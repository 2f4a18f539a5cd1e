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
from collections.abc import Collection, Iterable, Iterator, Mapping
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
"""To be raised when the same corpus and options give another dataset or report."""

REPORT = "report.json"

MIN_OCCURRENCES = 20
"""Number of recipes with a cleaned title that makes it a dish name."""

MIN_CHARACTERS = 20
"""The shortest instruction that is kept."""

VALID_SHARE = 0.2
"""Share of the training recipes (paper, section 5.2)."""

SHOWN = 50
"""Number of names that do not parse, in the report."""

Pair = tuple[str, str]
"""Name and instruction of a recipe."""


class Options(Strict):
    """What changes the dataset.

    Attributes:
        divergence: The search for the TMCD split stops here; the paper's main split has 0.98.
        compounds: What it counts as a compound: the ``whole`` component set of a name, or all its
            ``subsets``.
        seed: The seed of both splits.
    """

    divergence: float = Field(0.98, gt=0, le=1)
    compounds: Literal["whole", "subsets"] = "whole"
    seed: int = 0


def build(corpus: Path, out: Path, glossary: Path | None, options: Options) -> dict[str, Any]:
    """Builds the dataset in a new folder, which appears only when it is complete.

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
    known = Glossary.read(glossary or require(SOURCE, "glossary").path)
    with atomic_folder(out) as folder:
        contents = _contents(corpus, known, options)
        for file, content in contents.items():
            indent = None if file.endswith("_data.json") else 1
            text = json.dumps(content, ensure_ascii=False, indent=indent)
            (folder / file).write_text(f"{text}\n", encoding="utf-8")
    report: dict[str, Any] = contents[REPORT]
    return report


def _contents(corpus: Path, known: Glossary, options: Options) -> dict[str, Any]:
    """What each file holds."""
    titles = Counter(one.title for one in read(corpus, "Counting titles"))
    named = {name: n for name, n in titles.items() if name and n >= MIN_OCCURRENCES}
    if not named:
        raise DataError(
            f"there are no dish names: no title occurs {MIN_OCCURRENCES} times in "
            f"{titles.total():,} recipes; use a larger corpus"
        )
    copies = Counter[Pair]()
    for one in read(corpus, "Collecting recipes"):
        if (title := one.title) in named:
            copies[title, one.instruction] += 1
    parsed = {name: found for name in sorted(named) if (found := known.parse(name))}
    long = [pair for pair in copies if pair[0] in parsed and len(pair[1]) >= MIN_CHARACTERS]
    if not long:
        raise DataError(
            f"none of {len(named):,} dish names parses and has a recipe with an instruction of "
            f"{MIN_CHARACTERS} characters; use another glossary, or check recipeInstructions"
        )
    recipes = Counter(name for name, _ in long)
    names = {name: parsed[name] for name in sorted(recipes)}
    tested, course = search(
        names, target=options.divergence, compounds=options.compounds, seed=options.seed
    )
    splits = divided(long, tested, options.seed)
    report = {
        "version": VERSION,
        "corpus": {"file": corpus.name, "sha256": sha256_of(corpus)},
        "options": options.model_dump(),
        "glossary": {"digest": known.digest},
        "kept": {
            "recipes": titles.total(),
            "with a title": titles.total() - titles[""],
            "titles": len(titles.keys() - {""}),
            "dish names": len(named),
            "with a dish name": sum(named.values()),
            "dish names that parse": len(parsed),
            "with such a name": sum(named[name] for name in parsed),
            "long enough": sum(copies[pair] for pair in long),
            "different": len(long),
            "their dishes": len(names),
        },
        "forms": forms(names, recipes),
        "figures": {"paper, TMCD": PAPER}
        | {name: figures(names, parts, options.compounds) for name, parts in splits.items()},
        "course": course,
        "unparsed": Counter({name: named[name] for name in sorted(named.keys() - parsed.keys())})
        .most_common(SHOWN),
    }  # fmt: skip
    files = {f"{name}_data.json": parts for name, parts in splits.items()}
    return {**files, GLOSSARY: known.as_dict(), REPORT: report}


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
        spaced = (_SPACE.sub(" ", step).strip() for step in self.steps or () if step)
        return "".join(
            # Python may not know new emojis (Cn) yet.
            step if unicodedata.category(step[-1]).startswith(("P", "S", "Cn")) else f"{step}。"
            for step in spaced
            if step
        )


BATCH = 1_000
"""Lines between two steps of the progress bar."""

_SPACE = re.compile(r"[\s\0-\x1f\x7f-\x9f]+")


def read(corpus: Path, title: str) -> Iterator[Line]:
    """The recipes of a corpus, plain or gzipped, with a progress bar on terminals.

    Raises:
        DataError: It cannot be read; the message has the number of the line.
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
                if text := line.removeprefix(codecs.BOM_UTF8).strip():
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
    """Running text for continued pretraining: recipes, each after its title on a line of its own.

    The paper (section 4) keeps those with "titles unrelated to any dish names in our dataset": here
    those whose title contains no name of a dish.

    Args:
        corpus: XiaChuFang's file, or another one in its format.
        dishes: Names of all dishes, those that are tested among them.

    Raises:
        DataError: The corpus cannot be read.
    """
    found = set()
    for one in read(corpus, "Reading recipes"):
        places = combinations(range(len(one.title) + 1), 2)
        if one.title and not any(one.title[start:end] in dishes for start, end in places):
            found.add((one.title, one.instruction))
    return [f"{title}\n{text}" for title, text in sorted(found) if len(text) >= MIN_CHARACTERS]


# The splits.


def divided(
    recipes: Collection[Pair], tested: Collection[str], seed: int
) -> dict[str, dict[str, dict[str, list[str]]]]:
    """The TMCD split, by names, and a random split in the published format.

    The random split divides recipes, not dishes (paper, section 3.4), and has as many test recipes
    as the TMCD split. A fifth of the others is for validation. The orders are those of hashes, so
    they are the same on every machine and in any order of the corpus.
    """

    def order(purpose: str, some: Iterable[Pair]) -> list[Pair]:
        keys = {
            pair: hashlib.md5("\x1f".join((str(seed), purpose, *pair)).encode()).digest()
            for pair in some
        }
        return sorted(keys, key=keys.__getitem__)

    by_name = {pair for pair in recipes if pair[0] in tested}
    drawn = set(order("random", recipes)[: len(by_name)])
    mixed = order("order", recipes)
    found = {}
    for split, test in (("tmcd", by_name), ("random", drawn)):
        rest = order("valid", (pair for pair in recipes if pair not in test))
        valid = set(rest[: round(VALID_SHARE * len(rest))])
        parts: dict[str, dict[str, list[str]]] = {
            part: {"instructions": [], "names": []} for part in PARTS
        }
        for pair in mixed:
            part = parts["test" if pair in test else "valid" if pair in valid else "train"]
            part["names"].append(pair[0])
            part["instructions"].append(pair[1])
        found[split] = parts
    return found


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


def figures(
    names: Mapping[str, Components],
    parts: Mapping[str, Mapping[str, Collection[str]]],
    compounds: str,
) -> dict[str, float]:
    """The same of a split; each name counts once on each side.

    The distance is half the sum of differences: 0 for the paper's mix, 1 for a disjoint one.
    """
    recipes = [[*parts["train"]["names"], *parts["valid"]["names"]], parts["test"]["names"]]
    train, test = (sorted(set(side)) for side in recipes)
    sides = [False] * len(train) + [True] * len(test)
    held = Partition([names[name] for name in (*train, *test)], sides, compounds)
    known = Categories(names[name] for name in train)
    mix = Counter(known.of(names[name]) or "none" for name in test)
    shares = {f"share of {one}": mix[one] / len(test) for one in MIX}
    trained, tested = held.train > 0, held.test > 0
    having, atoms = held.atoms_in_train, held.atoms_in_test > 0
    values = (
        len(train), len(test), *map(len, recipes), (having > 0).sum(), atoms.sum(),
        (having[atoms] == 0).sum(), having[atoms].mean(), trained.sum() / len(train),
        tested.sum() / len(test), (trained & tested).sum() / max(1, tested.sum()),
        max(0, held.divergence), *shares.values(),
        sum(abs(share - PAPER[one]) for one, share in shares.items()) / 2,
    )  # fmt: skip
    return dict(zip(PAPER, map(float, values), strict=True))


def forms(names: Mapping[str, Components], recipes: Mapping[str, int]) -> dict[str, list[int]]:
    """Table 3: names by their number of components of each kind, with dishes and recipes."""
    dishes, cooked = Counter[str](), Counter[str]()
    for name, components in names.items():
        counts = Counter(component.kind for component in set(components))
        form = " + ".join(f"{counts[kind]} {kind}" for kind in reversed(KINDS) if counts[kind])
        dishes[form] += 1
        cooked[form] += recipes[name]
    return {form: [n, cooked[form]] for form, n in dishes.most_common()}
