"""Loads DiNeR's documents from the published files, from ``diner build``'s, or from mini."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.diner import mini, prompt
from lm_eval_ext.benchmarks.diner.component_answers import read_answers
from lm_eval_ext.benchmarks.diner.files import REPORT, read_json
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.in_context import SELECTIONS
from lm_eval_ext.benchmarks.diner.records import Categories, Recipe, Split, split_of
from lm_eval_ext.benchmarks.diner.retrieval import check_installed
from lm_eval_ext.data import require_all
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo


PUBLISHED, MINI = "published", "mini"
CORPORA = (PUBLISHED, MINI)

TMCD, RANDOM = "tmcd", "random"
SPLITS = (TMCD, RANDOM)

SOURCE = "diner"
GLOSSARY = "glossary.json"

NAME, COMPONENTS, COMPOSITIONAL = "name", "components", "cp"
ASKS = (NAME, COMPONENTS, COMPOSITIONAL)

MOST = 2**64
"""Upper limit of whole numbers."""

OTHER = "other"
"""Of a test name that is in none of the paper's generalization categories."""

UNPARSED, UNANSWERED = "gold_does_not_parse", "no_component_answers"
"""Reasons why a recipe is not asked about."""


@loader(prefix="diner_")
def dataset(
    *,
    diner_corpus: str = PUBLISHED,
    diner_split: str = TMCD,
    diner_dir: str | None = None,
    diner_ask: str = NAME,
    diner_components_file: str | None = None,
    diner_wording: str = prompt.OURS,
    diner_demonstrations: str | None = None,
    diner_per_dish: int = 0,
    diner_draw_seed: int = 0,
) -> "DatasetDict":
    """Loads the test recipes of a split as ``test``, in a fixed random order.

    Recipes whose name does not parse cannot be scored and are left out.

    Args:
        diner_corpus: ``published`` or ``mini``.
        diner_split: ``tmcd`` or ``random``.
        diner_dir: A folder made by ``lm-eval-ext diner build``, used instead of a corpus.
        diner_ask: What to ask for: the ``name``, the ``components``, or both (``cp``).
        diner_components_file: For ``cp``: lm-eval's log of a model's answers to
            ``diner_components``, which prompts then state before the question.
        diner_wording: Whose component questions: ``ours``, or the ``authors``', which their
            fine-tuned models know.
        diner_demonstrations: How in-context demonstrations are chosen; None: none are shown.
        diner_per_dish: Recipes per dish, drawn at random; 0: all.
        diner_draw_seed: The seed for drawing them, a whole number.

    Raises:
        OptionError: A value is illegal, or a library is not installed.
        DataError: A file is unavailable or invalid, or no recipe is left.
    """
    from datasets import Dataset, DatasetDict

    for option, path in (("dir", diner_dir), ("components_file", diner_components_file)):
        if not isinstance(path, str | None):
            raise OptionError(
                f"diner_{option} is {path!r}; write a path as a string, or leave it out"
            )
    _check(diner_ask, diner_components_file, diner_demonstrations)
    _check_wording(diner_wording, diner_ask, diner_components_file)
    _check_draw(diner_per_dish, diner_draw_seed)
    split, info = read(diner_corpus, diner_split, diner_dir)
    parsed = [recipe for recipe in split.test if split.glossary.parse(recipe.name)]
    left_out = {UNPARSED: [r.id for r in split.test if not split.glossary.parse(r.name)]}
    asked = drawn(parsed, diner_per_dish, diner_draw_seed)
    given: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    if diner_components_file is not None:
        given = read_answers(Path(diner_components_file).expanduser(), asked)
        left_out[UNANSWERED] = [recipe.id for recipe in asked if recipe.id not in given]
        asked = [recipe for recipe in asked if recipe.id in given]
    if not asked:
        causes = ", ".join(f"{cause}: {len(ids)}" for cause, ids in left_out.items())
        raise DataError(
            f"DiNeR: no recipe can be asked about ({causes}); use another split or log of answers"
        )
    categories = Categories(split.train_names.values())
    rows = [
        {
            "id": recipe.id,
            "instruction": recipe.instruction,
            "answer": recipe.name,
            "category": categories.of(split.glossary.parse(recipe.name) or ()) or OTHER,
            **_prompts(recipe, diner_ask, diner_wording, given),
        }
        for recipe in asked
    ]
    named = {cause: ids for cause, ids in left_out.items() if ids}
    if named:
        info = provenance.with_left_out(info, named)
    return DatasetDict({"test": Dataset.from_list(rows, info=info)})


def _check(ask: str, components_file: str | None, demonstrations: str | None) -> None:
    if ask not in ASKS:
        raise OptionError(f"diner_ask is {ask!r}; use {', '.join(ASKS)}")
    if components_file is not None and ask != COMPOSITIONAL:
        raise OptionError(
            "diner_components_file is only for diner_cp; leave it out, or run diner_cp by itself"
        )
    if demonstrations not in (None, *SELECTIONS):
        raise OptionError(
            f"diner_demonstrations is {demonstrations!r}; use {' or '.join(SELECTIONS)}"
        )
    if demonstrations is not None:
        check_installed()


def _check_wording(wording: str, ask: str, components_file: str | None) -> None:
    if wording not in prompt.WORDINGS:
        raise OptionError(f"diner_wording is {wording!r}; use {' or '.join(prompt.WORDINGS)}")
    if wording != prompt.OURS and ask == NAME:
        raise OptionError(
            "diner_wording is only for diner_components and diner_cp; leave it out: the question "
            "for the name is the authors' anyway"
        )
    if wording == prompt.AUTHORS and ask == COMPOSITIONAL and components_file is None:
        raise OptionError(
            "diner_wording authors states components that a model found before: name its answers "
            "with diner_components_file, or use ours"
        )


def _check_draw(per_dish: int, seed: int) -> None:
    for option, value, legal in (
        ("per_dish", per_dish, "0 (all), 1 or more"),
        ("draw_seed", seed, "a whole number from 0 to 2**64 - 1"),
    ):
        if type(value) is not int or not 0 <= value < MOST:
            raise OptionError(f"diner_{option} is {value!r}; use {legal}")


def split_for(options: Mapping[str, Any]) -> Split:
    """The split that :func:`dataset` takes documents from under these options."""
    names = ("diner_corpus", "diner_split", "diner_dir")
    return read(*(options[name] for name in names))[0]


def drawn(recipes: list[Recipe], per_dish: int, seed: int) -> list[Recipe]:
    """Shuffles recipes, or ``per_dish`` of each dish unless that is 0.

    Shuffled because files may group recipes by dish, and ``--limit`` takes the first ones.
    """
    by_dish: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        by_dish.setdefault(recipe.name, []).append(recipe)
    if per_dish:
        recipes = [
            found[place]
            for name, found in sorted(by_dish.items())
            for place in islice(shuffled(len(found), seed, "per_dish", name), per_dish)
        ]
    return [recipes[place] for place in shuffled(len(recipes), "documents")]


def _prompts(
    recipe: Recipe,
    wanted: str,
    wording: str,
    given: Mapping[str, Mapping[str, Sequence[str]]] | None,
) -> dict[str, Any]:
    """The columns with prompts."""
    if wanted == NAME:
        return {"input": prompt.name_prompt(recipe.instruction)}
    if wanted == COMPONENTS:
        return {"context": prompt.component_prompts(recipe.instruction, wording)}
    if given is None:
        return {"input": prompt.one_prompt(recipe.instruction)}
    text = prompt.given_components_prompt(recipe.instruction, given[recipe.id], wording)
    return {"input": text}


def read(corpus: str, split: str, folder: str | None) -> "tuple[Split, DatasetInfo]":
    """Reads one of :data:`SPLITS` and describes its source.

    A folder made by ``lm-eval-ext diner build`` is read instead of the published files.

    Raises:
        OptionError: A value is illegal, or they do not go together.
        DataError: A file is unavailable or invalid.
    """
    if corpus not in CORPORA:
        raise OptionError(f"diner_corpus is {corpus!r}; use {' or '.join(CORPORA)}")
    if split not in SPLITS:
        raise OptionError(f"diner_split is {split!r}; use {' or '.join(SPLITS)}")
    if folder is not None:
        if corpus == MINI:
            raise OptionError(
                "diner_dir cannot be used with the mini tasks, whose recipes are embedded; leave "
                "it out, or run other tasks"
            )
        return _own(Path(folder).expanduser(), split)
    if corpus == MINI:
        return _mini(split)
    if split == RANDOM:
        raise OptionError(
            "the authors' random split is not published; build one with lm-eval-ext diner build "
            """and name its folder: --metadata '{"diner_dir": "FOLDER"}'"""
        )
    found = require_all(SOURCE)
    paths = {file.name: file.path for file in found.files}
    return _parsed(paths["tmcd"], paths["glossary"]), provenance.describe(found.files)


def _own(folder: Path, split: str) -> "tuple[Split, DatasetInfo]":
    paths = [folder / f"{split}_data.json", folder / GLOSSARY]
    for path in paths:
        if not path.is_file():
            raise DataError(
                f"diner_dir: {folder} has no {path.name}; name a folder made by lm-eval-ext diner "
                "build"
            )
    sums = {f"{path.stem} recipes": sha256_of(path) for path in paths}
    return _parsed(*paths), provenance.describe_many([], sums)


def built_with(folder: str, split: str) -> dict[str, str]:
    """How a folder's split was built, for signatures: its divergence, and the share of recipes.

    {} if the folder has no report that says it.
    """
    try:
        options = read_json(Path(folder).expanduser() / REPORT)["options"]  # type: ignore[index]
        found = {"divergence": f"{options['divergence']:g}", "share": f"{options['proportion']:g}"}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
    return found if split == TMCD else {"share": found["share"]}


def _mini(split: str) -> "tuple[Split, DatasetInfo]":
    found = split_of(mini.split(split), mini.glossary(), f"diner_mini, {split}")
    return found, provenance.describe_embedded("diner_mini", mini.digest())


def _parsed(path: Path, glossary: Path) -> Split:
    stamp = tuple((one, one.stat().st_size, one.stat().st_mtime_ns) for one in (path, glossary))
    return _kept(*stamp)


@lru_cache(maxsize=2)
def _kept(data: tuple[Path, int, int], glossary: tuple[Path, int, int]) -> Split:
    """Reads files of this size and time; cached, as several tasks of a run need the same 125 MB."""
    path = data[0]
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: not JSON as it must be ({error}); fetch or build it again"
        ) from error
    return split_of(content, Glossary.read(glossary[0]), str(path))
