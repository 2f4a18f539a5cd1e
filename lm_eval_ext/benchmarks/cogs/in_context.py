"""COGS for models without fine-tuning: demonstrations from the training set.

Each sample gets the exposure example of its key word, and training examples that together cover
the constructions. The choice depends on ids, unmodified words and constructions only, so a sample
has the same demonstrations under every lexicon.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.cogs import load, mini, prompt, score
from lm_eval_ext.benchmarks.cogs.forms import VARIABLE, Term, parse
from lm_eval_ext.benchmarks.cogs.lexicons import UNMODIFIED
from lm_eval_ext.benchmarks.cogs.records import Example
from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import Choices, Group, Item, Pool, covering
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.harness.metrics import Row

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

TRAIN, SAMPLE = "train", "sample"
COVERED = (TRAIN, SAMPLE)
"""The constructions to cover: those of the whole training set, which reveal nothing about the
answer, or those of the sample's own logical form, which reveal its structure."""

CHOICE_COLUMNS = ("id", "copy_key", "constructions", "exposure")
"""The columns that a choice depends on; the same under every lexicon."""

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
    fresh: int | None = None,
) -> "DatasetDict":
    """Loads a split as ``test`` and the training set as ``train``, with the lexicon's words.

    ``cogs_cover`` is one of :data:`COVERED`; the other arguments are those of
    :func:`~lm_eval_ext.benchmarks.cogs.load.dataset`.

    Raises:
        OptionError: A value is invalid.
        DataError: A file is unavailable or invalid, or no training example has a key word.
    """
    from datasets import Dataset, DatasetDict

    if cogs_cover not in COVERED:
        raise OptionError(f"cogs_cover: no {cogs_cover!r}; use {' or '.join(COVERED)}")
    tested, info = load.examples(cogs_corpus, cogs_split, str(cogs_gen_revision))
    shown, train_info = _training_set(cogs_corpus)
    words = load.words_of(cogs_corpus, cogs_lexicon, cogs_seed, cogs_shape, fresh)
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
    """By key word, the ids of its exposure examples: the training examples that contain it.

    Raises:
        DataError: A key word has none.
    """
    found: dict[str, list[str]] = {item: [] for item in items}
    for example in train:
        for token in _tokens(example) & found.keys():
            found[token].append(example.id)
    if absent := [item for item, ids in found.items() if not ids]:
        raise DataError(
            f"no training example has the key word {', '.join(absent)}; fetch the training set "
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
    """Chooses k demonstrations per sample, the exposure examples of its key word first.

    ``train`` and ``samples`` are rows of :func:`dataset`; ``cover`` is one of :data:`COVERED`; the
    seed decides between examples that cover equally many constructions. Choices are cached in
    memory, since a run can ask the same samples under several lexicons.

    Raises:
        OptionError: k is below the number of a sample's exposure examples, or above the number
            of training examples.
    """
    from tqdm import tqdm

    train, samples = list(train), list(samples)
    if k > len(train):
        raise OptionError(
            f"{k} demonstrations per sample, but only {len(train)} training examples; use fewer"
        )
    columns = [
        [[row[name] for name in CHOICE_COLUMNS] for row in rows] for rows in (train, samples)
    ]
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()
    key = (digest, cover, k, seed)
    if key in _kept:
        return _kept[key]
    pool = Pool(Item(row["id"], row["copy_key"], frozenset(row["constructions"])) for row in train)
    every = frozenset(name for item in pool for name in item.features)
    items = (
        Item(
            row["id"], row["copy_key"], every if cover == TRAIN else frozenset(row["constructions"])
        )
        for row in samples
    )
    required = {row["id"]: [Group(WHY, (name,)) for name in row["exposure"]] for row in samples}
    # disable=None: no progress bar unless on a terminal.
    bar = tqdm(items, "Choosing demonstrations", total=len(samples), disable=None)
    _kept[key] = covering(pool, bar, k, seed, lambda item: required[item.id])
    return _kept[key]


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> list[Row]:
    """Scores a document like the other COGS tasks."""
    return score.process_results({**doc, "form": doc["answer"]}, results)


def _training_set(corpus: str) -> tuple[Sequence[Example], "DatasetInfo"]:
    if corpus == "mini":
        return mini.examples("train"), provenance.describe_embedded("cogs_mini", mini.digest())
    file = require("cogs", "train")
    found = load.read_examples(load.read(file.path), "train", str(file.path))
    return found, provenance.describe([file])


def _joined(info: "DatasetInfo", train: "DatasetInfo") -> "DatasetInfo":
    """The provenance of both splits; two sources are joined by ``+``."""
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
        **_same_in_every_lexicon(example.sentence, example.form),
        "exposure": sorted(required),
    }


@cache
def _same_in_every_lexicon(sentence: str, form: str) -> dict[str, Any]:
    """Columns that take most of a dataset's time, kept since a run often asks all lexicons."""
    return {
        "copy_key": " ".join(re.findall(r"\w+", sentence.casefold())),
        "constructions": sorted(constructions(sentence, form)),
    }


def _tokens(example: Example) -> set[str]:
    return {*example.sentence.split(), *example.form.split()}


MODIFIER, CLAUSE = "nmod", "ccomp"
"""Constructions that nest: places as modifiers of nouns, and clauses in clauses."""

_NOUN, _ROLE, _MODIFIER = 1, 2, 3
"""Lengths of predicates: noun; lemma and role; noun, ``nmod`` and preposition."""


def constructions(sentence: str, form: str) -> frozenset[str]:
    """The constructions of an example, read from its logical form.

    - Each verb's *frame*, its roles in the order of the form: ``agent theme``, or ``was theme
      agent`` in the passive.
    - Each noun phrase's *slot* and kind: ``subject name``, ``theme the``, ``theme a``, ``theme
      modified`` (by a place). The slot is the role; the first one of a frame is the subject.
    - Each modifier's preposition: ``nmod in``.
    - Each level of nested modifiers and clauses: ``ccomp 1``, ``ccomp 2``.

    A primitive (a single word) has none. The names contain no words except the grammar's own
    (was, the, a, prepositions), so they are the same under every lexicon.

    Args:
        sentence: The number of a variable is the position of its word in the sentence.
        form: The logical form.

    Raises:
        NotAFormError: The form is not a logical form.
    """
    read = parse(form)
    if read.name is not None or read.binders:
        return frozenset()
    found: set[str] = set()
    articles: dict[Term, str] = {}
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
        elif len(atom.predicate) == _NOUN:
            articles[atom.terms[0]] = "the" if atom.definite else "a"
    for verb, arguments in frames.items():
        kind, text = verb
        position = int(text.removeprefix("x_")) if kind == VARIABLE else 0
        voice = "was " if tokens[position - 1] == "was" else ""
        found.add(voice + " ".join(role for role, _ in arguments))
        for number, (role, term) in enumerate(arguments):
            if term in frames:
                continue
            slot = "subject" if number == 0 else role
            found.add(f"{slot} {articles.get(term, 'name')}")
            if term in nested[MODIFIER]:
                found.add(f"{slot} modified")
    for what, inner in nested.items():
        found |= {f"{what} {level}" for level in range(1, _depth(inner) + 1)}
    return frozenset(found)


def _depth(inner: Mapping[Term, Term]) -> int:
    """The number of nested levels."""
    deepest = 0
    for outermost in inner.keys() - set(inner.values()):
        level, term = 0, outermost
        while term in inner:
            level, term = level + 1, inner[term]
        deepest = max(deepest, level)
    return deepest
