"""Which constructions an example shows, read from its logical form.

No word but the grammar's own (was, the, a, prepositions) is in a construction's name, so an
example has the same ones under every lexicon.

COGS for models that are not fine-tuned: demonstrations from the training set.

Each sample is shown the exposure example of its key word, and training examples that together
cover the constructions (:mod:`~lm_eval_ext.benchmarks.cogs.in_context`). Choices rest on ids,
unmodified words and constructions, so a sample has the same ones under every lexicon.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.cogs import load, mini, prompt, score
from lm_eval_ext.benchmarks.cogs.forms import VARIABLE, LogicalForm, Term, parse
from lm_eval_ext.benchmarks.cogs.lexicons import UNMODIFIED
from lm_eval_ext.benchmarks.cogs.records import Example
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import Choices, Group, Item, Pool, covering
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo


MODIFIER, CLAUSE = "nmod", "ccomp"
"""What nests: places behind nouns, and clauses in clauses."""

_ROLE, _MODIFIER = 2, 3
"""Parts of a predicate: lemma and role, or noun, ``nmod`` and preposition."""


def constructions(sentence: str, form: str) -> frozenset[str]:
    """The constructions of an example.

    For each verb its *frame*, the roles in the order of the form: ``agent theme``, or ``was
    theme agent`` in the passive. For each noun phrase its *slot* and what it is: ``subject
    name``, ``theme the``, ``theme a``, ``theme modified`` (a place behind it). The slot is the
    role; the first of a frame is the subject. For each place its preposition: ``nmod in``. And
    how deep places and clauses are nested, by one for each level: ``ccomp 1``, ``ccomp 2``. A
    primitive, which is a word alone, has none.

    Args:
        sentence: A variable's number is the place of its word in it.
        form: The logical form.

    Raises:
        NotAFormError: If the form is no logical form.
    """
    read = parse(form)
    if read.name is not None or read.binders:
        return frozenset()
    found: set[str] = set()
    nouns = _nouns(read)
    tokens = sentence.split()
    nested: dict[str, dict[Term, Term]] = {MODIFIER: {}, CLAUSE: {}}
    frames: defaultdict[Term, list[tuple[str, Term]]] = defaultdict(list)
    for atom in read.atoms:
        if len(atom.predicate) == _MODIFIER:
            nested[MODIFIER][atom.terms[0]] = atom.terms[1]
            found.add(f"{MODIFIER} {atom.predicate[2]}")
        elif len(atom.predicate) == _ROLE:
            frames[atom.terms[0]].append((atom.predicate[1], atom.terms[1]))
            if atom.predicate[1] == CLAUSE:
                nested[CLAUSE][atom.terms[0]] = atom.terms[1]
    for verb, arguments in frames.items():
        voice = "was " if tokens[_place(verb) - 1] == "was" else ""
        found.add(voice + " ".join(role for role, _ in arguments))
        for number, (role, term) in enumerate(arguments):
            if term in frames:
                continue
            slot = "subject" if number == 0 else role
            found.add(f"{slot} {nouns.get(term, 'name')}")
            if term in nested[MODIFIER]:
                found.add(f"{slot} modified")
    for what, inner in nested.items():
        found |= {f"{what} {level}" for level in range(1, _depth(inner) + 1)}
    return frozenset(found)


def _nouns(form: LogicalForm) -> dict[Term, str]:
    """By variable of a noun, which article it has."""
    return {
        atom.terms[0]: "the" if atom.definite else "a"
        for atom in form.atoms
        if len(atom.predicate) == 1
    }


def _place(verb: Term) -> int:
    kind, text = verb
    return int(text.removeprefix("x_")) if kind == VARIABLE else 0


def _depth(inner: Mapping[Term, Term]) -> int:
    """How many levels are nested in each other."""
    deepest = 0
    for outermost in inner.keys() - set(inner.values()):
        level, term = 0, outermost
        while term in inner:
            level, term = level + 1, inner[term]
        deepest = max(deepest, level)
    return deepest


TRAIN, SAMPLE = "train", "sample"
COVERED = (TRAIN, SAMPLE)
"""Whose constructions demonstrations cover: all of the training set, which tells nothing about
the answer, or those of the sample's own logical form, which tells its structure."""

CHOICE_COLUMNS = ("id", "copy_key", "constructions", "exposure")
"""What a choice rests on; no lexicon changes it."""

_kept: dict[tuple[str, str, int, int], Choices] = {}

WHY = "the exposure example of its key word"


@loader(prefix="cogs_")
def dataset(
    *,
    cogs_corpus: str = "cogs",
    cogs_lexicon: str = UNMODIFIED,
    cogs_split: str = "gen",
    cogs_gen_revision: str = "2020",
    cogs_seed: int | None = None,
    cogs_shape: str | None = None,
    cogs_cover: str = TRAIN,
) -> "DatasetDict":
    """Loads a split as ``test``, and what may be shown as ``train``, in the lexicon's words.

    Both have ``id``, ``input`` (the sentence), ``answer``, ``copy_key``, ``constructions`` and
    ``exposure``: the training examples that hold a key word of the example.

    Args:
        cogs_corpus: ``cogs`` or ``mini``.
        cogs_lexicon: One of :data:`~lm_eval_ext.benchmarks.cogs.lexicons.LEXICONS`.
        cogs_split: ``id``, ``testlex``, ``gen`` or ``gen_small``.
        cogs_gen_revision: Of COGS's Gen: ``2020``, the paper's, or ``2022``, corrected.
        cogs_seed: For the lexicon ``fresh``, which words; others have seeds of their own.
        cogs_shape: For the lexicon ``fresh``, what the words look like.
        cogs_cover: One of :data:`COVERED`.

    Raises:
        OptionError: For a value that is not legal.
        DataError: If a file is not at hand, does not hold what it should, or a key word is in
            no training example.
    """
    from datasets import Dataset, DatasetDict

    if cogs_cover not in COVERED:
        raise OptionError(f"cogs_cover: no {cogs_cover!r}; use {' or '.join(COVERED)}")
    tested, info = load.examples(cogs_corpus, cogs_split, str(cogs_gen_revision))
    shown, train_info = _training_set(cogs_corpus)
    words = load.words_of(cogs_corpus, cogs_lexicon, cogs_seed, cogs_shape)
    exposure = exposure_of(words, shown)
    test = [
        {
            **_row(example, words, exposure),
            "type": example.type,
            "corpus": cogs_corpus,
            "split": cogs_split,
        }
        for example in tested
    ]
    train = [_row(example, words, exposure) for example in shown]
    return DatasetDict(
        {
            "test": Dataset.from_list(test, info=_joined(info, train_info)),
            "train": Dataset.from_list(train),
        }
    )


def exposure_of(items: Iterable[str], train: Iterable[Example]) -> Mapping[str, Sequence[str]]:
    """Finds for every key word the ids of the training examples that hold it.

    Raises:
        DataError: If none does.
    """
    found: dict[str, list[str]] = {item: [] for item in items}
    for example in train:
        for token in _tokens(example) & found.keys():
            found[token].append(example.id)
    if absent := [item for item, ids in found.items() if not ids]:
        raise DataError(
            f"no training example holds the key word {', '.join(absent)}; get the training set "
            "again (lm-eval-ext data fetch cogs)"
        )
    return found


def choose(
    train: Iterable[Mapping[str, Any]],
    samples: Collection[Mapping[str, Any]],
    *,
    cover: str,
    k: int,
    seed: int,
) -> Choices:
    """Gives every sample k demonstrations, the required exposure examples first.

    Choices are kept for the process, because a run asks the same samples in several lexicons.

    Args:
        train: Rows of the split ``train``.
        samples: Rows of the split ``test``.
        cover: One of :data:`COVERED`.
        k: Demonstrations per sample.
        seed: Another seed, another choice among examples that cover as much.

    Raises:
        OptionError: k is below the number of exposure examples that a sample must be shown, or
            above that of training examples.
    """
    train, samples = list(train), list(samples)
    if k > len(train):
        raise OptionError(
            f"{k} demonstrations per sample, but there are {len(train)} in training; use fewer"
        )
    key = (_digest(train, samples), cover, k, seed)
    if key not in _kept:
        _kept[key] = _choices(train, samples, cover, k, seed)
    return _kept[key]


def _digest(*splits: Iterable[Mapping[str, Any]]) -> str:
    content = [[[row[name] for name in CHOICE_COLUMNS] for row in rows] for rows in splits]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _choices(
    train: Iterable[Mapping[str, Any]],
    samples: Collection[Mapping[str, Any]],
    cover: str,
    k: int,
    seed: int,
) -> Choices:
    from tqdm import tqdm

    pool = Pool(Item(row["id"], row["copy_key"], frozenset(row["constructions"])) for row in train)
    every = frozenset(name for item in pool for name in item.features)
    items = (
        Item(
            row["id"], row["copy_key"], every if cover == TRAIN else frozenset(row["constructions"])
        )
        for row in samples
    )
    required = {row["id"]: [Group(WHY, (name,)) for name in row["exposure"]] for row in samples}
    # disable=None: a bar on terminals only.
    bar = tqdm(items, "Choosing demonstrations", total=len(samples), disable=None)
    return covering(pool, bar, k, seed, lambda item: required[item.id])


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """lm-eval's hook: scores a document as the other COGS tasks do."""
    return score.process_results({**doc, "form": doc["answer"]}, results)


def _training_set(corpus: str) -> tuple[list[Example], "DatasetInfo"]:
    if corpus == "mini":
        return mini.examples("train"), provenance.describe_embedded("cogs_mini", mini.digest())
    file = require("cogs", "train")
    found = load.read_examples(load.read(file.path), "train", str(file.path))
    return found, provenance.describe([file])


def _joined(info: "DatasetInfo", train: "DatasetInfo") -> "DatasetInfo":
    """Says where both splits come from: of two sources, the names joined by ``+``."""
    joined = info.copy()
    joined.download_checksums = {**info.download_checksums, **train.download_checksums}
    if info.dataset_name != train.dataset_name:
        joined.dataset_name = f"{info.dataset_name}+{train.dataset_name}"
        joined.config_name = f"{info.config_name[:9]}+{train.config_name[:9]}"
    return joined


def _row(
    example: Example, words: Mapping[str, str], exposure: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    required = {name for token in _tokens(example) & exposure.keys() for name in exposure[token]}
    return {
        "id": example.id,
        "input": prompt.question(example, words),
        "answer": prompt.answer(example, words),
        "copy_key": " ".join(re.findall(r"\w+", example.sentence.casefold())),
        "constructions": sorted(constructions(example.sentence, example.form)),
        "exposure": sorted(required),
    }


def _tokens(example: Example) -> set[str]:
    return {*example.sentence.split(), *example.form.split()}
