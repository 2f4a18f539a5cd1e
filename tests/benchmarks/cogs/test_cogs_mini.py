"""cogs_mini has COGS's design, and none of its words but the grammar's."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.benchmarks.cogs.load import MINI_FILES, Style, write_mini
from lm_eval_ext.benchmarks.cogs.mini import Clause, Noun, render, words
from lm_eval_ext.benchmarks.cogs.records import STRUCTURAL_TYPES
from lm_eval_ext.errors import OptionError
from lm_eval_ext.logical_forms import parse

DIGEST = "dc6374d0dcc8765e0b48ac9451dd26cbc2451c2acb3ac48dcd76774bdc0cd5f6"
"""A change here makes scores incomparable: raise the task's version, then renew this."""

GRAMMATICAL = {"a", "the", "was", "by", "to", "that", "."}
NOTATION = {
    "x", "_", "(", ")", ",", ".", ";", "*", "AND", "LAMBDA", "a", "b", "e",
    "agent", "theme", "recipient", "ccomp", "nmod",
}  # fmt: skip

ALL = {split: mini.examples(split) for split in mini.ALL_SPLITS}


def test_it_is_the_same_everywhere() -> None:
    assert mini.digest() == DIGEST
    code = "from lm_eval_ext.benchmarks.cogs import mini; print(mini.digest())"
    environment = {"PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == DIGEST


def test_the_notation_is_that_of_cogs() -> None:
    """Each case is our own sentence in COGS's notation."""
    goat, ann, barn = Noun("goat", "the"), Noun("Ann"), Noun("barn", "a")
    cases = [
        (
            Clause(("saw", "see"), goat, (("theme", "", ann),)),
            "The goat saw Ann .",
            "* goat ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ann )",
        ),
        (
            Clause(("seen", "see"), barn, (("agent", "by", goat),), passive=True),
            "A barn was seen by the goat .",
            "* goat ( x _ 6 ) ; barn ( x _ 1 ) AND see . theme ( x _ 3 , x _ 1 ) "
            "AND see . agent ( x _ 3 , x _ 6 )",
        ),
        (
            Clause(
                ("said", "say"), ann,
                (("ccomp", "that", Clause(("slept", "sleep"), Noun("goat", "a", "near", barn))),),
            ),
            "Ann said that a goat near a barn slept .",
            "say . agent ( x _ 1 , Ann ) AND say . ccomp ( x _ 1 , x _ 8 ) AND goat ( x _ 4 ) "
            "AND goat . nmod . near ( x _ 4 , x _ 7 ) AND barn ( x _ 7 ) "
            "AND sleep . agent ( x _ 8 , x _ 4 )",
        ),
    ]  # fmt: skip
    for clause, sentence, form in cases:
        assert render(clause) == (sentence, form)
    primitives = {one.sentence: one.form for one in ALL["train"] if one.type == "primitive"}
    assert primitives["jackal"] == "LAMBDA a . jackal ( a )"
    assert primitives["Hugo"] == "Hugo"
    assert parse(primitives["carry"]).binders == ("a", "b", "e")
    assert parse(primitives["yawn"]).binders == ("a", "e")


def test_sizes_and_types() -> None:
    assert len(ALL["id"]) == 200
    assert len(ALL["dev"]) == 200
    assert 2000 <= len(ALL["train"]) < 2100
    for split, per_type in (("testlex", 35), ("gen", 50)):
        counts = Counter(example.type for example in ALL[split])
        assert counts == dict.fromkeys(words()[split], per_type)
    assert len(STRUCTURAL_TYPES & {example.type for example in ALL["gen"]}) == 3
    sentences = [example.sentence for split in ALL.values() for example in split]
    assert len(sentences) == len(set(sentences))


def test_every_form_is_read_and_variables_are_places() -> None:
    for example in (example for split in ALL.values() for example in split):
        form = parse(example.form)
        tokens = example.sentence.split()
        if example.type == "primitive":
            continue
        for atom in form.atoms:
            written = tokens[int(atom.terms[0].removeprefix("x _ "))]
            assert written[:3].lower() == atom.predicate[:3].lower(), (example, atom)


def test_each_key_word_has_one_exposure_example() -> None:
    sentences = [example.sentence.split() for example in ALL["train"]]
    heads = ("walrus", "falcon", "jackal", "Petra", "Quentin", "polished", "tickled")
    assert set(mini.items()) == {*heads, "polish", "tickle"}
    for word in heads:
        assert sum(word in tokens for tokens in sentences) == 1, word
    types = Counter(e.type for e in ALL["train"] if e.type.startswith("exposure"))
    assert types == {f"exposure_example_{name}": 1 for name in words()["testlex"]}
    for split in ("dev", "id"):
        assert not any(set(mini.items()) & set(e.sentence.split()) for e in ALL[split])


def roles_of(word: str, form: str) -> set[str]:
    """The roles that a name, or what a noun names, plays in a form."""
    parsed = parse(form)
    own = {word} | {atom.terms[0] for atom in parsed.atoms if atom.predicate == word}
    return {
        atom.predicate.split()[-1]
        for atom in parsed.atoms
        if len(atom.terms) == 2 and atom.terms[1] in own
    }


def test_generalization_puts_key_words_where_training_did_not() -> None:
    seen = {
        "subj_common": ("walrus", "agent"), "subj_proper": ("Petra", "agent"),
        "obj_common": ("falcon", "theme"), "obj_proper": ("Quentin", "theme"),
    }  # fmt: skip
    new = {
        "subj_to_obj_common": ("walrus", "theme"),
        "subj_to_obj_proper": ("Petra", "theme"),
        "obj_to_subj_common": ("falcon", "agent"),
        "obj_to_subj_proper": ("Quentin", "agent"),
        "prim_to_subj_common": ("jackal", "agent"),
    }
    for table, split in ((seen, "testlex"), (new, "gen")):
        for type_, (word, role) in table.items():
            for example in (example for example in ALL[split] if example.type == type_):
                assert roles_of(word, example.form) == {role}, example
    verbs = {
        "passive": "was tickled", "active": "polished", "active_to_passive": "was polished",
        "passive_to_active": "tickled",
    }  # fmt: skip
    for example in (*ALL["testlex"], *ALL["gen"]):
        if verb := verbs.get(example.type):
            assert f" {verb} " in example.sentence, example
            assert ("was" in verb) == (f" was {verb.split()[-1]}" in example.sentence), example


def depth(example: Any, mark: str) -> int:
    return int(Counter(example.form.split())[mark])


def test_structures_of_generalization_are_new() -> None:
    trained = [e for e in ALL["train"] if e.type != "primitive"]
    assert max(depth(e, "ccomp") for e in trained) == 2
    assert max(depth(e, "nmod") for e in trained) == 2
    for example in ALL["gen"]:
        if example.type == "cp_recursion":
            assert depth(example, "ccomp") in (3, 4, 5)
        if example.type == "pp_recursion":
            assert depth(example, "nmod") in (3, 4, 5)

    def modified_subject(example: Any) -> bool:
        parsed = parse(example.form)
        modified = {a.terms[0] for a in parsed.atoms if " nmod " in a.predicate}
        subjects = {a.terms[1] for a in parsed.atoms if a.predicate.endswith(" agent")}
        return bool(modified & subjects)

    assert not any(modified_subject(e) for e in trained)
    assert all(modified_subject(e) for e in ALL["gen"] if e.type == "obj_pp_to_subj_pp")


def test_words_are_our_own(shared_data: Path) -> None:
    def vocabulary(lines: list[str]) -> set[str]:
        return {w.lower() for line in lines for text in line.split("\t")[:2] for w in text.split()}

    theirs = set().union(
        *(vocabulary(f.read_text().splitlines()) for f in (shared_data / "cogs").glob("*.tsv"))
    )
    ours = vocabulary([f"{e.sentence}\t{e.form}" for split in ALL.values() for e in split])
    shared = {word for word in ours & theirs if not word.isdigit()}
    assert shared <= GRAMMATICAL | {mark.lower() for mark in NOTATION}


def test_writing_it_as_files(tmp_path: Path, cli: Callable[..., Any]) -> None:
    out = tmp_path / "deep" / "mini"
    write_mini(out, Style(corpus="mini"))
    for split, name in MINI_FILES.items():
        lines = (out / f"{name}.tsv").read_text().splitlines()
        assert lines == [f"{e.sentence}\t{e.form}\t{e.type}" for e in ALL[split]]
    with pytest.raises(OptionError, match="is not empty"):
        write_mini(out, Style(corpus="mini"))
    done = cli("cogs", "substitute", "-o", str(tmp_path / "t"), "--lexicon", "tokens")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "t" / "gen.tsv").read_text().split()
    assert not set(mini.items()) & set(text)
    assert {f"[w_{i}]" for i in range(len(mini.items()))} <= set(text)
