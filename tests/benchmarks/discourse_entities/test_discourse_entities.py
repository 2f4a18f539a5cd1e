"""Discourse entities: all figures of the authors' recordings, and the texts of the requests."""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from lm_eval_ext.benchmarks.discourse_entities import load, recordings, score
from lm_eval_ext.cards import cards
from lm_eval_ext.errors import DataError
from lm_eval_ext.stats.measures import Question

CsvRow = Mapping[str, str]
ScoreRow = Mapping[str, Any]

COLUMN_OF_METRIC = {
    "accuracy": "correct",
    "systematicity": "systematic",
    "same_noun": "same_noun",
}
LABELS = {
    "gpt2": "GPT-2",
    "gpt2-medium": "GPT-2 M",
    "gpt2-large": "GPT-2 L",
    "gpt2-xl": "GPT-2 XL",
    "gpt3": "GPT-3",
    "human": "humans",
}
STIMULI_FILES = {
    "single": "full_sentence_hand_written_stimuli.jsonl",
    "pairs": "2nouns_full_sentence_hand_written_stimuli.jsonl",
}


@pytest.fixture
def folder(real_data: Path) -> Path:
    """Return the folder of the authors' recordings, or skip the test without it."""
    recordings = real_data / "discourse_entities"
    if not recordings.is_dir():
        pytest.skip("the authors' recordings (discourse_entities) are not available here")
    return recordings


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def score_recordings(rows: Sequence[Mapping[str, Any]], experiment: str) -> list[ScoreRow]:
    """Score converted recordings with the scoring function of the tasks."""
    responses = {(row["doc"]["id"], row["idx"]): row["response"] for row in rows}
    scores: list[ScoreRow] = []
    for doc in load.dataset(discourse_entities_set=experiment)["test"]:
        answers = [responses[doc["id"], index] for index in range(len(doc["context"]))]
        scores.extend(score.process_results(doc, answers))
    return scores


@dataclass(frozen=True)
class HumanResponse:
    """A person's choice after a context."""

    context_type: str
    pair: str
    """The pair of the second experiment; empty for a context of the first."""
    continuation: str
    item: str
    is_right: bool


def human_responses(folder: Path) -> Iterator[HumanResponse]:
    """Read all responses; in contexts with two nouns, item 15 has its labels exchanged, as in R."""
    for row in read_csv(folder / "human/exp2_responses.csv"):
        pair = ""
        for name, context_types in load.PAIRS.items():
            if row["type"] in context_types:
                pair = name
        is_relabelled = row["id"].startswith("15_") and pair != ""
        is_expected = row["response"] == "exp"
        continuation = "noncoref"
        if row["id"].endswith("_ref"):
            continuation = "coref"
        yield HumanResponse(
            context_type=row["type"],
            pair=pair,
            continuation=continuation,
            item=row["id"].split("_")[0],
            is_right=is_expected != is_relabelled,
        )


def human_single_counts(folder: Path, pair: str) -> tuple[int, int]:
    """Count the items of the first experiment that most people have right, and all items.

    Expected is the pronoun after the first context, and the other sentence after the second.
    """
    verdicts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for response in human_responses(folder):
        verdicts[response.context_type, response.item].append(response.is_right)
    with_pronoun, with_other_sentence = load.SINGLE[pair]
    items = {item for context_type, item in verdicts if context_type == with_pronoun}
    right_items = 0
    for item in items:
        pronoun_share = fmean(verdicts[with_pronoun, item])
        right_items += pronoun_share > 1 - fmean(verdicts[with_other_sentence, item])
    return right_items, len(items)


def human_pair_counts(folder: Path, row: CsvRow) -> tuple[int, int]:
    """Count what is right in the second experiment, and all: responses or items, by the metric."""
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for response in human_responses(folder):
        if (response.pair, response.continuation) == (row["pair"], row["continuation"]):
            verdicts[response.item].append(response.is_right)
    if row["metric"] == "response_share":
        return sum(map(sum, verdicts.values())), sum(map(len, verdicts.values()))
    right_items = sum(fmean(rights) > 0.5 for rights in verdicts.values())
    return right_items, len(verdicts)


def human_counts(folder: Path, row: CsvRow) -> tuple[int, int]:
    """Count what people have right, and all, for a row of the expected figures."""
    if row["experiment"] == "single":
        return human_single_counts(folder, row["pair"])
    return human_pair_counts(folder, row)


def published(row: CsvRow, metric: str) -> float:
    """Return the card's published figure for a row of the expected figures."""
    card = cards()["discourse_entities"]
    where = {"pair": (row["pair"],)}
    if row["continuation"] in ("coref", "noncoref"):
        where["continuation"] = (row["continuation"],)
    question = Question(card.question_of(metric).measure, where)
    task = f"discourse_entities_{row['experiment']}"
    return card.published(task, question)[LABELS[row["model"]]]


def expected_rows(folder: Path, source: str) -> list[dict[str, str]]:
    """Return the expected figures that come from a source."""
    return [row for row in read_csv(folder / "expected.csv") if row["source"] == source]


@pytest.mark.parametrize(
    ("source", "count"),
    [("recorded", 110), ("recorded_item15_relabelled", 85)],
    ids=["as recorded", "item 15 relabelled"],
)
def test_recorded_runs_have_the_authors_counts(folder: Path, source: str, count: int) -> None:
    """Scoring the recorded runs gives the counts that the authors' own script gives."""
    expected = expected_rows(folder, source)
    assert len(expected) == count

    systems = {system.name: system.rows for system in recordings.convert(None).systems}

    @cache
    def run(experiment: str, model: str) -> list[ScoreRow]:
        exchanged = f"{model}-item15-exchanged"
        name = exchanged if "relabelled" in source and exchanged in systems else model
        return score_recordings(systems[name], experiment)

    for row in expected:
        facets = {}
        for facet in ("pair", "continuation"):
            if row[facet] not in ("all", "both", ""):
                facets[facet] = row[facet]
        column = COLUMN_OF_METRIC[row["metric"]]
        values = []
        for scores in run(row["experiment"], row["model"]):
            if column in scores and facets.items() <= scores.items():
                values.append(scores[column])
        assert (sum(values), len(values)) == (int(row["correct"]), int(row["n"])), row


def test_human_responses_have_the_authors_counts(folder: Path) -> None:
    """Counting the responses gives the authors' counts, and the shares that the card publishes."""
    expected = expected_rows(folder, "human_responses")
    assert len(expected) == 20
    for row in expected:
        assert row["model"] == "human", row
        assert human_counts(folder, row) == (int(row["correct"]), int(row["n"])), row
        if row["metric"] == "response_share":
            share = float(row["value"])
            assert published(row, "accuracy") == pytest.approx(share, abs=1e-6), row


def test_the_card_has_the_papers_figures(folder: Path) -> None:
    """The card publishes the paper's figures, for models and humans."""
    expected = expected_rows(folder, "published_figure")
    assert len(expected) == 92
    for row in expected:
        if row["model"] == "human":
            assert human_counts(folder, row) == (int(row["correct"]), int(row["n"])), row
        if row["metric"] == "accuracy_majority":
            continue
        metric = row["metric"]
        if metric == "response_share":
            metric = "accuracy"
        assert published(row, metric) == pytest.approx(float(row["value"]), abs=1e-6), row


@pytest.mark.parametrize(
    ("experiment", "sentences_with_spaces"), [("single", 0), ("pairs", 32)], ids=["single", "pairs"]
)
def test_requests_are_the_authors_sentences(
    folder: Path, experiment: str, sentences_with_spaces: int
) -> None:
    """Context and continuation are the authors' sentences, without spaces at their ends."""
    requests = set()
    continuations = set()
    for doc in load.dataset(discourse_entities_set=experiment)["test"]:
        continuations.update(doc["continuation"])
        for context, continuation in zip(doc["context"], doc["continuation"], strict=True):
            requests.add(context + continuation)
    texts = []
    for line in (folder / "stimuli" / STIMULI_FILES[experiment]).read_text().splitlines():
        for key, text in json.loads(line).items():
            if key.endswith("sentence"):
                texts.append(text)
    assert sum(text != text.strip() for text in texts) == sentences_with_spaces
    assert requests == {text.strip() for text in texts}
    if experiment == "single":
        initial_words = {continuation.split()[0].lower() for continuation in continuations}
        assert initial_words == {"it", "it's"}


LogprobPair = tuple[float, float]
"""The log-probabilities of the expected and of the unexpected continuation."""

RIGHT = (-1.0, -2.0)
WRONG = (-2.0, -1.0)
EQUAL = (-1.0, -1.0)
UNDEFINED = (math.nan, -1.0)


@pytest.mark.parametrize(
    ("orders", "systematic", "same_noun"),
    [
        pytest.param([RIGHT, RIGHT, RIGHT, RIGHT], 1, 0, id="all right"),
        pytest.param([WRONG, WRONG, WRONG, WRONG], 0, 0, id="all wrong"),
        pytest.param([RIGHT, WRONG, WRONG, RIGHT], 0, 1, id="always one noun"),
        pytest.param([WRONG, RIGHT, RIGHT, WRONG], 0, 1, id="always the other noun"),
        pytest.param([RIGHT, RIGHT, RIGHT, WRONG], 0, 0, id="last wrong"),
        pytest.param([RIGHT, RIGHT, RIGHT, EQUAL], 0, 0, id="last equal"),
        pytest.param([RIGHT, RIGHT, RIGHT, UNDEFINED], 0, 0, id="last undefined"),
    ],
)
def test_a_document_is_systematic_if_all_four_orders_are_right(
    orders: list[LogprobPair], systematic: int, same_noun: int
) -> None:
    """A constant noun is recognized."""
    doc = load.dataset(discourse_entities_set="mini")["test"][0]
    responses = []
    for expected, unexpected in orders:
        responses.append((expected, False))
        responses.append((unexpected, False))
    *order_rows, document_row = score.process_results(doc, responses)
    for order, row in zip(orders, order_rows, strict=True):
        assert row["correct"] == float(order == RIGHT), order
    assert document_row["systematic"] == systematic
    assert document_row["same_noun"] == same_noun


def test_our_sentences_expect_what_the_paper_says() -> None:
    """The noun that is negated, doubted, wished for or failed at is not referred to."""
    docs = load.dataset(discourse_entities_set="mini")["test"]
    assert len(docs) == 32
    assert len({doc["item"] for doc in docs}) * 8 == 32
    denying_words = ("not", "hope", "plan", "meant", "wish", "doubt", "failed")
    for doc in docs:
        expected_pairs = zip(doc["context"][::2], doc["continuation"][::2], strict=True)
        for context, continuation in expected_pairs:
            clauses = context.rstrip(".").split(" but ")
            (clause,) = [text for text in clauses if text.split()[-1] in continuation]
            is_denied = any(word in clause for word in denying_words)
            assert is_denied == (doc["kind"] == "noncoref"), (context, continuation)


def test_a_single_stimulus_without_its_partner_is_named() -> None:
    """The error names the stimulus that is missing."""
    stimulus = {
        "id": "1_kite_know",
        "type": "know",
        "i_sentence": "It flew.",
        "s_sentence": "It's.",
    }
    with pytest.raises(DataError, match="no stimulus '1_kite_affirmative'"):
        load.single([stimulus], "stimuli")


def test_a_stimulus_of_a_pair_without_its_partner_is_named() -> None:
    """All stimuli of an item make eight documents; without the last, the error names it."""
    item = {
        "item": "1_kite",
        "nouns": ["a kite", "an owl"],
        "contexts": defaultdict(str),
        "ref": "The {}",
        "nonref": "The {} that",
    }
    stimuli = list(load.written([item]))
    assert len(load.pairs(stimuli, "stimuli")) == 8
    with pytest.raises(DataError, match="stimuli: no stimulus '1_kite_failed_managed_nonref 2'"):
        load.pairs(stimuli[:-1], "stimuli")


def test_a_line_that_is_no_stimulus_is_named(tmp_path: Path) -> None:
    """The error names the file and the line."""
    file = tmp_path / "stimuli.jsonl"
    file.write_text('{"id": "1_kite_know", "type": "know"}\n["id", "type"]\n')
    with pytest.raises(DataError, match=r"stimuli.jsonl:2: not a stimulus"):
        load.read(file)
