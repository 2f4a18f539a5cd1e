"""Scores of single answers: what must be right, what must be wrong, in any script."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from lm_eval_ext.benchmarks.conceptual.answers import SCORES, score
from lm_eval_ext.benchmarks.conceptual.records import Option, plain, words


def lcs(one: list[str], other: list[str]) -> int:
    """Lin (2004), section 3.1, as a recurrence."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
            )
    return table[-1][-1]


CASES = [
    # gold, answer, length of the longest common subsequence after stemming
    ("police killed the gunman", "police kill the gunman", 4),
    ("police killed the gunman", "the gunman kill police", 2),
    ("police killed the gunman", "the gunman police killed", 2),
    ("yes", "yes", 1),
    ("yes", "Yes.", 1),
    ("yes", "no", 0),
    ("yes", "", 0),
    ("yes", "Well, yes and no", 1),
    ("a counter cooker appliance", "the cooker appliance", 2),
    ("it lies on the water", "lying on water it is", 3),
    ("Chief of Protocol", "chief protocol officer", 2),
    ("1984", "in 1984", 1),
]


@pytest.mark.parametrize(("gold", "answer", "common"), CASES)
def test_rouge_l_is_lins(gold: str, answer: str, common: int) -> None:
    scores = score(answer, gold)
    recall = common / len(plain(gold).split())
    precision = common / len(plain(answer).split()) if answer else 0.0
    assert scores["rouge_l"] == pytest.approx(recall)
    f1 = 2 * recall * precision / (recall + precision) if common else 0.0
    assert scores["rouge_l_f1"] == pytest.approx(f1)


WORDS = st.lists(st.sampled_from(["stone", "river", "cloud", "lamp"]), min_size=1, max_size=8)


@given(gold=WORDS, answer=WORDS)
def test_rouge_l_is_the_recurrence(gold: list[str], answer: list[str]) -> None:
    expected = lcs(gold, answer) / len(gold)
    assert score(" ".join(answer), " ".join(gold))["rouge_l"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ("yes", "yes", True),
        (" Yes.\n", "yes", True),
        ("(B)", "B", True),
        ("B) ice", "B", False),
        ("yes, it does", "yes", False),
        ("", "yes", False),
        # Without letters and digits only the same characters are the same answer.
        ("", "+", False),
        ("-", "+", False),
        (" +\n", "+", True),
        ("the cool  cellar", "The cool cellar.", True),
        ("cool cellar", "the cool cellar", False),
        ("été", "ÉTÉ", True),
    ],
)
def test_accuracy_is_of_the_whole_answer(answer: str, gold: str, right: bool) -> None:
    assert score(answer, gold)["accuracy"] == float(right)


@pytest.mark.parametrize("answer", ["x " * 500_000, "\0" * 9, "(" * 10**6, "�\ud800", "\n" * 99])
def test_no_answer_hurts(answer: str) -> None:
    assert set(score(answer, "yes")) == set(SCORES)


def test_an_answer_is_compared_up_to_a_length() -> None:
    assert score("x " * 9_999 + "y", "y")["rouge_l"] == 1.0
    assert score("x " * 10_000 + "y", "y")["rouge_l"] == 0.0


NATURAL = st.text(st.characters(codec="ascii"), max_size=40) | st.lists(
    st.sampled_from(["Rivers", "flowing", "a", "the", "sea's", "sky-blue", "1984", "U.S."]),
    max_size=8,
).map(" ".join)


@given(gold=NATURAL, answer=NATURAL)
def test_in_ascii_rouge_l_is_the_librarys(gold: str, answer: str) -> None:
    theirs = RougeScorer(["rougeL"], use_stemmer=True).score(gold, answer.strip())["rougeL"]
    ours = score(answer, gold)
    assert (ours["rouge_l"], ours["rouge_l_f1"]) == (theirs.recall, theirs.fmeasure)


FOREIGN = [
    "Beyoncé", "Æthelred Ø. Łukasiewicz", "été à Nîmes", "Москва", "北京大学", "서울", "हिन्दी भाषा",
    "مدينة القاهرة", "Αθήνα", "İstanbul", "Straße",
]  # fmt: skip


@pytest.mark.parametrize("gold", FOREIGN)
def test_other_letters_count_and_so_do_both_ways_to_write_them(gold: str) -> None:
    perfect = dict.fromkeys(SCORES, 1.0)
    for form in ("NFC", "NFD"):
        for other in ("NFC", "NFD"):
            written = unicodedata.normalize(form, gold)
            assert score(f" {written}. ", unicodedata.normalize(other, gold)) == perfect
    assert score(gold.upper().lower(), gold)["rouge_l"] == 1.0
    for wrong in (name for name in FOREIGN if name != gold):
        assert score(wrong, gold) == dict.fromkeys(SCORES, 0.0)


def test_the_library_alone_would_lose_other_letters() -> None:
    """Why there is a tokenizer: it sees no word in a name in Cyrillic, and two in Beyoncé's."""
    theirs = RougeScorer(["rougeL"], use_stemmer=True)
    assert theirs.score("Москва", "Москва")["rougeL"].recall == 0.0
    assert theirs.score("Beyoncé Knowles", "Beyonc Knowles")["rougeL"].recall == 1.0
    assert score("Beyonc Knowles", "Beyoncé Knowles")["rouge_l"] == 0.5


@given(text=st.text(max_size=30))
def test_words_do_not_depend_on_the_normal_form(text: str) -> None:
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))
    assert words(" ".join(words(text))) == words(text)


OPTIONS = (
    Option("A", "iron"), Option("B", "ice"), Option("C", "a metal"), Option("D", "iron and ice"),
)  # fmt: skip
RIGHT = [
    "ice", "Ice.", "(B) ice", "B) ice", "B. ice", "b: Ice", "B ice", "(B) ice.", "**(B) ice**",
    "[B] ice", '"(B)" "ice"', "B", "(B)", "b.", " (b)\n",
]  # fmt: skip
WRONG = [
    "", "A", "(A)", "(A) iron", "(A) ice", "(C) ice", "(B) iron", "(B) a metal", "A or B", "B, C",
    "(A) iron (B) ice", "iron and ice", "(D) iron and ice", "not ice", "ice or iron", "icy", "E",
    "(E) ice", "(B) ice (C) a metal", "BB", "ice ice",
]  # fmt: skip


@pytest.mark.parametrize("gold", ["ice", "B"])
def test_an_option_may_be_named_by_text_by_label_or_by_both(gold: str) -> None:
    """Under templates that show labels, whichever of both they ask for."""

    def right(answer: str) -> bool:
        return score(answer, gold, OPTIONS, "B", labels_shown=True)["accuracy"] == 1.0

    assert [answer for answer in RIGHT if not right(answer)] == []
    assert [answer for answer in WRONG if right(answer)] == []


def test_where_no_labels_are_shown_a_label_alone_names_nothing() -> None:
    assert score("B", "ice", OPTIONS, "B")["accuracy"] == 0.0
    assert score("(B) ice", "ice", OPTIONS, "B")["accuracy"] == 1.0


def test_an_options_text_that_is_anothers_label_is_what_the_template_asks_for() -> None:
    types = (Option("A", "B"), Option("B", "O"), Option("C", "A"))

    def right(answer: str, gold: str, label: str) -> bool:
        return score(answer, gold, types, label, labels_shown=True)["accuracy"] == 1.0

    answers = ("A", "B", "C", "O", "(C) A", "(A) B", "B) O", "A) A")
    # The text is asked for; the right one is "A", with the label C.
    assert [one for one in answers if right(one, "A", "C")] == ["A", "C", "(C) A"]
    # The label is asked for; the right one is A, with the text "B".
    assert [one for one in answers if right(one, "A", "A")] == ["A", "(A) B"]


@pytest.mark.parametrize("gold", ["+", "1"])
def test_an_option_without_letters_is_compared_as_it_stands(gold: str) -> None:
    signs = (Option("1", "+"), Option("2", "-"))
    scored = {
        answer: score(answer, gold, signs, "1", labels_shown=True)["accuracy"]
        for answer in ("+", "(1) +", "1", "(1).", "-", "(1) -", "(2) +", "2", "")
    }
    right = [answer for answer, accuracy in scored.items() if accuracy]
    assert right == ["+", "(1) +", "1", "(1)."]
