"""cogs_mini has COGS's design, and none of its words but the grammar's."""

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.benchmarks.cogs.load import SOURCES, Style, write_mini
from lm_eval_ext.benchmarks.cogs.mini import Clause, Noun, render, words
from lm_eval_ext.benchmarks.cogs.records import Example
from lm_eval_ext.logical_forms import parse

DIGEST = "dc6374d0dcc8765e0b48ac9451dd26cbc2451c2acb3ac48dcd76774bdc0cd5f6"
"""A change here makes scores incomparable: raise the task's version, then renew this."""

GRAMMAR_WORDS = (
    "a the was by to that . x _ ( ) , ; * and lambda b e agent theme recipient ccomp nmod"
)
"""Words of the grammar and signs of the notation, which both datasets have."""

BY_SPLIT = {split: mini.examples(split) for split in mini.ALL_SPLITS}
ALL_EXAMPLES = list(itertools.chain(*BY_SPLIT.values()))
TESTED = (*BY_SPLIT["testlex"], *BY_SPLIT["gen"])

PRINT_DIGEST = r"""
import hashlib
from lm_eval_ext.benchmarks.cogs import mini

lines = []
for split in mini.ALL_SPLITS:
    for example in mini.examples(split):
        lines.append("\t".join(example))
print(hashlib.sha256("\n".join(lines).encode()).hexdigest())
"""


def test_examples_are_the_same_everywhere() -> None:
    """Another process, with other hashes of texts, makes the same examples."""
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == DIGEST


GOAT = Noun("goat", "the")
ANN = Noun("Ann")
BARN = Noun("barn", "a")
SLEEPS = Clause(("slept", "sleep"), Noun("goat", "a", "near", BARN))


@pytest.mark.parametrize(
    ("clause", "sentence", "form"),
    [
        (
            Clause(("saw", "see"), GOAT, (("theme", "", ANN),)),
            "The goat saw Ann .",
            "* goat ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ann )",
        ),
        (
            Clause(("seen", "see"), BARN, (("agent", "by", GOAT),), passive=True),
            "A barn was seen by the goat .",
            "* goat ( x _ 6 ) ; barn ( x _ 1 ) AND see . theme ( x _ 3 , x _ 1 ) "
            "AND see . agent ( x _ 3 , x _ 6 )",
        ),
        (
            Clause(("said", "say"), ANN, (("ccomp", "that", SLEEPS),)),
            "Ann said that a goat near a barn slept .",
            "say . agent ( x _ 1 , Ann ) AND say . ccomp ( x _ 1 , x _ 8 ) AND goat ( x _ 4 ) "
            "AND goat . nmod . near ( x _ 4 , x _ 7 ) AND barn ( x _ 7 ) "
            "AND sleep . agent ( x _ 8 , x _ 4 )",
        ),
    ],
    ids=["active", "passive", "clause in a clause"],
)
def test_the_notation_is_that_of_cogs(clause: Clause, sentence: str, form: str) -> None:
    """Each case is our own sentence in COGS's notation."""
    assert render(clause) == (sentence, form)


def test_primitives_are_words_with_bound_variables() -> None:
    """A noun has one bound variable, a verb one more for each role; a name has none."""
    primitives = {}
    for example in BY_SPLIT["train"]:
        if example.type == "primitive":
            primitives[example.sentence] = example.form
    assert primitives["jackal"] == "LAMBDA a . jackal ( a )"
    assert primitives["Hugo"] == "Hugo"
    assert parse(primitives["carry"]).binders == ("a", "b", "e")
    assert parse(primitives["yawn"]).binders == ("a", "e")


def test_the_splits_have_the_documented_sizes() -> None:
    """No sentence comes twice, in whatever split."""
    sizes = {split: len(BY_SPLIT[split]) for split in mini.SIZES}
    assert sizes == {"train": 2029, "dev": 200, "id": 200}
    assert len({example.sentence for example in ALL_EXAMPLES}) == len(ALL_EXAMPLES)


@pytest.mark.parametrize(("split", "per_type"), [("testlex", 35), ("gen", 50)])
def test_all_types_have_the_same_number_of_examples(split: str, per_type: int) -> None:
    """The splits for tests have all their types, equally often."""
    counts = Counter(example.type for example in BY_SPLIT[split])
    assert counts == dict.fromkeys(words()[split], per_type)


def test_each_key_word_has_one_exposure_example() -> None:
    """Each key word comes once in training, and never in the sets without generalization."""
    word_counts: Counter[str] = Counter()
    for example in BY_SPLIT["train"]:
        word_counts.update(example.sentence.split())
    trained_forms = ("walrus", "falcon", "jackal", "Petra", "Quentin", "polished", "tickled")
    assert set(mini.items()) == {*trained_forms, "polish", "tickle"}
    for word in trained_forms:
        assert word_counts[word] == 1, word
    type_counts = Counter(example.type for example in BY_SPLIT["train"])
    tested_types = words()["testlex"]
    assert len(tested_types) == 6
    for name in tested_types:
        assert type_counts[f"exposure_example_{name}"] == 1, name
    for example in (*BY_SPLIT["dev"], *BY_SPLIT["id"]):
        assert not set(mini.items()) & set(example.sentence.split()), example


def roles_of(word: str, form: str) -> set[str]:
    """Return the roles that a name, or a noun's referent, plays in a form."""
    atoms = parse(form).atoms
    referents = {word}
    for atom in atoms:
        if atom.predicate == word:
            referents.add(atom.terms[0])
    roles = set()
    for atom in atoms:
        if atom.terms[-1] in referents:
            roles.add(atom.predicate.split()[-1])
    return roles - {word}


@pytest.mark.parametrize(
    ("type_", "word", "role"),
    [
        # In training and Test-Lex.
        ("subj_common", "walrus", "agent"),
        ("subj_proper", "Petra", "agent"),
        ("obj_common", "falcon", "theme"),
        ("obj_proper", "Quentin", "theme"),
        ("passive", "tickled", "was"),
        ("active", "polished", ""),
        # Elsewhere in Gen.
        ("subj_to_obj_common", "walrus", "theme"),
        ("subj_to_obj_proper", "Petra", "theme"),
        ("obj_to_subj_common", "falcon", "agent"),
        ("obj_to_subj_proper", "Quentin", "agent"),
        ("prim_to_subj_common", "jackal", "agent"),
        ("active_to_passive", "polished", "was"),
        ("passive_to_active", "tickled", ""),
    ],
)
def test_generalization_puts_key_words_where_training_did_not(
    type_: str, word: str, role: str
) -> None:
    """A key word plays one role in training and Test-Lex, and another one elsewhere in Gen."""
    examples = [example for example in TESTED if example.type == type_]
    assert examples
    for example in examples:
        if word.endswith("ed"):
            assert f" {word} " in example.sentence, example
            assert (f" was {word} " in example.sentence) == bool(role), example
        else:
            assert roles_of(word, example.form) == {role}, example


def has_modified_subject(example: Example) -> bool:
    """Return whether something is the agent of a verb and has a modifier."""
    modified = set()
    agents = set()
    for atom in parse(example.form).atoms:
        if " nmod " in atom.predicate:
            modified.add(atom.terms[0])
        if atom.predicate.endswith(" agent"):
            agents.add(atom.terms[1])
    return bool(agents & modified)


TRAINED_SENTENCES = [example for example in BY_SPLIT["train"] if example.type != "primitive"]


@pytest.mark.parametrize(("type_", "mark"), [("cp_recursion", "ccomp"), ("pp_recursion", "nmod")])
def test_generalization_nests_deeper_than_training(type_: str, mark: str) -> None:
    """Two levels are trained, and three to five tested."""
    trained_depths = {example.form.split().count(mark) for example in TRAINED_SENTENCES}
    assert max(trained_depths) == 2
    depths = set()
    for example in BY_SPLIT["gen"]:
        if example.type == type_:
            depths.add(example.form.split().count(mark))
    assert depths == {3, 4, 5}


def test_only_generalization_modifies_subjects() -> None:
    """No trained subject has a modifier, and all of the type for it have one."""
    assert not any(map(has_modified_subject, TRAINED_SENTENCES))
    for example in BY_SPLIT["gen"]:
        if example.type == "obj_pp_to_subj_pp":
            assert has_modified_subject(example), example


def vocabulary(text: str) -> set[str]:
    """Return the words of a text in lower case, without numbers."""
    return {word.lower() for word in text.split() if not word.isdigit()}


def test_no_word_but_the_grammars_is_of_cogs(shared_data: Path) -> None:
    """Sentences and forms are made of our own words."""
    cogs_words = set()
    for file in (shared_data / "cogs").glob("*.tsv"):
        cogs_words |= vocabulary(file.read_text())
    mini_words = set()
    for example in ALL_EXAMPLES:
        mini_words |= vocabulary(f"{example.sentence} {example.form}")
    assert mini_words & cogs_words <= set(GRAMMAR_WORDS.split())


def test_files_have_the_format_of_cogs(tmp_path: Path) -> None:
    """They are written to a folder that is made."""
    out = tmp_path / "deep" / "mini"
    write_mini(out, Style(corpus="mini"))
    for split, (_, name) in SOURCES.items():
        lines = (out / f"{name}.tsv").read_text().splitlines()
        expected = []
        for example in BY_SPLIT[split]:
            expected.append(f"{example.sentence}\t{example.form}\t{example.type}")
        assert lines == expected


def test_the_command_writes_it_with_another_lexicon(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """No key word is left; a folder with files is refused."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("")
    refused = cli("cogs", "substitute", "-o", str(full), "--lexicon", "tokens")
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
    target = tmp_path / "target"
    written = cli("cogs", "substitute", "-o", str(target), "--lexicon", "tokens")
    assert written.returncode == 0
    assert "is not empty" not in written.stderr
    words_in_gen = set((target / "gen.tsv").read_text().split())
    assert words_in_gen >= {f"[w_{number}]" for number in range(9)}
    assert words_in_gen.isdisjoint(mini.items())
