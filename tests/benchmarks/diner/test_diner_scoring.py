"""F1: a table computed by hand for every branch, and properties for any names."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.asking import ask

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.counts import Counts
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary
from lm_eval_ext.benchmarks.diner.score import (
    components,
    counts,
    counts_by_kind,
    name,
    set_counts,
)
from lm_eval_ext.stats.statistics import Figure
from lm_eval_ext.stats.sums import f1_of_sums

# Words of the embedded glossary: food 番茄=西红柿 鸡蛋=蛋 土豆=马铃薯 牛肉 茄子 豆腐 鸡肉=鸡
# 鱼=鱼片 香菇=冬菇 粥 饭 鸡翅; action 炒=小炒 炖 烤 红烧; flavour 麻辣 糖醋.
F = Fraction
CASES = [
    # Parsed: TP and both sizes are counted; F1 = 2 TP / (predicted + gold).
    ("红烧牛肉", "红烧牛肉", 2, F(2), 2, F(1)),  # 4/4
    ("红烧牛肉", "红烧茄子", 1, F(2), 2, F(1, 2)),  # 红烧; 2/4
    ("红烧牛肉", "糖醋鱼", 0, F(2), 2, F(0)),
    ("番茄炒蛋", "番茄", 1, F(1), 3, F(1, 2)),  # too few: 2/4
    ("番茄", "番茄炒蛋", 1, F(3), 1, F(1, 2)),  # too many: 2/4
    ("番茄炒蛋", "西红柿小炒鸡蛋", 3, F(3), 3, F(1)),  # three synonyms
    ("土豆炖牛肉", "牛肉炖马铃薯", 3, F(3), 3, F(1)),  # another order
    ("鱼", "鱼鱼片", 1, F(1), 1, F(1)),  # a class twice in the prediction: once
    ("鸡肉鸡饭", "鸡饭", 2, F(2), 2, F(1)),  # a class twice in the gold name: once
    ("鸡肉鸡饭", "鸡肉鸡饭", 2, F(2), 2, F(1)),
    # Empty: no component.
    ("红烧牛肉", "", 0, F(0), 2, F(0)),  # 0/2
    # Unparsed: predicted = n len(p) / sum of the gold words' lengths.
    ("红烧牛肉", "红烧牛排", 1, F(2), 2, F(1, 2)),  # 红烧; 2*4/(2+2) = 2; 2/4
    ("麻辣豆腐", "宫保虾仁", 0, F(2), 2, F(0)),  # 2*4/(2+2) = 2
    ("番茄炒蛋", "西红柿炒蛋花", 3, F(9, 2), 3, F(4, 5)),  # 3*6/(2+1+1) = 4.5; 6/7.5
    ("香菇鸡肉粥", "冬菇滑鸡粥", 3, F(3), 3, F(1)),  # all by synonyms; 3*5/(2+2+1) = 3; 6/6
    ("烤鸡翅", "roast wings", 0, F(22, 3), 2, F(0)),  # 2*11/(1+2)
    ("鱼", "这是一条鱼呀", 1, F(6), 1, F(2, 7)),  # 1*6/1 = 6; 2/7
    ("鸡肉鸡饭", "鸡块饭", 2, F(2), 2, F(1)),  # 鸡肉 by its first word: 2*3/(2+1) = 2; 4/4
    ("鸡鸡肉饭", "鸡块饭", 2, F(3), 2, F(4, 5)),  # 鸡 by its first word: 2*3/(1+1) = 3; 4/5
    # Unparsed and short: the estimate 2*5/(3+3) = 5/3 is below TP, so it is TP; 4/4.
    ("西红柿马铃薯", "番茄和土豆", 2, F(2), 2, F(1)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_the_table(case: tuple[str, str, int, Fraction, int, Fraction]) -> None:
    gold, prediction, tp, predicted, size, f1 = case
    found = counts(gold, prediction, mini.glossary())
    assert found == Counts(tp, predicted, size)
    assert found.exact_f1 == f1
    assert found.f1 == float(f1)


def test_figures_over_documents() -> None:
    chosen = [CASES[0], CASES[1], CASES[10], CASES[13]]
    found = [counts(gold, prediction, mini.glossary()) for gold, prediction, *_ in chosen]
    documents = [(str(place), one) for place, one in enumerate(found)]
    # TP 2+1+0+3 = 6; predicted 2+2+0+4.5 = 8.5; gold 2+2+2+3 = 9; 12/17.5 = 24/35.
    assert micro_f1(documents).value == pytest.approx(float(F(24, 35)))
    assert micro_f1([]).value is None
    assert micro_f1([("a", Counts(0, F(0), 2))]).value == 0.0


def micro_f1(documents: list[tuple[str, Counts]]) -> Figure:
    """Of dishes and counts."""
    rows = (
        (str(place), str(place), (dish,), [{"kind": "all", **one.row()}])
        for place, (dish, one) in enumerate(documents)
    )
    return ask("diner", rows, "micro_f1")


@pytest.mark.parametrize(
    ("gold", "prediction", "food", "action", "flavour"),
    [
        ("红烧牛肉", "红烧茄子", (0, 1, 1), (1, 1, 1), None),
        # A flavour too many is nobody's fault by kind: the gold name has none.
        ("红烧牛肉", "麻辣牛肉", (1, 1, 1), (0, 0, 1), None),
        ("番茄炒蛋", "", (0, 0, 2), (0, 0, 1), None),
        # Unparsed, 4.5 estimated: two of three gold components are food (3), one action (1.5).
        ("番茄炒蛋", "西红柿炒蛋花", (2, 3, 2), (1, F(3, 2), 1), None),
        # Unparsed, 2*4/4 = 2 estimated, one for each kind.
        ("麻辣豆腐", "宫保豆腐", (1, 1, 1), None, (0, 1, 1)),
        # Unparsed, 5/3 estimated, all food, and raised to TP.
        ("西红柿马铃薯", "番茄和土豆", (2, 2, 2), None, None),
    ],
)
def test_kinds(gold: str, prediction: str, food: object, action: object, flavour: object) -> None:
    found = counts_by_kind(gold, prediction, mini.glossary())
    shown = [None if one is None else (one.tp, one.predicted, one.gold) for one in found.values()]
    assert shown == [food, action, flavour]
    assert tuple(found) == KINDS


@pytest.mark.parametrize(
    ("prediction", "exact"), [("番茄炒蛋", 1.0), ("西红柿炒蛋", 0.0), ("番茄炒蛋 ", 0.0)]
)
def test_exact_match_knows_no_synonyms(prediction: str, exact: float) -> None:
    (scored, *_) = name("番茄炒蛋", prediction, mini.glossary())
    assert scored["exact_match"] == exact


@pytest.mark.parametrize("gold", ["", "宫保虾仁", "红烧 牛肉"])
def test_a_gold_name_that_does_not_parse_is_refused(gold: str) -> None:
    for count in (counts, counts_by_kind):
        with pytest.raises(ValueError, match="does not parse"):
            count(gold, "红烧牛肉", mini.glossary())


@pytest.mark.parametrize(
    ("prediction", "ours", "authors"),
    [
        ("番茄炒蛋", 1.0, 1.0),
        ("番茄", 0.5, 0.5),
        # All three components are found in what does not parse: 6/7.5, and nothing.
        ("西红柿炒蛋花", 0.8, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_the_authors_mean_gives_nothing_to_what_does_not_parse(
    prediction: str, ours: float, authors: float
) -> None:
    (scored, *_) = name("番茄炒蛋", prediction, mini.glossary())
    assert (scored["f1"], scored["f1_authors"]) == (ours, authors)


def test_the_authors_mean_takes_the_answers_about_components_together() -> None:
    # Three are right, and one flavour is too many: 6/7. Each answer's F1 is 1, 0 and 1.
    (scored, *_) = components("番茄炒蛋", ["炒", "麻辣", "番茄、鸡蛋"], mini.glossary())
    assert (scored["f1"], scored["f1_authors"]) == (2 / 3, 6 / 7)
    # It does not matter to them which question is answered: 番茄 counts, and once.
    (scored, *_) = components("番茄炒蛋", ["炒", "番茄", "番茄"], mini.glossary())
    assert (scored["f1"], scored["f1_authors"]) == (pytest.approx(5 / 9), 0.8)


def test_sets_of_components() -> None:
    fish, rice = Component("food", "鱼"), Component("food", "饭")
    assert set_counts([fish, fish], [rice, fish, rice]) == Counts(1, F(2), 1)
    assert set_counts([fish], []) == Counts(0, F(0), 1)


COMPONENTS = mini.glossary().components()
NAMES = st.lists(st.sampled_from(COMPONENTS), min_size=1, max_size=5)


@st.composite
def spelled(draw: st.DrawFn, components: list[Component]) -> str:
    """A name of the components, in any of their words, that parses as meant."""
    glossary = mini.glossary()
    name = "".join(draw(st.sampled_from(glossary.words(one))) for one in components)
    assume(glossary.parse(name) == tuple(components))
    return name


GOLD = NAMES.flatmap(spelled)
ANY = st.text(alphabet="番茄西红柿炒小鸡肉蛋鱼片饭粥红烧麻辣香菇排骨xy。 ", max_size=12)


@given(GOLD)
def test_a_name_against_itself_is_right(gold: str) -> None:
    found = counts(gold, gold, mini.glossary())
    assert found.exact_f1 == 1
    by_kind = counts_by_kind(gold, gold, mini.glossary())
    assert {one.exact_f1 for one in by_kind.values() if one} == {1}


@given(GOLD, ANY | GOLD)
def test_bounds(gold: str, prediction: str) -> None:
    found = counts(gold, prediction, mini.glossary())
    assert 0 <= found.tp <= min(found.gold, found.predicted)
    assert 0 <= found.exact_f1 <= 1
    kinds = [one for one in counts_by_kind(gold, prediction, mini.glossary()).values() if one]
    assert sum(one.tp for one in kinds) == found.tp
    assert sum(one.gold for one in kinds) == found.gold


@given(st.data(), NAMES, NAMES)
def test_synonyms_change_nothing(
    data: st.DataObject, gold: list[Component], other: list[Component]
) -> None:
    first, second = (
        counts(data.draw(spelled(gold)), data.draw(spelled(other)), mini.glossary())
        for _ in range(2)
    )
    assert first == second


@given(GOLD, ANY)
def test_renaming_the_classes_changes_nothing(gold: str, prediction: str) -> None:
    own = mini.glossary().as_dict()
    renamed = {
        kind: {word: f"{name}们" for word, name in words.items()} for kind, words in own.items()
    }
    assert counts(gold, prediction, mini.glossary()) == counts(
        gold, prediction, Glossary.of(renamed)
    )


COUNTS = st.builds(
    lambda tp, more, missed, parts: Counts(tp, tp + Fraction(more, parts), tp + missed),
    *(st.integers(0, 5), st.integers(0, 20), st.integers(0, 3), st.integers(1, 9)),
)


@given(st.lists(st.tuples(st.sampled_from("abcd"), COUNTS), min_size=1), st.randoms())
def test_the_order_of_documents_changes_nothing(
    documents: list[tuple[str, Counts]], random: Random
) -> None:
    turned = list(documents)
    random.shuffle(turned)
    assert micro_f1(documents) == micro_f1(turned)


def test_the_spread_clusters_by_dish() -> None:
    right, wrong = Counts(2, F(2), 2), Counts(0, F(2), 2)
    assert micro_f1([("鱼", right), ("鱼", wrong)]).stderr is None
    same = micro_f1([("鱼", right), ("饭", right)])
    assert (same.value, same.stderr) == (1, 0)
    dishes = [(str(number), right if number % 2 else wrong) for number in range(40)]
    alone, tenfold = micro_f1(dishes), micro_f1(dishes * 10)
    # Ten equal recipes of a dish tell no more than one.
    assert alone.stderr == pytest.approx(tenfold.stderr, abs=1e-12)
    # F1 is here the share of right dishes: sqrt(1/2 * 1/2 / 40).
    assert alone.stderr == pytest.approx((0.25 / 40) ** 0.5, rel=0.1)
    assert alone.low is not None and alone.high is not None
    assert alone.low < 0.5 < alone.high


def test_resampled_sums_have_the_same_f1() -> None:
    sums = np.array([[3, 4, 5], [0, 0, 1], [0, 0, 0]], dtype=float)
    assert f1_of_sums(sums) == pytest.approx([6 / 9, 0, np.nan], nan_ok=True)
