"""cogs_mini has COGS's design, and none of its words but the grammar's."""

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

# Of the grammar and the notation.
COMMON = "a the was by to that . x _ ( ) , ; * and lambda b e agent theme recipient ccomp nmod"

ALL = {split: mini.examples(split) for split in mini.ALL_SPLITS}
EVERY = [example for split in ALL.values() for example in split]
TESTED = (*ALL["testlex"], *ALL["gen"])


def test_it_is_the_same_everywhere() -> None:
    code = (
        "import hashlib; from lm_eval_ext.benchmarks.cogs import mini as m\n"
        "lines = ('\\t'.join(one) for split in m.ALL_SPLITS for one in m.examples(split))\n"
        "print(hashlib.sha256('\\n'.join(lines).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == DIGEST


GOAT, ANN, BARN = Noun("goat", "the"), Noun("Ann"), Noun("barn", "a")
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
)
def test_the_notation_is_that_of_cogs(clause: Clause, sentence: str, form: str) -> None:
    """Each case is our own sentence in COGS's notation."""
    assert render(clause) == (sentence, form)


def test_primitives_are_words_with_bound_variables() -> None:
    primitives = {one.sentence: one.form for one in ALL["train"] if one.type == "primitive"}
    assert (primitives["jackal"], primitives["Hugo"]) == ("LAMBDA a . jackal ( a )", "Hugo")
    assert [parse(primitives[verb]).binders for verb in ("carry", "yawn")] == [
        tuple("abe"),
        tuple("ae"),
    ]


def test_sizes_and_types() -> None:
    assert [len(ALL[split]) for split in mini.SIZES] == [2029, 200, 200]
    for split, per_type in (("testlex", 35), ("gen", 50)):
        counts = Counter(example.type for example in ALL[split])
        assert counts == dict.fromkeys(words()[split], per_type)
    assert len({example.sentence for example in EVERY}) == len(EVERY)


def test_each_key_word_has_one_exposure_example() -> None:
    counts = Counter(word for one in ALL["train"] for word in one.sentence.split())
    heads = ("walrus", "falcon", "jackal", "Petra", "Quentin", "polished", "tickled")
    assert set(mini.items()) == {*heads, "polish", "tickle"}
    assert [counts[word] for word in heads] == [1] * 7
    types = Counter(one.type for one in ALL["train"])
    assert [types[f"exposure_example_{name}"] for name in words()["testlex"]] == [1] * 6
    for example in (*ALL["dev"], *ALL["id"]):
        assert not set(mini.items()) & set(example.sentence.split())


def roles_of(word: str, form: str) -> set[str]:
    """The roles that a name, or what a noun names, plays in a form."""
    atoms = parse(form).atoms
    own = {word} | {atom.terms[0] for atom in atoms if atom.predicate == word}
    return {atom.predicate.split()[-1] for atom in atoms if atom.terms[-1] in own} - {word}


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
    for example in (one for one in TESTED if one.type == type_):
        if word.endswith("ed"):
            assert f" {word} " in example.sentence
            assert (f" was {word} " in example.sentence) == bool(role)
        else:
            assert roles_of(word, example.form) == {role}, example


def modified_subject(example: Example) -> bool:
    atoms = parse(example.form).atoms
    modified = {one.terms[0] for one in atoms if " nmod " in one.predicate}
    return any(one.terms[1] in modified for one in atoms if one.predicate.endswith(" agent"))


def test_structures_of_generalization_are_new() -> None:
    trained = [one for one in ALL["train"] if one.type != "primitive"]
    for type_, mark in (("cp_recursion", "ccomp"), ("pp_recursion", "nmod")):
        assert max(one.form.split().count(mark) for one in trained) == 2
        depths = {one.form.split().count(mark) for one in ALL["gen"] if one.type == type_}
        assert depths == {3, 4, 5}
    assert not any(map(modified_subject, trained))
    assert all(modified_subject(one) for one in ALL["gen"] if one.type == "obj_pp_to_subj_pp")


def test_words_are_our_own(shared_data: Path) -> None:
    def vocabulary(texts: Any) -> set[str]:
        return {word.lower() for text in texts for word in text.split() if not word.isdigit()}

    files = (shared_data / "cogs").glob("*.tsv")
    theirs = vocabulary(file.read_text() for file in files)
    ours = vocabulary(f"{one.sentence} {one.form}" for one in EVERY)
    assert ours & theirs <= set(COMMON.split())


def test_writing_it_as_files(tmp_path: Path, cli: Callable[..., Any]) -> None:
    out = tmp_path / "deep" / "mini"
    write_mini(out, Style(corpus="mini"))
    for split, (_, name) in SOURCES.items():
        lines = (out / f"{name}.tsv").read_text().splitlines()
        assert lines == [f"{e.sentence}\t{e.form}\t{e.type}" for e in ALL[split]]
    for target, status in ((out, 1), (tmp_path / "t", 0)):
        done = cli("cogs", "substitute", "-o", str(target), "--lexicon", "tokens")
        assert (done.returncode, "is not empty" in done.stderr) == (status, bool(status))
    text = {*(tmp_path / "t" / "gen.tsv").read_text().split()}
    assert text >= {f"[w_{i}]" for i in range(9)}
    assert text.isdisjoint(mini.items())
