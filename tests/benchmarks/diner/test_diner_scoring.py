"""F1: a table computed by hand for every branch, and properties for any names."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import KINDS
from lm_eval_ext.benchmarks.diner.score import Counts, components, counts, name

GLOSSARY = mini.glossary()
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
    found = counts(gold, prediction, GLOSSARY)
    assert found == Counts(tp, predicted, size)
    assert found.f1 == float(f1)
    (row, *_) = name(gold, prediction, GLOSSARY)
    assert (row["hits"], row["predicted"], row["gold"]) == (tp, float(predicted), size)


@pytest.mark.parametrize(
    ("gold", "prediction", "food", "action", "flavour"),
    [
        # A flavour too many is nobody's fault by kind: the gold name has none.
        ("红烧牛肉", "麻辣牛肉", (1, 1, 1), (0, 0, 1), None),
        # Unparsed, 4.5 estimated: two of three gold components are food (3), one action (1.5).
        ("番茄炒蛋", "西红柿炒蛋花", (2, 3, 2), (1, F(3, 2), 1), None),
        # Unparsed, 2*4/4 = 2 estimated, one for each kind.
        ("麻辣豆腐", "宫保豆腐", (1, 1, 1), None, (0, 1, 1)),
        # Unparsed, 5/3 estimated, all food, and raised to TP.
        ("西红柿马铃薯", "番茄和土豆", (2, 2, 2), None, None),
    ],
)
def test_kinds(gold: str, prediction: str, food: object, action: object, flavour: object) -> None:
    (_, *rows) = name(gold, prediction, GLOSSARY)
    found = {row["kind"]: (row["hits"], row["predicted"], row["gold"]) for row in rows}
    assert [found.get(kind) for kind in KINDS] == [food, action, flavour]
    for kind, shown in found.items():
        assert counts(gold, prediction, GLOSSARY, [str(kind)]) == shown


@pytest.mark.parametrize(
    ("prediction", "exact", "ours", "authors"),
    [
        ("番茄炒蛋", 1, 1.0, 1.0),
        # Exact match knows no synonyms.
        ("西红柿炒蛋", 0, 1.0, 1.0),
        ("番茄", 0, 0.5, 0.5),
        # All three components are found in what does not parse: 6/7.5, and for the authors nothing.
        ("西红柿炒蛋花", 0, 0.8, 0.0),
        ("", 0, 0.0, 0.0),
    ],
)
def test_a_name_has_three_scores(
    prediction: str, exact: float, ours: float, authors: float
) -> None:
    (scored, *_) = name("番茄炒蛋", prediction, GLOSSARY)
    assert (scored["exact_match"], scored["f1"], scored["f1_authors"]) == (exact, ours, authors)


def test_the_authors_mean_takes_the_answers_about_components_together() -> None:
    # Three are right, and one flavour is too many: 6/7. Each answer's F1 is 1, 0 and 1.
    (scored, *_) = components("番茄炒蛋", ["炒", "麻辣", "番茄、鸡蛋"], GLOSSARY)
    assert (scored["f1"], scored["f1_authors"]) == (2 / 3, 6 / 7)
    # It does not matter to them which question is answered: 番茄 counts, and once.
    (scored, *_) = components("番茄炒蛋", ["炒", "番茄", "番茄"], GLOSSARY)
    assert (scored["f1"], scored["f1_authors"]) == (pytest.approx(5 / 9), 0.8)


ANY = st.text(alphabet="番茄西红柿炒小鸡肉蛋鱼片饭粥红烧麻辣香菇排骨xy。 ", max_size=12)


GOLD = st.sampled_from([case[0] for case in CASES])


@given(GOLD, ANY | GOLD)
def test_bounds(gold: str, prediction: str) -> None:
    assert counts(gold, gold, GLOSSARY).f1 == 1
    found = counts(gold, prediction, GLOSSARY)
    assert 0 <= found.hits <= min(found.gold, found.predicted)
    kinds = [counts(gold, prediction, GLOSSARY, [kind]) for kind in KINDS]
    assert sum(one.hits for one in kinds) == found.hits
    assert sum(one.gold for one in kinds) == found.gold
