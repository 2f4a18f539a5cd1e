"""Discourse entities: every figure of the authors' recordings, and what is asked."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.discourse_entities import load, score
from lm_eval_ext.cards import cards
from lm_eval_ext.errors import DataError
from lm_eval_ext.stats.measures import Question

Rows = list[Mapping[str, Any]]
VALUES = {"accuracy": "correct", "systematicity": "systematic", "same_noun": "same_noun"}
LABELS = {
    "gpt2": "GPT-2", "gpt2-medium": "GPT-2 M", "gpt2-large": "GPT-2 L",
    "gpt2-xl": "GPT-2 XL", "gpt3": "GPT-3", "human": "humans",
}  # fmt: skip


@pytest.fixture
def folder(real_data: Path) -> Path:
    found = real_data / "discourse_entities"
    if not found.is_dir():
        pytest.skip("the authors' recordings (discourse_entities) are not available here")
    return found


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def recorded(folder: Path, kind: str, model: str, *, relabelled: bool) -> Iterator[Any]:
    """The rows of a recorded run, by the scoring function that tasks have."""
    found = {}
    for row in read(folder / f"recorded/{kind}.{model}.csv"):
        expected = row.get("expected") == "1"
        if relabelled and model != "gpt2" and row["id"].startswith("15_"):
            expected = not expected
        key = (row["id"], row.get("pronoun", row.get("order")), expected)
        found[key] = float(row["continuation_log_prob"])
    for doc in load.dataset(discourse_entities_set=kind)["test"]:
        if kind == "single":
            contexts = [f"{doc['item']}_{name}" for name in load.SINGLE[doc["pair"]]]
            keys = [(name, about, False) for name in contexts for about in ("it", "subj")]
        else:
            end = "ref" if doc["kind"] == "coref" else "nonref"
            both = dict(zip(("first", "second"), load.PAIRS[doc["pair"]], strict=True))
            keys = [
                (f"{doc['item']}_{both[clauses]}_{end}", nouns, expected)
                for clauses, nouns in zip(doc["clauses"], doc["nouns"], strict=True)
                for expected in (True, False)
            ]
        yield from score.process_results(doc, [(found[key], False) for key in keys])


def people(folder: Path) -> Iterator[dict[str, Any]]:
    """Responses, with the labels of item 15 exchanged where there are two nouns, as in R."""
    for row in read(folder / "human/exp2_responses.csv"):
        type_ = row["type"]
        pairs = [pair for pair, both in load.PAIRS.items() if type_ in both]
        right = (row["response"] == "exp") != (row["id"].startswith("15_") and bool(pairs))
        about = "coref" if row["id"].endswith("_ref") else "noncoref"
        item = row["id"].split("_")[0]
        yield {"type": type_, "pair": "".join(pairs), "about": about, "item": item, "right": right}


def human_counts(folder: Path, row: Mapping[str, str]) -> tuple[int, int]:
    by_item: dict[Any, list[bool]] = defaultdict(list)
    for one in people(folder):
        if row["experiment"] == "single":
            by_item[one["type"], one["item"]].append(one["right"])
        elif (one["pair"], one["about"]) == (row["pair"], row["continuation"]):
            by_item[one["item"]].append(one["right"])
    shares = {key: sum(found) / len(found) for key, found in by_item.items()}
    if row["experiment"] == "single":
        # Expected is the pronoun after the first context, and the other sentence after the second.
        first, second = load.SINGLE[row["pair"]]
        items = {item for type_, item in by_item if type_ == first}
        return sum(shares[first, one] > 1 - shares[second, one] for one in items), len(items)
    if row["metric"] == "response_share":
        return sum(map(sum, by_item.values())), sum(map(len, by_item.values()))
    return sum(share > 0.5 for share in shares.values()), len(shares)


def published(row: Mapping[str, str]) -> float:
    """The card's figure."""
    card = cards()["discourse_entities"]
    where = {"pair": (row["pair"],)}
    if row["continuation"] in ("coref", "noncoref"):
        where["continuation"] = (row["continuation"],)
    asked = Question(card.question_of(row["metric"]).measure, where)
    task = f"discourse_entities_{row['experiment']}"
    return card.published(task, asked)[LABELS[row["model"]]]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("recorded", 110),
        ("recorded_item15_relabelled", 85),
        ("human_responses", 20),
        ("published_figure", 92),
    ],
)
def test_every_expected_figure(folder: Path, source: str, count: int) -> None:
    rows = [row for row in read(folder / "expected.csv") if row["source"] == source]
    assert len(rows) == count

    @cache
    def run(kind: str, model: str) -> Rows:
        return list(recorded(folder, kind, model, relabelled="relabelled" in source))

    for row in rows:
        expected = int(row["correct"]), int(row["n"])
        if source.startswith("recorded"):
            where = {"pair": row["pair"], "continuation": row["continuation"]}
            where = {key: one for key, one in where.items() if one not in ("all", "both", "")}
            value = VALUES[row["metric"]]
            scored = run(row["experiment"], row["model"])
            found = [one[value] for one in scored if value in one and where.items() <= one.items()]
            assert (sum(found), len(found)) == expected, row
        elif row["model"] == "human":
            assert human_counts(folder, row) == expected, row
        if row["metric"] == "response_share":
            row["metric"] = "accuracy"
        elif source != "published_figure" or row["metric"] == "accuracy_majority":
            continue
        assert published(row) == pytest.approx(float(row["value"]), abs=1e-6), row


def test_what_is_asked(folder: Path) -> None:
    """As the authors' files have it, but for a space at the end of 32 sentences."""
    single = load.dataset(discourse_entities_set="single")["test"]
    single = {one for doc in single for one in doc["continuation"]}
    for kind in ("single", "pairs"):
        asked = {
            context + continuation
            for doc in load.dataset(discourse_entities_set=kind)["test"]
            for context, continuation in zip(doc["context"], doc["continuation"], strict=True)
        }
        name = {"single": "full_sentence", "pairs": "2nouns_full_sentence"}[kind]
        path = folder / f"stimuli/{name}_hand_written_stimuli.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        texts = [row[key] for row in rows for key in row if key.endswith("sentence")]
        assert sum(text != text.strip() for text in texts) == (0 if kind == "single" else 32)
        assert asked == {text.strip() for text in texts}
    assert {one.split()[0].lower() for one in single} == {"it", "it's"}, "they begin so"


RIGHT, WRONG, EQUAL, UNDEFINED = (-1.0, -2.0), (-2.0, -1.0), (-1.0, -1.0), (float("nan"), -1.0)


@pytest.mark.parametrize(
    ("logprobs", "systematic", "same_noun"),
    [
        ([RIGHT] * 4, 1, 0),
        ([WRONG] * 4, 0, 0),
        ([RIGHT, WRONG, WRONG, RIGHT], 0, 1),
        ([WRONG, RIGHT, RIGHT, WRONG], 0, 1),
        *(([RIGHT, RIGHT, RIGHT, last], 0, 0) for last in (WRONG, EQUAL, UNDEFINED)),
    ],
)
def test_four_orders(logprobs: list[tuple[float, float]], systematic: int, same_noun: int) -> None:
    doc = load.dataset(discourse_entities_set="mini")["test"][0]
    *single, whole = score.process_results(doc, [(one, False) for two in logprobs for one in two])
    assert [row["correct"] for row in single] == [float(two == RIGHT) for two in logprobs]
    assert (whole["systematic"], whole["same_noun"]) == (systematic, same_noun)


def test_our_sentences_expect_what_the_paper_says() -> None:
    """The noun that is negated, doubted, wished for or failed at is not referred to."""
    docs = load.dataset(discourse_entities_set="mini")["test"]
    assert len({doc["item"] for doc in docs}) * 8 == len(docs) == 32
    without = ("not", "hope", "plan", "meant", "wish", "doubt", "failed")
    for doc in docs:
        for context, continuation in zip(
            doc["context"][::2], doc["continuation"][::2], strict=True
        ):
            clauses = context.rstrip(".").split(" but ")
            (named,) = [one for one in clauses if one.split()[-1] in continuation]
            denied = any(word in named for word in without)
            assert denied == (doc["kind"] == "noncoref"), (context, continuation)


def test_a_stimulus_without_its_partner_is_named(tmp_path: Path) -> None:
    one = {"id": "1_kite_know", "type": "know", "i_sentence": "It flew.", "s_sentence": "It's."}
    with pytest.raises(DataError, match="no stimulus '1_kite_affirmative'"):
        load.single([one], "stimuli")
    item = {"item": "1_kite", "nouns": ["a kite", "an owl"], "contexts": defaultdict(str)}
    rows = list(load.written([{**item, "ref": "The {}", "nonref": "The {} that"}]))
    assert len(load.pairs(rows, "stimuli")) == 8
    with pytest.raises(DataError, match="stimuli: no stimulus '1_kite_failed_managed_nonref 2'"):
        load.pairs(rows[:-1], "stimuli")
    file = tmp_path / "stimuli.jsonl"
    file.write_text('{"id": "1_kite_know", "type": "know"}\n["id", "type"]\n')
    with pytest.raises(DataError, match=r"stimuli.jsonl:2: not a stimulus"):
        load.read(file)
