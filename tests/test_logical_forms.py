"""Logical forms: a table of cases, properties on forms of the real files, hostile texts."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.logical_forms import NotAFormError, equivalent, normalise, parse

pytestmark = pytest.mark.slow

DOG = "* dog ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ann )"

EQUIVALENT = [
    (DOG, DOG),
    ("* dog ( x _ 7 ) ; see . theme ( x _ 9 , Ann ) AND see . agent ( x _ 9 , x _ 7 )", DOG),
    ("  * dog ( x _ 1 ) ;\tsee . agent ( x _ 2 , x _ 1 )\nAND see . theme ( x _ 2 , Ann ) ", DOG),
    (
        "* cat ( x _ 4 ) ; * dog ( x _ 1 ) ; like . agent ( x _ 2 , x _ 1 )",
        "* dog ( x _ 3 ) ; * cat ( x _ 1 ) ; like . agent ( x _ 2 , x _ 3 )",
    ),
    ("Paula", "Paula"),
    ("LAMBDA c . shark ( c )", "LAMBDA a . shark ( a )"),
    (
        "LAMBDA u . LAMBDA v . LAMBDA w . bless . theme ( w , u ) AND bless . agent ( w , v )",
        "LAMBDA a . LAMBDA b . LAMBDA e . bless . agent ( e , b ) AND bless . theme ( e , a )",
    ),
    # Two dogs that nothing tells apart, and a third thing that refers to one of them.
    (
        "dog ( x _ 1 ) AND dog ( x _ 2 ) AND cat . nmod . on ( x _ 3 , x _ 2 )",
        "dog ( x _ 1 ) AND dog ( x _ 2 ) AND cat . nmod . on ( x _ 3 , x _ 1 )",
    ),
    ("say . ccomp ( x _ 1 , x _ 1 )", "say . ccomp ( x _ 5 , x _ 5 )"),
]

DIFFERENT = [
    ("* cat ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ann )", DOG),
    ("dog ( x _ 1 ) AND see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ann )", DOG),
    ("* dog ( x _ 1 ) ; see . theme ( x _ 2 , x _ 1 ) AND see . agent ( x _ 2 , Ann )", DOG),
    ("* dog ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 3 , Ann )", DOG),
    ("* dog ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , ann )", DOG),
    ("* dog ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 )", DOG),
    (f"{DOG} AND see . theme ( x _ 2 , Ann )", DOG),
    ("Lina", "Paula"),
    ("LAMBDA a . shark ( b )", "LAMBDA a . shark ( a )"),
    (
        "LAMBDA b . LAMBDA a . LAMBDA e . bless . agent ( e , b ) AND bless . theme ( e , a )",
        "LAMBDA a . LAMBDA b . LAMBDA e . bless . agent ( e , b ) AND bless . theme ( e , a )",
    ),
    ("say . ccomp ( x _ 1 , x _ 2 )", "say . ccomp ( x _ 5 , x _ 5 )"),
    # A bound variable is not interchangeable with a free one.
    ("LAMBDA a . like ( a , x _ 1 )", "LAMBDA a . like ( x _ 1 , a )"),
    ("LAMBDA a . LAMBDA b . like ( b , x _ 1 ) AND on ( a , a )",
     "LAMBDA a . LAMBDA b . like ( x _ 1 , b ) AND on ( a , a )"),
    # Two pairs that are each indistinguishable: p and q in parallel, or in a ring of four.
    ("p ( x _ 1 , x _ 2 ) AND p ( x _ 3 , x _ 4 ) AND q ( x _ 1 , x _ 2 ) AND q ( x _ 3 , x _ 4 )",
     "p ( x _ 1 , x _ 2 ) AND p ( x _ 3 , x _ 4 ) AND q ( x _ 1 , x _ 4 ) AND q ( x _ 3 , x _ 2 )"),
    # The same counts everywhere, another wiring: one ring of six, two rings of three.
    (
        " AND ".join(f"on ( x _ {i} , x _ {(i + 1) % 6} )" for i in range(6)),
        " AND ".join(f"on ( x _ {i} , x _ {i // 3 * 3 + (i + 1) % 3} )" for i in range(6)),
    ),
]  # fmt: skip

NO_FORMS = [
    "", " ", "AND", ".", "_", "dog ( _ )",
    "dog (", "dog ( )", "dog ( x _ )", "dog ( x _ 1", "( x _ 1 )",
    "dog ( x _ 1 ) AND", "* dog ( x _ 1 ) ;", "* dog ( x _ 1 )",
    "* dog ( x _ 1 ) AND cat ( x _ 2 )", "dog ( x _ 1 ) ; cat ( x _ 2 )", "dog . ( x _ 1 )",
    ". dog ( x _ 1 )", "LAMBDA a shark ( a )", "LAMBDA", "LAMBDA a .",
    "LAMBDA a . LAMBDA a . shark ( a )", "dog ( x _ 1 , )", "dog ( , x _ 1 )",
    "dog ( x _ 1 ) cat ( x _ 2 )", "I cannot answer this.", "dog(x_1)",
    "dog ( x _ 1 ) AND AND cat ( x _ 2 )",
    "dog ( x _ \u0661 )",  # a digit, but not an ASCII one
]  # fmt: skip


@pytest.mark.parametrize(("form", "variant"), EQUIVALENT)
def test_variants_of_a_form_are_equivalent(form: str, variant: str) -> None:
    assert equivalent(form, variant)
    assert equivalent(variant, form)


@pytest.mark.parametrize(("form", "variant"), DIFFERENT)
def test_other_forms_are_not_equivalent(form: str, variant: str) -> None:
    assert not equivalent(form, variant)
    assert not equivalent(variant, form)


@pytest.mark.parametrize("text", NO_FORMS)
def test_a_text_that_is_no_form_is_wrong_and_no_exception(text: str) -> None:
    with pytest.raises(NotAFormError):
        parse(text)
    assert equivalent(text, DOG) is False


@given(st.text() | st.lists(st.sampled_from(DOG.split()), max_size=40).map(" ".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert equivalent(text, DOG) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "( " * 200_000,
        "LAMBDA a . " * 200_000,
        "dog . " * 200_000 + "( x _ 1 )",
        "dog ( x _ 1 " + ", x _ 2 " * 200_000 + ")",
        " AND ".join(f"dog ( x _ {i} )" for i in range(100_000)),
        "* dog ( x _ 1 ) ; " * 100_000,
        "x" * 1_000_000,
        ("\t" * 1000 + ".") * 1000,
        "[w_1" * 250_000,
        # As many conjuncts as the other form, but of another size.
        DOG.replace("x _ 1", " , ".join(f"x _ {i}" for i in range(60_000))),
        DOG.replace("dog ( x _ 1 )", f"dog ( x _ {'9' * 900_000} )"),
        "\ud800" * 1000,
    ],
    ids=range(12),
)
def test_length_and_depth_cannot_hurt(text: str) -> None:
    """Each is read in a second; a cost that is not linear would take hours."""
    assert equivalent(normalise(text), DOG) is False


def test_symmetric_forms_cannot_hurt() -> None:
    """Many variables that nothing tells apart: the worst case for finding a renaming."""
    same = " AND ".join(f"dog ( x _ {i} )" for i in range(40))
    assert equivalent(same, same)
    ring = " AND ".join(f"on ( x _ {i} , x _ {(i + 1) % 30} )" for i in range(30))
    halves = " AND ".join(f"on ( x _ {i} , x _ {i // 15 * 15 + (i + 1) % 15} )" for i in range(30))
    assert equivalent(ring, ring)
    assert not equivalent(ring, halves)


@given(st.text(alphabet="ab _x1().,;*[w]\n\t"))
def test_whitespace_is_normalised_and_nothing_else(text: str) -> None:
    assert normalise("  a\t b\n\nc ") == "a b c"
    assert normalise("*a(b,[w_1]).c;") == "* a ( b , [w_1] ) . c ;"
    assert "".join(normalise(text).split()) == "".join(text.split())
    assert normalise(normalise(text)) == normalise(text)


@pytest.fixture(scope="module")
def forms(shared_data: Path) -> list[str]:
    lines = (shared_data / "cogs/gen.tsv").read_text().splitlines()
    train = (shared_data / "cogs/train.tsv").read_text().splitlines()
    primitives = [line for line in train if "\tprimitive" in line]
    return [line.split("\t")[1] for line in lines[::21] + primitives]


def shuffled(form: str, rng: random.Random) -> str:
    """Return the form with its conjuncts in another order and other numbers."""
    definites, _, body = form.rpartition(" ; ")
    definite_parts, atoms = (definites.split(" ; ") if definites else []), body.split(" AND ")
    rng.shuffle(definite_parts)
    rng.shuffle(atoms)
    names = {str(i): str(n) for i, n in enumerate(rng.sample(range(500), 100))}
    tokens = "".join(f"{definite} ; " for definite in definite_parts) + " AND ".join(atoms)
    renamed = tokens.split()
    for i in range(2, len(renamed)):
        if renamed[i - 2 : i] == ["x", "_"]:
            renamed[i] = names[renamed[i]]
    return " ".join(renamed)


def test_shuffled_and_renamed_is_equivalent(forms: list[str]) -> None:
    rng = random.Random(0)
    for form in forms:
        assert equivalent(form if "LAMBDA" in form else shuffled(form, rng), form), form


def test_one_change_is_noticed(forms: list[str]) -> None:
    """A role, an argument or a definiteness mark: whichever the form has."""
    rng = random.Random(0)
    changed = 0
    for form in forms:
        tokens = form.split()
        for old, new in (("agent", "theme"), ("theme", "recipient"), ("*", ""), ("Emma", "Liam")):
            positions = [i for i, token in enumerate(tokens) if token == old]
            if not positions:
                continue
            position = rng.choice(positions)
            if old == "*":  # the definite becomes a plain conjunct
                end = tokens.index(";", position)
                atom = tokens[position + 1 : end]
                variant = [*tokens[:position], *tokens[end + 1 :], "AND", *atom]
            else:
                variant = [*tokens[:position], new, *tokens[position + 1 :]]
            assert not equivalent(shuffled(" ".join(variant), rng), form), (old, form)
            changed += 1
    assert changed > len(forms)
