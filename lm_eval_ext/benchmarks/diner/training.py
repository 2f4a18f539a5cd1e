"""DiNeR's material for training: names, component questions, CP-FT, and text to pretrain on.

The paper's section 4 says what is trained; the recipes say with which values.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from lm_eval_ext.benchmarks.diner import auxiliary, generated, load
from lm_eval_ext.benchmarks.diner.component_answers import components_in
from lm_eval_ext.benchmarks.diner.extract import name_of
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.prompt import (
    ASKED_KINDS,
    AUTHORS,
    component_prompts,
    given_components_prompt,
    name_prompt,
)
from lm_eval_ext.benchmarks.diner.records import TRAIN, VALID, Recipe, Split
from lm_eval_ext.benchmarks.diner.score import counts, set_counts
from lm_eval_ext.errors import OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import Strict, checked
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.material import Material, Pair
from lm_eval_ext.training.records import RECORD

DEV, WRITTEN = "dev", "written"
"""The gates: the validation set; of diner_mini, its validation recipes that people wrote."""

DEV_RECIPES = 200
"""Generated recipes of diner_mini's development set."""

TITLE = "<title>"
"""The authors' code adds this token to the vocabulary, and uses it in no prompt."""


class Options(Strict):
    """What a recipe's ``data`` may say.

    Attributes:
        corpus: ``published``, or ``mini``, which is embedded.
        split: ``tmcd`` or ``random``.
        dir: A folder that ``lm-eval-ext diner build`` made, instead of a corpus.
        recipes: XiaChuFang's file: what ``dir`` is built from if it is not there yet, with
            ``divergence``; and what ``ask: text`` reads.
        divergence: Of the split in ``dir``; the paper's figure 5 has .98, .8 and .6.
        share: Of the training recipes that are used; figure 5 has .2 to 1.
        generated: So many generated recipes besides those of ``mini``.
        ask: For the ``name``; for the ``components``, as an auxiliary model is asked; ``cp``,
            for the name after an auxiliary model's components; or ``text``, running text.
        auxiliary: For ``cp``: the folder of the auxiliary model.
        title_token: Whether the authors' token is added.
    """

    corpus: Literal["published", "mini"] = "published"
    split: Literal["tmcd", "random"] = "tmcd"
    dir: str | None = None
    recipes: str | None = None
    divergence: float | None = Field(None, gt=0, le=1)
    share: float = Field(1.0, gt=0, le=1)
    generated: int = Field(0, ge=0)
    ask: Literal["name", "components", "cp", "text"] = "name"
    auxiliary: str = ""
    title_token: bool = False

    @model_validator(mode="after")
    def _fit(self) -> "Options":
        if (self.ask == "cp") != bool(self.auxiliary):
            raise ValueError("auxiliary is for ask: cp, which needs it")
        if self.generated and self.corpus != "mini":
            raise ValueError("generated recipes go with corpus: mini")
        if self.divergence is not None and self.dir is None:
            raise ValueError("divergence is of a split in dir; name a folder")
        if self.ask == "text" and self.recipes is None:
            raise ValueError("ask: text needs recipes, XiaChuFang's file")
        return self


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The material of a recipe.

    Raises:
        OptionError: An option is wrong, or two of them do not fit.
        DataError: A file is missing or broken.
    """
    options = checked(Options, data, "recipe, data")
    split = _split(options)
    grow = partial(_with_title, seed=seed) if options.title_token else None
    if options.ask == "text":
        from lm_eval_ext.benchmarks.diner.build.text import documents

        assert options.recipes is not None
        names = {one.name for one in (*split.train, *split.test)}
        found = documents(Path(options.recipes).expanduser(), names)
        random.Random(f"documents {seed}").shuffle(found)
        texts = [("", text) for text in found]
        return Material(texts, facts={"documents": len(found)}, grow=grow)
    train, dev = _parts(options, split, seed)
    asked = {DEV: [one for one in dev if split.glossary.parse(one.name)]}
    if options.generated:
        kinds = {DEV: DEV, WRITTEN: VALID}
        asked = {
            name: [one for one in asked[DEV] if one.id.startswith(f"{kind}-")]
            for name, kind in kinds.items()
        }
    pairs = partial(_pairs, options=options, split=split, seed=seed)
    given = _given(options, split, [*train, *dev])
    return Material(
        pairs(train, given=given),
        pairs(dev, given=given),
        {name: pairs(some, given=given) for name, some in asked.items()},
        _facts(options, split),
        score=partial(_score, glossary=split.glossary, names=options.ask != "components"),
        grow=grow,
        lossy=True,
        model_file=_model_file(options),
    )


def _split(options: Options) -> Split:
    """The split; built first where that is asked for."""
    if options.divergence is not None:
        assert options.dir is not None
        from lm_eval_ext.benchmarks.diner.build.folder import built

        with processes().main_process_first():
            built(Path(options.dir).expanduser(), options.recipes, options.divergence)
    return load.read(options.corpus, options.split, options.dir)[0]


def _parts(options: Options, split: Split, seed: int) -> tuple[list[Recipe], list[Recipe]]:
    """Training recipes, their share, and the validation set."""
    train = [one for one in split.train if one.id.startswith(f"{TRAIN}-")]
    valid = [one for one in split.train if one.id.startswith(f"{VALID}-")]
    count = max(1, round(options.share * len(train)))
    # A smaller share is a part of every larger one.
    kept = sorted(islice(shuffled(len(train), "share", seed), count))
    train = [train[place] for place in kept]
    if options.generated:
        # Those of the development set are the same for every seed, and in no training set.
        held = list(islice(generated.recipes("dev"), DEV_RECIPES))
        texts = {text for text, _ in held}
        drawn = (pair for pair in generated.recipes(seed) if pair[0] not in texts)
        train += _numbered("generated", islice(drawn, options.generated))
        valid += _numbered(DEV, held)
    return train, valid


def _numbered(kind: str, pairs: Iterable[tuple[str, str]]) -> list[Recipe]:
    return [Recipe(f"{kind}-{number}", *pair) for number, pair in enumerate(pairs)]


def _given(
    options: Options, split: Split, trained_on: Sequence[Recipe]
) -> auxiliary.Predicted | None:
    """For ``cp``: the components before each question; those of test recipes are kept in a file."""
    if options.ask != "cp":
        return None
    model = Path(options.auxiliary)
    _check_auxiliary(model, options)
    return auxiliary.predictions(model, [*trained_on, *split.test])


def _check_auxiliary(model: Path, options: Options) -> None:
    """Refuses a model that answers other questions, or was trained on other recipes."""
    try:
        record = json.loads((model / RECORD).read_text(encoding="utf-8"))["recipe"]
    except (OSError, ValueError, KeyError):
        raise OptionError(f"{model}: no training; name a folder that a recipe trained") from None
    own = record["data"] if record["source"] == "diner" else {}
    its = checked(Options, own, f"{model}, data")
    same = ("corpus", "split", "dir", "divergence", "share", "generated")
    wanted = {name: getattr(options, name) for name in same} | {"ask": "components"}
    for name, value in wanted.items():
        if (found := getattr(its, name)) != value:
            raise OptionError(
                f"{model}: trained with data.{name} {found!r}, and here an auxiliary model with "
                f"{value!r} is needed; train one, or change the option here"
            )


def _pairs(
    recipes: Sequence[Recipe],
    *,
    options: Options,
    split: Split,
    seed: int,
    given: auxiliary.Predicted | None,
) -> list[Pair]:
    """Prompts as the tasks ask them, with answers."""
    if options.ask == "components":
        return [pair for one in recipes for pair in _component_pairs(one, split.glossary, seed)]
    if given is None:
        return [(name_prompt(one.instruction), one.name) for one in recipes]
    return [
        (given_components_prompt(one.instruction, given[one.id], AUTHORS), one.name)
        for one in recipes
    ]


def _component_pairs(one: Recipe, glossary: Glossary, seed: int) -> list[Pair]:
    """The three questions; several foods are in a random order, joined by a comma."""
    words = list(glossary.words_in(one.name) or ())
    random.Random(f"order of components {seed} {one.id}").shuffle(words)
    kinds = {word: found.kind for word in words if (found := glossary.component(word))}
    answers = [",".join(word for word in words if kinds[word] == kind) for kind in ASKED_KINDS]
    return list(zip(component_prompts(one.instruction, AUTHORS), answers, strict=True))


def _score(answer: str, target: str, *, glossary: Glossary, names: bool) -> float:
    """F1 of the components, as the tasks count them; 1 where there is none on either side."""
    if names:
        return counts(target, name_of(answer), glossary).f1
    gold, found = (components_in(text, glossary) for text in (target, answer))
    return set_counts(gold, found).f1 if gold or found else 1.0


def _facts(options: Options, split: Split) -> dict[str, Any]:
    """What the recipes are, for the record."""
    facts: dict[str, Any] = {"glossary": split.glossary.digest}
    if options.dir is not None:
        facts |= load.built_with(options.dir, options.split)
    return facts


def _model_file(options: Options) -> dict[str, Any]:
    """Metadata for the tasks: the prompts that the model was trained with."""
    metadata: dict[str, Any] = {}
    share = options.share
    if options.dir is not None:
        metadata["diner_dir"] = str(Path(options.dir).expanduser().absolute())
        share *= float(load.built_with(options.dir, options.split).get("share", 1))
    if options.ask != "name":
        metadata["diner_wording"] = AUTHORS
        # Tasks that ask for the name have their split in their name.
        if options.split != load.TMCD:
            metadata["diner_split"] = options.split
    if options.ask == "cp":
        metadata["diner_components_file"] = str(Path(options.auxiliary) / auxiliary.PREDICTIONS)
    return {"training_share": share} | ({"metadata": metadata} if metadata else {})


def _with_title(folder: Path, out: Path, *, seed: int) -> None:
    """Adds the authors' token; a row that is new is drawn as T5 draws its first weights."""
    import torch

    from lm_eval_ext.atomic import atomic_folder
    from lm_eval_ext.training.starting import load as load_model

    model, tokenizer = load_model(folder)
    tokenizer.add_tokens([TITLE], special_tokens=True)
    if len(tokenizer) > len(model.get_input_embeddings().weight):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with atomic_folder(out) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
