"""Scores of single answers: what must be right, what must be wrong, in any script and in chats."""

import itertools
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from lm_eval_ext.benchmarks.conceptual.answers import SCORES, in_chat, is_right, score
from lm_eval_ext.benchmarks.conceptual.records import Option, words


@pytest.mark.parametrize(
    ("gold", "answer", "common"),
    [
        # The length of the longest common subsequence after stemming.
        ("police killed the gunman", "police kill the gunman", 4),
        ("police killed the gunman", "the gunman kill police", 2),
        ("yes", "", 0),
        ("yes", "Well, yes and no", 1),
        ("it lies on the water", "lying on water it is", 3),
        ("Chief of Protocol", "chief protocol officer", 2),
        ("1984", "in 1984", 1),
    ],
)
def test_rouge_l_is_lins(gold: str, answer: str, common: int) -> None:
    """Lin (2004), section 3.1."""
    scores, lengths = score(answer, gold), [len(words(text)) for text in (gold, answer)]
    assert scores["rouge_l"] == pytest.approx(common / lengths[0])
    assert scores["rouge_l_f1"] == pytest.approx(2 * common / sum(lengths))


NATURAL = st.text(st.characters(codec="ascii"), max_size=40) | st.lists(
    st.sampled_from(["Rivers", "flowing", "a", "the", "sea's", "sky-blue", "1984", "U.S."]),
    max_size=8,
).map(" ".join)


@given(gold=NATURAL, answer=NATURAL)
def test_in_ascii_rouge_l_is_the_librarys(gold: str, answer: str) -> None:
    theirs = RougeScorer(["rougeL"], use_stemmer=True).score(gold, answer.strip())["rougeL"]
    ours = score(answer, gold)
    assert (ours["rouge_l"], ours["rouge_l_f1"]) == (theirs.recall, theirs.fmeasure)


@pytest.mark.parametrize("answer", ["x " * 500_000, "\0" * 9, "(" * 10**6, "�\ud800", "\n" * 99])
def test_no_answer_hurts(answer: str) -> None:
    assert set(score(answer, "yes")) == set(SCORES)


def test_an_answer_is_compared_up_to_a_length() -> None:
    for size, found in ((9_999, 1.0), (10_000, 0.0)):
        assert score("x " * size + "y", "y")["rouge_l"] == found


FOREIGN = [
    "Beyoncé", "Æthelred Ø. Łukasiewicz", "été à Nîmes", "Москва", "北京大学", "서울", "हिन्दी भाषा",
    "مدينة القاهرة", "Αθήνα", "İstanbul", "Straße",
]  # fmt: skip


@pytest.mark.parametrize("gold", FOREIGN)
def test_other_letters_count_and_so_do_both_ways_to_write_them(gold: str) -> None:
    """Why there is a tokenizer: the library's sees no word in Cyrillic, and two in Beyoncé's."""
    forms = [unicodedata.normalize(form, gold) for form in ("NFC", "NFD")]
    for one, other in itertools.product(forms, repeat=2):
        assert score(f" {one}. ", other) == dict.fromkeys(SCORES, 1.0)
    assert score(gold.upper().lower(), gold)["rouge_l"] == 1.0
    for other in FOREIGN:
        assert score(other, gold) == dict.fromkeys(SCORES, float(other == gold))
    assert score("Beyonc Knowles", "Beyoncé Knowles")["rouge_l"] == 0.5


@given(text=st.text(max_size=30))
def test_words_do_not_depend_on_the_normal_form(text: str) -> None:
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))
    assert words(" ".join(words(text))) == words(text)


FAMILIES = yaml.safe_load(Path(__file__).with_name("conceptual_cases.yaml").read_text())


@pytest.mark.parametrize("case", FAMILIES["named"])
def test_a_whole_answer_is_right_and_an_option_may_be_named_in_several_ways(case: Any) -> None:
    options = [Option(*one) for one in case.get("options", {}).items()]
    for answer in (*case["right"], *case["wrong"]):
        right = is_right(answer, case["gold"], options, case.get("label", ""), labels_shown=True)
        assert right is (answer in case["right"]), answer


WATER = [Option("A", "ice"), Option("B", "warm water"), Option("C", "iron")]


def test_where_no_labels_are_shown_a_label_alone_names_nothing() -> None:
    found = [score(one, "ice", WATER, "A")["accuracy"] for one in ("A", "(A) ice", "(B) ice")]
    assert found == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("option", WATER[:2], ids=["short", "long"])
@pytest.mark.parametrize(
    ("right", "why"), [(right, why) for right in ("right", "wrong") for why in FAMILIES[right]]
)
def test_each_family_of_a_chat(right: str, why: str, option: Option) -> None:
    answer = FAMILIES[right][why].format(a=option.text, A=option.text.capitalize())
    read = in_chat(answer)
    found = is_right(read, option.text, WATER, option.label, labels_shown=True)
    assert found is (right == "right"), read


def test_in_a_chat_labels_are_read_like_texts_and_right_answers_stay() -> None:
    for answer in ("The answer is (B).", "(B) warm water", "Answer: B", "**B**", "B. warm water"):
        for gold in ("warm water", "B"):
            assert is_right(in_chat(answer), gold, WATER, "B", labels_shown=True), answer
    for gold in ("ice", "warm water", "B", "yes", "no", "Chief of Protocol", "3 + 4 = 7", "3-2"):
        assert in_chat(gold) == gold


def test_a_long_answer_costs_little() -> None:
    for part in ("so the answer ", "answer is ", "```\n", "Sure! ", ". " * 40, "input:\n", "a:\n"):
        in_chat(part * (1_000_000 // len(part)))
