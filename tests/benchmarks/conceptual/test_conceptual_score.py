"""Scores of single answers, metrics over documents by hand, and the paper's figures in the card."""

import itertools
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from support.asking import ask

from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.matching import is_right, score
from lm_eval_ext.benchmarks.conceptual.records import Option, words
from lm_eval_ext.benchmarks.conceptual.score import SEEDS, copied, process_results, stand_ins
from lm_eval_ext.cards import cards
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Estimate, estimate
from lm_eval_ext.stats.table import DocumentRows, frame

SCORES = ("rouge_l", "rouge_l_f1", "accuracy")
SELECTIONS = ("random", "concept", "same_labels")
CARD = cards()["conceptual"]


def test_a_document_is_scored_under_all_selections_and_templates() -> None:
    """Rows are in the order of requests; a template without labels has no right label."""
    doc = {
        "templates": ["choose", "letter"],
        "answers": ["a b", "B"],
        "answer_label": "B",
        "options": [{"label": "A", "text": "c"}, {"label": "B", "text": "a b"}],
        "concept": "c",
    }
    for selection in SELECTIONS:
        doc[f"{selection}_demonstrations"] = ["x"]
    rows = process_results(doc, ["b", "a b", "B", "A", "B", "(B) a b"])
    setups = [(row["template"], row["demonstrations"]) for row in rows]
    assert setups == list(itertools.product(doc["templates"], SELECTIONS))
    assert [row["rouge_l"] for row in rows[:3]] == [0.5, 1.0, 0.5]
    assert [row["accuracy"] for row in rows] == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]


ScoresOfDocuments = Sequence[Sequence[float]]
"""Each document's score under each selection; the last selections may lack."""


def documents(**templates: ScoresOfDocuments) -> list[DocumentRows]:
    """Return documents of four concepts, with the same scores of all kinds, by template."""
    scored: list[DocumentRows] = []
    for number, of_document in enumerate(zip(*templates.values(), strict=True)):
        name = f"d{number:04}"
        concept = f"c{number % 4}"
        rows = []
        for template, scores in zip(templates, of_document, strict=True):
            for selection, score_value in zip(SELECTIONS, scores, strict=False):
                row: dict[str, str | float | None] = {
                    "template": template,
                    "demonstrations": selection,
                    "concept": concept,
                }
                row.update(dict.fromkeys(SCORES, score_value))
                rows.append(row)
        scored.append((name, name, (concept, name), rows))
    return scored


def value(
    scored: Sequence[DocumentRows], metric: str, of: str = "rouge_l", **where: str
) -> float | None:
    """Return a metric of scored documents, computed from one of their scores."""
    figure: float | None = ask("conceptual", scored, metric, value=of, **where).value
    return figure


@pytest.mark.parametrize("of", SCORES)
def test_the_figures_are_what_arithmetic_says(of: str) -> None:
    """Scores are means, the gain is their difference, and the change is one of errors."""
    scored = documents(options=[(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)] * 10)
    expected = {
        "score/random": 0.5,
        "score/concept": 0.625,
        "gain": 0.125,
        "relative_error_change": (1 - 0.625) / (1 - 0.5) - 1,
    }
    assert {name: value(scored, name, of) for name in expected} == pytest.approx(expected)


def test_figures_of_a_concept_are_of_its_documents() -> None:
    """The first of four concepts has the first of each four documents."""
    scored = documents(options=[(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)] * 10)
    assert value(scored, "score/random", concept="c0") == 0.0
    assert value(scored, "gain", concept="c0") == 1.0


def test_without_error_there_is_no_change_of_it() -> None:
    """Its relative change is undefined if random demonstrations make no error."""
    scored = documents(options=[(1.0, 1.0), (1.0, 0.5), (1.0, 1.0), (1.0, 0.0)])
    assert value(scored, "relative_error_change") is None
    assert value(scored, "relative_error_change_100x200") is None
    assert value(scored, "gain") == -0.375


def test_a_gain_is_the_sum_of_its_parts() -> None:
    """The gains from labels and from the concept add up to the gain."""
    scores = np.random.default_rng(4).random((40, 3))
    before, after, control = scores.mean(axis=0)
    expected = {
        "score/same_labels": control,
        "gain": after - before,
        "gain_from_labels": control - before,
        "gain_from_concept": after - control,
    }
    scored = documents(options=scores.tolist())
    assert {name: value(scored, name) for name in expected} == pytest.approx(expected)


def test_a_gain_from_the_concept_is_of_samples_that_have_a_control() -> None:
    """The document without a control counts for the gain only."""
    scored = documents(options=[(0.0, 1.0, 0.5), (0.0, 0.0)])
    assert value(scored, "gain") == 0.5
    assert value(scored, "score/same_labels") == 0.5
    assert value(scored, "gain_from_concept") == 0.5


def bootstrap(scored: Sequence[DocumentRows], seeds: Mapping[str, int] | None = None) -> Estimate:
    """Estimate the gain with the paper's bootstrap, paired unless selections have seeds."""
    measure = CARD.question_of("gain_100x200").measure
    with_seeds = measure.model_copy(update={"seeds": seeds or {}})
    return estimate(frame(scored), Question(with_seeds))


def test_the_papers_bootstrap_draws_100_of_the_samples_200_times() -> None:
    """Its spread is that of means of 100, however many samples there are.

    The draw is pinned, since another one would make published figures incomparable.
    """
    scores = np.random.default_rng(2).random((1000, 2)) < (0.3, 0.6)
    scored = documents(options=scores.astype(float).tolist())
    figure = bootstrap(scored)
    gains = scores[:, 1].astype(float) - scores[:, 0]
    drawn = np.random.default_rng(0).integers(1000, size=(200, 100))
    means = gains[drawn].mean(axis=1)
    assert figure.value == pytest.approx(np.median(means))
    assert figure.stderr == pytest.approx(np.std(means, ddof=1))
    assert (figure.low, figure.high) == pytest.approx(tuple(np.quantile(means, (0.025, 0.975))))
    assert figure.stderr == pytest.approx(gains.std() / math.sqrt(100), rel=0.2)
    assert bootstrap(scored[:1]).value is None, "it needs two samples"


def test_independent_draws_differ_by_selection_and_their_spread_adds_up() -> None:
    """Samples are easy or hard under both selections, as in practice: pairing takes that away."""
    rng = np.random.default_rng(5)
    ease = rng.random(400) * 0.7
    scores = np.array([ease, ease + rng.random(400) / 4])
    scored = documents(options=scores.T.tolist())
    paired = bootstrap(scored)
    independent = bootstrap(scored, SEEDS)
    paired_spread = np.sqrt(np.var(scores[1] - scores[0])) / 10
    independent_spread = np.sqrt(np.var(scores, axis=1).sum()) / 10
    assert paired.stderr == pytest.approx(paired_spread, rel=0.15)
    assert independent.stderr == pytest.approx(independent_spread, rel=0.15)
    assert independent.value == pytest.approx(paired.value, abs=0.02)


def documents_of_three_templates() -> list[DocumentRows]:
    """Return documents with one template best by concept, one by gain, and one by random score."""
    return documents(
        gains=[(0.0, 0.7)] * 12,
        best=[(0.6, 1.0), (0.8, 0.6)] * 6,
        random=[(1.0, 0.5)] * 12,
    )


@pytest.mark.parametrize(
    "metric", ["gain", "score/random", "relative_error_change", "gain_100x200"]
)
def test_the_best_template_is_the_one_with_the_highest_concept_score(metric: str) -> None:
    """All figures are of that template, not of the one with the highest gain or random score."""
    scored = documents_of_three_templates()
    of_best = ask("conceptual", scored, metric, template="best")
    assert ask("conceptual", scored, metric) == of_best


def test_the_best_template_is_the_same_for_every_value() -> None:
    """It is chosen by ROUGE-L, although its accuracy is the worst here."""
    scored = documents_of_three_templates()
    assert value(scored, "gain") == pytest.approx(0.1)
    for *_, rows in scored:
        for row in rows:
            row["accuracy"] = float(row["template"] != "best")  # type: ignore[index]
    assert value(scored, "score/concept", "accuracy") == 0.0


def test_the_first_of_equal_templates_is_the_best() -> None:
    """The order of documents does not decide."""
    scored = documents(first=[(0, 1), (0, 0)], second=[(0.5, 0), (0.5, 1)])
    assert value(scored, "score/random") == 0.0
    assert value(scored[::-1], "score/random") == 0.0


@pytest.mark.parametrize(
    ("shown", "last", "majority"),
    [("a", "a", "a"), ("aab", "b", "a"), ("aba", "a", "a"), ("abc", "c", "c"), ("abba", "a", "a")],
)
def test_copiers_answer_what_is_shown_and_are_right_if_it_is(
    shown: str, last: str, majority: str
) -> None:
    """The last label is copied, or the commonest; of equally common ones the last."""
    assert stand_ins(shown) == {"copy_last": last, "copy_majority": majority}


def test_copiers_are_scored_like_answers() -> None:
    """Rows have the share of the right answer among those shown, and the copiers' scores."""
    assert copied("a", ["b", "a", "a", "b b"]) == {
        "answer_share": 0.5,
        "answer_shown": 1.0,
        "rouge_l_copy_last": 0.0,
        "rouge_l_copy_majority": 1.0,
        "accuracy_copy_last": 0.0,
        "accuracy_copy_majority": 1.0,
    }
    assert copied("b", ["a"])["answer_shown"] == 0.0


MEDIAN = "score_100x200"
CHANGE = "relative_error_change_100x200"


def changes_by_model() -> dict[str, list[float]]:
    """Return the published changes of error of each model, one for each dataset."""
    changes: dict[str, list[float]] = defaultdict(list)
    for reference in CARD.references:
        if f"{MEDIAN}_random" in reference.figures and not reference.trivial:
            changes[reference.label].append(reference.figures[CHANGE])
    return changes


def test_figure_2_follows_from_figure_4() -> None:
    """The published changes of error are those of the published medians."""
    changes = changes_by_model()
    assert sum(map(len, changes.values())) == 30
    for reference in CARD.references:
        if f"{MEDIAN}_random" in reference.figures and not reference.trivial:
            before = reference.figures[f"{MEDIAN}_random"]
            after = reference.figures[f"{MEDIAN}_concept"]
            change = (1 - after) / (1 - before) - 1
            assert reference.figures[CHANGE] == pytest.approx(change, abs=5.1e-4), reference.label


def test_figure_3_is_the_mean_over_four_datasets() -> None:
    """Models with all four datasets have their mean as the benchmark's figure, and no others."""
    means = {}
    for label, changes in changes_by_model().items():
        if len(changes) == 4:
            means[label] = sum(changes) / 4
    published = {}
    for reference in CARD.references:
        if reference.tasks == ("conceptual",):
            published[reference.label] = reference.figures[CHANGE]
    assert published == pytest.approx(means, abs=1e-3)


@pytest.mark.parametrize("metric", CARD.metrics)
def test_lower_is_better_for_changes_of_error_only(metric: str) -> None:
    """The card says so of each metric."""
    measure = CARD.question_of(metric).measure
    assert measure.lower_is_better is ("error_change" in metric)


@pytest.mark.parametrize(
    ("gold", "answer", "common"),
    [
        # The length of the longest common subsequence after stemming.
        ("sailors mended the rudder", "sailors mend the rudder", 4),
        ("sailors mended the rudder", "the rudder mend sailors", 2),
        ("yes", "", 0),
        ("yes", "Well, yes and no", 1),
        ("it lies on the water", "lying on water it is", 3),
        ("Head of Archives", "head archives officer", 2),
        ("1984", "in 1984", 1),
    ],
)
def test_rouge_l_is_that_of_the_longest_common_subsequence(
    gold: str, answer: str, common: int
) -> None:
    """Recall and F1 are those of Lin (2004), section 3.1."""
    scores = score(answer, gold)
    gold_length = len(words(gold))
    answer_length = len(words(answer))
    assert scores["rouge_l"] == pytest.approx(common / gold_length)
    assert scores["rouge_l_f1"] == pytest.approx(2 * common / (gold_length + answer_length))


WORDS = st.sampled_from(
    ["Rivers", "flowing", "a", "the", "sea's", "sky-blue", "1984", "U.S.", "\x7f"]
)
NATURAL = st.lists(WORDS, max_size=8).map(" ".join)


@given(gold=NATURAL, answer=NATURAL)
def test_in_ascii_rouge_l_is_the_librarys(gold: str, answer: str) -> None:
    """Without other letters, both figures are those of rouge_score."""
    expected = RougeScorer(["rougeL"], use_stemmer=True).score(gold, answer.strip())["rougeL"]
    scores = score(answer, gold)
    assert scores["rouge_l"] == expected.recall
    assert scores["rouge_l_f1"] == expected.fmeasure


@pytest.mark.parametrize(
    "repeated",
    [
        "x ",
        "\0",
        "(",
        "�\ud800",
        "\n",
        "so the answer ",
        "answer is ",
        "```\n",
        "Sure! ",
        "input:\n",
    ],
)
def test_no_answer_hurts_and_a_long_one_costs_little(repeated: str) -> None:
    """A million characters are scored and read: no pattern backtracks."""
    answer = repeated * (1_000_000 // len(repeated))
    assert set(score(answer, "yes")) == set(SCORES)
    reader_for(tuple(WATER), "options").read(answer)
    reader_for((), "text_first").read(answer)


@pytest.mark.parametrize(("words_before", "recall"), [(9_999, 1.0), (10_000, 0.0)])
def test_an_answer_is_compared_up_to_a_length(words_before: int, recall: float) -> None:
    """Only the first 10,000 words count."""
    assert score("x " * words_before + "y", "y")["rouge_l"] == recall


FOREIGN = [
    "Beyoncé", "Æthelred Ø. Łukasiewicz", "été à Nîmes", "Москва", "北京大学", "서울", "हिन्दी भाषा",
    "مدينة القاهرة", "Αθήνα", "İstanbul", "Straße",
]  # fmt: skip


@pytest.mark.parametrize("gold", FOREIGN)
def test_other_letters_count_and_so_do_both_ways_to_write_them(gold: str) -> None:
    """Why there is a tokenizer: the library's sees no word in Cyrillic, and two in Beyoncé's."""
    composed = unicodedata.normalize("NFC", gold)
    decomposed = unicodedata.normalize("NFD", gold)
    for answer, target in itertools.product((composed, decomposed), repeat=2):
        assert score(f" {answer}. ", target) == dict.fromkeys(SCORES, 1.0)
    assert score(gold.upper().lower(), gold)["rouge_l"] == 1.0
    for answer in FOREIGN:
        assert score(answer, gold) == dict.fromkeys(SCORES, float(answer == gold)), answer


def test_a_letter_that_is_left_out_counts() -> None:
    """A word with another letter is another word."""
    assert score("Beyonc Knowles", "Beyoncé Knowles")["rouge_l"] == 0.5


@given(text=st.text(max_size=30))
def test_words_do_not_depend_on_the_normal_form(text: str) -> None:
    """Both normal forms have the same words, and words are their own words."""
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))
    assert words(" ".join(words(text))) == words(text)


CASES = yaml.safe_load(Path(__file__).with_name("conceptual_cases.yaml").read_text())


def named_answers() -> Iterator[Any]:
    """Yield gold, options and label with each answer, and whether it is right."""
    for number, case in enumerate(CASES["named"], start=1):
        for verdict in ("right", "wrong"):
            for answer in case[verdict]:
                yield pytest.param(
                    case, answer, verdict == "right", id=f"{number} {verdict}: {answer!r}"
                )


@pytest.mark.parametrize(("case", "answer", "expected"), list(named_answers()))
def test_a_whole_answer_is_right_and_an_option_may_be_named_in_several_ways(
    case: Any, answer: str, expected: bool
) -> None:
    """Text, label or both name an option; anything more or else is wrong."""
    options = [Option(label, text) for label, text in case.get("options", {}).items()]
    label = case.get("label", "")
    assert is_right(answer, case["gold"], options, label, labels_shown=True) is expected


WATER = [Option("A", "ice"), Option("B", "warm water"), Option("C", "iron")]


@pytest.mark.parametrize(("answer", "accuracy"), [("A", 0.0), ("(A) ice", 1.0), ("(B) ice", 0.0)])
def test_where_no_labels_are_shown_a_label_alone_names_nothing(
    answer: str, accuracy: float
) -> None:
    """With the text, a label must be the text's own."""
    assert score(answer, "ice", WATER, "A")["accuracy"] == accuracy


def chat_responses() -> Iterator[Any]:
    """Yield each form of a chat model's response, and whether its answer is the right one."""
    for verdict in ("right", "wrong"):
        for description, form in CASES[verdict].items():
            yield pytest.param(form, verdict == "right", id=f"{verdict}: {description}")


FORMS = list(chat_responses())


@pytest.mark.parametrize("template", ["options", "choose"])
@pytest.mark.parametrize("option", WATER[:2], ids=["short", "long"])
@pytest.mark.parametrize(("form", "is_read"), FORMS)
def test_each_family_of_a_chat_with_options(
    form: str, is_read: bool, option: Option, template: str
) -> None:
    """The right option is read, and no other: whether or not labels are shown."""
    response = form.format(a=option.text, A=option.text.capitalize())
    answer = reader_for(tuple(WATER), template).read(response)
    right = is_right(answer, option.text, WATER, option.label, labels_shown=template == "options")
    assert right is is_read, answer


@pytest.mark.parametrize(("form", "is_read"), FORMS)
@pytest.mark.parametrize(
    ("template", "gold", "wrong"),
    [("follows", "yes", "no"), ("text_first", "Hugo Lamm", "Nora Pike")],
    ids=["label", "words"],
)
def test_each_family_of_a_chat_without_options(
    form: str, is_read: bool, template: str, gold: str, wrong: str
) -> None:
    """A label or a few words of an open question are read in the same way."""
    response = form.replace("iron", wrong).replace("Iron", wrong).format(a=gold, A=gold)
    answer = reader_for((), template).read(response)
    assert is_right(answer, gold) is is_read, answer


@pytest.mark.parametrize(
    "response",
    [
        "The answer is (B).",
        "(B) warm water",
        "Answer: B",
        "**B**",
        "B. warm water",
        "Option B",
        "The answer is option B: warm water.",
        "B, because it is not cold",
        "Answer: **B. warm water**",
    ],
)
@pytest.mark.parametrize(("gold", "template"), [("warm water", "options"), ("B", "letter")])
def test_labels_are_read_like_texts(response: str, gold: str, template: str) -> None:
    """If the answer is a text, its label is right, and if it is a label, its text is."""
    answer = reader_for(tuple(WATER), template).read(response)
    assert is_right(answer, gold, WATER, "B", labels_shown=True), answer


@pytest.mark.parametrize("gold", ["yes", "no", "Head of Archives", "3 + 4 = 7", "3-2", "St. Louis"])
def test_an_answer_of_a_few_words_stays_as_it_is(gold: str) -> None:
    """Names, sums and ranges are not taken apart."""
    assert reader_for((), "text_first").read(gold) == gold
