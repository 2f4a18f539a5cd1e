"""Items drawn from a seed: the published design, none of its nouns, and what must not be drawn."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.lieder import load, score
from lm_eval_ext.benchmarks.lieder.fresh import draw
from lm_eval_ext.benchmarks.lieder.fresh.lexicon import Frame, Noun, Predicate, lexicon, text
from lm_eval_ext.benchmarks.lieder.fresh.load import dataset
from lm_eval_ext.benchmarks.lieder.records import FAMILIES, NONREFERENTIAL, Experiment
from lm_eval_ext.cards import cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.statistics import figure
from lm_eval_ext.stats.table import frame as table_of

EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")

THEIRS = {
    "1_dog": draw.Item(
        Noun("a", "dog", "dogs"),
        Frame("own _", "owns _", "doesn't", "adopt _"),
        Predicate("is very cute", "are very cute"),
        ("John", "Mark"),
    ),
    "7_beer": draw.Item(
        Noun("a", "beer", "beers"),
        Frame("order _ at the bar", "ordered _ at the bar", "didn't", "order _ at the bar"),
        Predicate("was warm", "were warm"),
        ("Sam", "Kate"),
    ),
    "13_bed": draw.Item(
        Noun("a", "bed", "beds"),
        Frame("buy _", "bought _", "didn't", "buy _"),
        Predicate("was delivered the next day", "were delivered the next day"),
        ("Luke", "Rachel"),
    ),
}
"""Three of the published items as ours are made."""

DIGESTS = {
    "base": "2523400ff2f25962",
    "diff": "7f0c43ab22fe4f92",
    "two": "48152365c568df77",
}
"""Of the default 200 items under the seed 7 for all benchmarks."""


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_published_items_come_out_as_published(
    real_data: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All contexts, continuations and judgments; the non-referential sentence is our own."""
    monkeypatch.setattr(draw, "items", lambda count, seed: list(THEIRS.values())[:count])
    ours = draw.groups(3, "", experiment)
    published = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)
    theirs = [group for group in published if group.item in THEIRS]
    assert len(theirs) == len(ours) == 9
    for one, other in zip(ours, theirs, strict=True):
        assert one.family == other.family
        for mine, sentence in zip(one.sentences, other.sentences, strict=True):
            assert (mine.condition, mine.context) == (sentence.condition, sentence.context)
            assert mine.felicitous == sentence.felicitous
            same = mine.continuation == sentence.continuation
            assert same != mine.condition.endswith(NONREFERENTIAL)


def test_no_published_noun(real_data: Path) -> None:
    rows = (real_data / "lieder/stimuli/base_stimuli.jsonl").read_text().splitlines()
    published = {json.loads(row)["id"].split("_")[1] for row in rows} | {"tonic"}
    assert len(published) == 17
    ours = {
        word for one in lexicon().classes.values() for n in one.nouns for word in n.singular.split()
    }
    assert not published & ours


def test_the_lexicon_is_as_large_as_the_page_says() -> None:
    classes = lexicon().classes.values()
    assert len(lexicon().names) == len(set(lexicon().names)) == 102
    assert [
        sum(len(getattr(one, kind)) for one in classes)
        for kind in ("nouns", "frames", "predicates")
    ] == [240, 76, 190]
    nouns = [noun.singular for one in classes for noun in one.nouns]
    assert len(set(nouns)) == len(nouns)
    assert "|" not in "".join(map(str, classes))


def test_words_that_spoil_the_design_are_not_there() -> None:
    unfit = {reason: set(words) for reason, words in lexicon().unfit.items()}
    verbs = unfit["shareable"] | unfit["there_already"]
    for name, one in lexicon().classes.items():
        for frame in one.frames:
            assert not {frame.base.split()[0], frame.attempt.split()[0]} & verbs, (name, frame)
            assert frame.base.split("_")[1] == frame.finite.split("_")[1]
            assert (frame.auxiliary == "doesn't") == frame.finite.split()[0].endswith("s")
        for noun in one.nouns:
            assert noun.singular not in unfit["nouns"]
            assert noun.plural != noun.singular
            assert (noun.article == "an") == (noun.singular[0] in "aeiou") or noun.singular[:2] in (
                "un",
                "uk",
            )
        for predicate in one.predicates:
            words = re.findall(r"[\w']+", f"{predicate.singular} {predicate.plural}")
            assert not unfit["predicates"] & set(words), predicate


AGREEMENT = {"is": "are", "was": "were", "has": "have", "it": "they", "its": "their"}


def test_predicates_agree() -> None:
    for one in lexicon().classes.values():
        for predicate in one.predicates:
            singular, plural = predicate.singular.split(), predicate.plural.split()
            for word in AGREEMENT.keys() & set(singular):
                expected = {AGREEMENT[word], "them"} if word == "it" else {AGREEMENT[word]}
                assert expected & set(plural), predicate
                assert word not in plural, predicate
            assert not {*AGREEMENT.values(), "them"} & set(singular), predicate
            if re.search(r"[^su]s$", singular[0]):
                assert plural[0] != singular[0], predicate


def test_what_repeats_a_word_is_not_combined() -> None:
    ring = lexicon().classes["jewellery"].nouns[2]
    fitting = draw._fitting()[ring]
    made = [(f, p) for f, p in fitting if "made" in f.finite or "made" in p.singular]
    assert made
    assert not [1 for f, p in made if "made" in f.finite and "made" in p.singular]
    assert draw.capacity() == 9596


def test_items_of_a_seed() -> None:
    items = draw.items(300, "seed 3")
    assert items[:40] == draw.items(40, "seed 3")
    assert items != draw.items(300, "seed 4")
    nouns = [item.noun for item in items]
    assert len(set(nouns[:240])) == 240, "no noun twice before all have come"
    assert len({(item.noun, item.frame, item.predicate) for item in items}) == 300
    for item in items:
        assert item.owners[0][0] != item.owners[1][0]
    assert len({name for item in items[:50] for name in item.owners}) >= 99


def test_all_items_can_be_drawn() -> None:
    items = draw.items(draw.capacity(), "seed 0")
    assert len({(item.noun, item.frame, item.predicate) for item in items}) == 9596


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_same_seed_gives_the_same_bytes(experiment: Experiment) -> None:
    documents = dataset(lieder_experiment=experiment, fresh=7)["test"]
    (checksum,) = documents.info.download_checksums.values()
    assert checksum["checksum"].startswith(DIGESTS[experiment])
    drawn = [
        context + ending
        for doc in documents
        for context, ending in zip(doc["context"], doc["continuation"], strict=True)
    ]
    again = hashlib.sha256("\n".join((text(), *drawn)).encode()).hexdigest()
    assert again == checksum["checksum"]
    assert len(drawn) == 7200
    assert len(set(documents["item"])) == 200
    assert documents["family"][:3] == list(FAMILIES)


def test_scores_are_lieders() -> None:
    """What a perfect reader gives, under every experiment; distance and undefined aside."""
    for experiment in EXPERIMENTS:
        (doc, *_) = dataset(lieder_experiment=experiment, lieder_items=1)["test"]
        answers = [
            (-1.0 if name in doc["felicitous"] else -5.0 if "nonref" not in name else -3.0, False)
            for name in doc["condition"]
        ]
        scored = score.process_results(doc, answers)
        for metric in score.metric_list(experiment):
            if metric.startswith(("comparisons_with_two", "direct")) and "distance" not in metric:
                found = cards()["lieder"].question_of(metric)
                rows = table_of([("a", "a", (doc["item"],), scored)])
                assert figure(rows, found).value == 1.0, metric


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lieder_items": 0}, "lieder_items is 0; use a whole number from 1 to 9596"),
        ({"lieder_items": "40"}, "lieder_items is '40'; use"),
        ({"lieder_items": 9597}, "lieder_items is 9597; use"),
        ({"lieder_seed": "x"}, "lieder_seed is 'x'; use a whole number"),
        ({"lieder_seed": 1.5}, "lieder_seed is 1.5; use"),
        ({"lieder_experiment": "mini"}, "no LIEDER experiment 'mini' to draw; use base, diff, two"),
        ({"fresh": "7"}, "fresh is '7'; use a whole number from 0 to 999999"),
        ({"fresh": -1}, "fresh is -1; use"),
        ({"fresh": True}, "fresh is True; use"),
        ({"fresh": 7, "lieder_seed": 2}, "fresh and lieder_seed are both given"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        dataset(**options)


def test_published_items_are_not_asked_under_a_seed() -> None:
    with pytest.raises(OptionError, match="lieder_mini has a fixed set; use lieder_fresh"):
        load.dataset(lieder_experiment="mini", fresh=7)
