"""Scores of right, wrong and hostile answers, and of 21,000 of them."""

import math
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.evaluator_utils import _compute_task_aggregations
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs.records import LEXICAL, STRUCTURAL, kind_of
from lm_eval_ext.benchmarks.cogs.score import (
    EQUIVALENT,
    EXACT,
    process_results,
    score,
)
from lm_eval_ext.cards import cards
from lm_eval_ext.harness.names import NONE, STDERR
from lm_eval_ext.logical_forms import normalise
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import figure, parts
from lm_eval_ext.stats.table import frame

pytestmark = pytest.mark.slow

GOLD = "* dog ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ann )"
SHUFFLED = "* dog ( x _ 1 ) ; see . theme ( x _ 2 , Ann ) AND see . agent ( x _ 2 , x _ 1 )"
WRONG = GOLD.replace("Ann", "Bob")

ANSWERS = [
    (GOLD, True, True),
    (f"  {GOLD} \n", True, True),
    (GOLD.replace(" ", "  "), True, True),
    # What the clean-up of decoding does, and a decoder that puts no space before a mark.
    (GOLD.replace(" .", ".").replace(" ,", ","), True, True),
    (GOLD.replace(" ( ", "(").replace(" )", ")").replace(" ;", ";").replace("* ", "*"), True, True),
    (SHUFFLED, False, True),
    (GOLD.replace("x _ 2", "x _ 5"), False, True),
    (GOLD.replace("dog ( x _ 1 )", "dog ( x _ 3 )"), False, False),
    (WRONG, False, False),
    (GOLD.lower(), False, False),
    (GOLD.replace("x _ 2", "x_2"), False, False),
    (GOLD + " .", False, False),
    (GOLD + " AND", False, False),
    (f"The logical form is: {GOLD}", False, False),
    ("", False, False),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "exact", "same"), ANSWERS)
def test_a_table_of_answers(answer: str, exact: bool, same: bool) -> None:
    assert score(answer, GOLD) == {EXACT: exact, EQUIVALENT: same}


def test_novel_tokens_stand_between_spaces() -> None:
    gold = "* [w_0] ( x _ 1 ) ; [w_18] . agent ( x _ 2 , x _ 1 )"
    assert normalise(gold) == gold
    assert score("*[w_0]( x _ 1 );[w_18].agent ( x _ 2, x _ 1 )", gold)[EXACT]
    assert not score(gold.replace("[w_0]", "[w_1]"), gold)[EXACT]


@given(st.text(alphabet="ab _x1().,;*[w]\n\t"))
def test_normalising_changes_whitespace_only(text: str) -> None:
    assert "".join(normalise(text).split()) == "".join(text.split())
    assert normalise(normalise(text)) == normalise(text)


@given(st.text())
def test_any_text_is_scored(text: str) -> None:
    found = score(text, GOLD)
    assert found[EQUIVALENT] or not found[EXACT]


HOSTILE = [
    "( " * 500_000,
    ("\t" * 1000 + ".") * 1000,
    "[w_1" * 250_000,
    f"see . agent ( {'x _ 1 , ' * 120_000}x _ 2 )",
    # As many conjuncts as the gold, but of another size.
    f"* dog ( x _ 1 ) ; see . agent ( {', '.join(f'x _ {i} ' for i in range(60_000))}) "
    "AND see . theme ( x _ 2 , Ann )",
    GOLD.replace("dog ( x _ 1 )", f"dog ( x _ {'9' * 900_000} )"),
    "\ud800" * 1000,
    " AND ".join([GOLD] * 9000),
]


@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers_are_wrong_and_cost_little(answer: str) -> None:
    doc = {"id": "gen/1", "type": "cp_recursion", "corpus": "cogs", "split": "gen", "form": GOLD}
    (row,) = process_results(doc, [answer])
    assert row[EXACT] == row[EQUIVALENT] == 0.0


@pytest.mark.parametrize(
    ("split", "type_", "kind"),
    [
        ("testlex", "bless_active", {}),
        ("gen", "active_to_passive", {"kind": "lexical"}),
        ("gen_small", "pp_recursion", {"kind": "structural"}),
    ],
)
def test_a_row_has_its_type_and_on_gen_its_kind(
    split: str, type_: str, kind: dict[str, str]
) -> None:
    doc = {"id": "x/1", "type": type_, "corpus": "cogs", "split": split, "form": GOLD}
    (row,) = process_results(doc, [GOLD])
    assert row == {"type": type_, **kind, EXACT: 1.0, EQUIVALENT: 1.0}


class Run:
    """A task whose documents are answered and aggregated as lm-eval does it."""

    def __init__(self, name: str) -> None:
        self.task = load_task(name)
        self.docs = self.task.eval_docs.to_list()

    def rows(self, answers: list[str]) -> Any:
        """The long table of the answers."""
        return frame(
            (doc["id"], doc["id"], (doc["type"], doc["id"]), process_results(doc, [answer]))
            for doc, answer in zip(self.docs, answers, strict=True)
        )

    def __call__(self, answers: list[str]) -> dict[str, Any]:
        scored = [
            dict(self.task.process_results(doc, [answer]).items())
            for doc, answer in zip(self.docs, answers, strict=True)
        ]
        raw = {(metric, "none"): [one[metric] for one in scored] for metric in scored[0]}
        metrics, _ = _compute_task_aggregations(self.task, raw, bootstrap_iters=0)
        return {name.removesuffix(",none"): value for name, value in metrics.items()}


@pytest.fixture(scope="module")
def gen(shared_data: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_EXT_DATA", str(shared_data))
        return Run("cogs_cvcv_short_gen")


def test_gold_answers_are_right_in_every_type_and_shifted_ones_nearly_never(gen: Run) -> None:
    gold = [doc["form"] for doc in gen.docs]
    assert len(gold) == 21_000
    scores = gen(gold)
    shifted = gen([*gold[1:], gold[0]])
    for metric in (EXACT, f"{EXACT}/lexical", f"{EXACT}/structural"):
        assert scores[metric] == 1.0
        assert scores[f"{metric}{STDERR}"] == 0.0
        assert shifted[metric] < 0.01


def test_golds_shuffled_and_renamed_are_equivalent_and_not_exact(gen: Run) -> None:
    """Two documents of the same meaning would make it guesswork; there are none."""
    rng = random.Random(1)
    for doc in gen.docs[::7]:
        definites, mark, atoms = doc["form"].rpartition(" ; ")
        parts = atoms.split(" AND ")
        rng.shuffle(parts)
        text = (definites + mark + " AND ".join(parts)).replace("x _ ", "x _ 1")
        assert score(text, doc["form"]) == {EXACT: False, EQUIVALENT: True}, text


def test_standard_errors_are_clustered_by_type_and_within_a_type_by_document(gen: Run) -> None:
    rng = random.Random(2)
    types = sorted({doc["type"] for doc in gen.docs})
    rates = {type_: place / len(types) for place, type_ in enumerate(types)}
    right = [rng.random() < rates[doc["type"]] for doc in gen.docs]
    table = gen.rows([doc["form"] if ok else "" for doc, ok in zip(gen.docs, right, strict=True)])
    by_type: dict[str, list[bool]] = defaultdict(list)
    for doc, ok in zip(gen.docs, right, strict=True):
        by_type[doc["type"]].append(ok)
    asked = cards()["cogs"].question_of(EXACT)
    for kind in (None, LEXICAL, STRUCTURAL):
        means = [sum(v) / 1000 for t, v in by_type.items() if kind is None or kind_of(t) == kind]
        mean = sum(means) / len(means)
        deviation = math.sqrt(sum((m - mean) ** 2 for m in means) / (len(means) - 1))
        found = figure(table, Question(asked.measure, {"kind": (kind,)} if kind else {}))
        assert found.value == pytest.approx(mean)
        assert found.stderr == pytest.approx(deviation / math.sqrt(len(means)))
    for part, question in parts(table, Question(asked.measure, by=("type",))):
        members = by_type[part["type"]]
        mean = sum(members) / 1000
        found = figure(table, question)
        assert found.value == mean
        assert found.stderr == pytest.approx(math.sqrt(mean * (1 - mean) / 999))


def test_types_without_documents_have_no_figure() -> None:
    mini = Run("cogs_mini_gen")
    mini.docs = [doc for doc in mini.docs if doc["type"] in ("cp_recursion", "pp_recursion")]
    scores = mini([doc["form"] for doc in mini.docs])
    assert scores[f"{EXACT}/{LEXICAL}"] == NONE
    assert scores[f"{EXACT}/{STRUCTURAL}"] == scores[EXACT] == 1.0
