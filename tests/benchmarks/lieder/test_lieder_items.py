"""Items of our own: the published design, none of its words, and what must not be drawn."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.lieder import items, load, score
from lm_eval_ext.benchmarks.lieder.items import Item
from lm_eval_ext.benchmarks.lieder.records import (
    FAMILIES,
    FELICITOUS,
    FOUR_CONTEXTS,
    NONREFERENTIAL,
    Experiment,
    Group,
)
from lm_eval_ext.cards import cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.statistics import estimate
from lm_eval_ext.stats.table import frame as table_of

EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")

THEIRS = {
    "1_dog": Item("a", "dog", "dogs", ("John", "Mark"), "own _", "owns _", "does", "adopt _",
                  "is very cute", "are very cute"),
    "7_beer": Item("a", "beer", "beers", ("Sam", "Kate"), "order _ at the bar",
                   "ordered _ at the bar", "did", "order _ at the bar", "was warm", "were warm"),
    "13_bed": Item("a", "bed", "beds", ("Luke", "Rachel"), "buy _", "bought _", "did", "buy _",
                   "was delivered the next day", "were delivered the next day"),
}  # fmt: skip
"""Three of the published items as ours are made."""

DIGESTS = {
    "mini": "8c2707e9233513d7",
    "base": "620fd80c4d42684b",
    "diff": "073409f2b818fdf3",
    "two": "e7dbd6c5c774aded",
}
"""Of our groups, drawn under the default seed. A change here makes scores incomparable: raise the
tasks' versions, then renew it."""


def digest(groups: list[Group] | tuple[Group, ...]) -> str:
    text = json.dumps([[one.item, one.family, list(map(list, one.sentences))] for one in groups])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_same_seed_gives_the_same_bytes() -> None:
    found = {name: items.drawn(200, "seed 0", name) for name in EXPERIMENTS}
    assert {"mini": digest(items.mini())} | {k: digest(v) for k, v in found.items()} == DIGESTS
    assert {len(groups) for groups in found.values()} == {600}
    assert [group.family for group in found["base"][:3]] == list(FAMILIES)
    documents = load.drawn(lieder_experiment="diff", fresh=7)["test"]
    seeded = load.drawn(lieder_experiment="diff", lieder_seed=7)["test"]
    assert documents["item"] != seeded["item"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_published_items_come_out_as_published(
    real_data: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All contexts, continuations and judgments; the non-referential sentence is our own."""
    monkeypatch.setattr(items, "draw", lambda count, seed: list(THEIRS.values())[:count])
    ours = items.drawn(3, "", experiment)
    published = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)
    theirs = [group for group in published if group.item in THEIRS]
    assert len(theirs) == len(ours) == 9
    for one, other in zip(ours, theirs, strict=True):
        assert one.family == other.family
        for mine, sentence in zip(one.sentences, other.sentences, strict=True):
            same = mine == sentence
            assert same != mine.condition.endswith(NONREFERENTIAL)
            assert mine._replace(continuation="") == sentence._replace(continuation="")


def test_mini_has_the_design_of_experiment_1() -> None:
    groups, families = items.mini(), list(items.words("mini")["families"])
    names = list(dict.fromkeys(group.item for group in groups))
    assert len(names) >= 16
    assert [(g.item, g.family) for g in groups] == [(i, f) for i in names for f in families]
    ends = ("s", "p", NONREFERENTIAL)
    for group in groups:
        judged = {one.condition: one.felicitous for one in group.sentences}
        assert list(judged) == [f"{context}_{end}" for context in FOUR_CONTEXTS for end in ends]
        assert {name for name, right in judged.items() if right} == FELICITOUS & judged.keys()
        for one in group.sentences:
            assert re.fullmatch(r"[A-Z][^.]*\.", one.context), one
            assert re.fullmatch(r" [A-Z][^.]*\.", one.continuation), one
            text = one.context + one.continuation
            assert not re.search(r"  |[_|]|\ba [aeiou]|\ban [^aeiou]", text), text
    texts = [one.context + one.continuation for group in groups for one in group.sentences]
    assert len(texts) == len(set(texts))


def test_nothing_is_taken_from_lieder(shared_data: Path) -> None:
    """None of mini's words, so none of its sentences, and no noun that is drawn."""
    files = [shared_data / f"lieder/stimuli/{name}_stimuli.jsonl" for name in EXPERIMENTS]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    published = set(re.findall(r"\w+", " ".join(row["sent"] for row in rows)))
    for item in items.mini_items():
        own = {item.noun, item.plural, *item.owners, item.base, item.finite, item.attempt}
        assert not own & published
    nouns = {row["id"].split("_")[1] for row in rows} | {"tonic"}
    ours = [noun.noun for found, _, _ in items.classes().values() for noun in found]
    assert len(nouns) == 17 and not nouns & set(" ".join(ours).split())


def test_words_that_spoil_the_design_are_not_there() -> None:
    unfit = {reason: set(words) for reason, words in items.words("lexicon")["unfit"].items()}
    verbs = unfit["shareable"] | unfit["there_already"]
    for name, (nouns, frames, predicates) in items.classes().items():
        for frame in frames:
            assert not {frame.base.split()[0], frame.attempt.split()[0]} & verbs, (name, frame)
            assert frame.base.split("_")[1] == frame.finite.split("_")[1]
            assert (frame.auxiliary == "does") == frame.finite.split()[0].endswith("s")
        for noun in nouns:
            assert noun.noun not in unfit["nouns"]
            assert noun.plural != noun.noun
            misleading = noun.noun[:2] in ("un", "uk")
            assert misleading or (noun.article == "an") == (noun.noun[0] in "aeiou")
        for one in predicates:
            assert not unfit["predicates"] & set(re.findall(r"[\w']+", " ".join(one)))
            singular, plural = (set(text.split()) for text in one)
            assert not {"are", "were", "have", "their"} & singular, one
            assert not {"is", "was", "has", "its"} & plural, one


def test_what_repeats_a_word_is_not_combined() -> None:
    ring = items.classes()["jewellery"][0][2]
    made = [("made" in f.finite, "made" in p[0]) for f, p in items.fitting()[ring]]
    assert {(True, False), (False, True)} <= set(made)
    assert (True, True) not in made


def test_items_of_a_seed() -> None:
    drawn = items.draw(300, "seed 3")
    assert drawn[:40] == items.draw(40, "seed 3")
    assert drawn != items.draw(300, "seed 4")
    assert len({item.noun for item in drawn[:240]}) == 240, "no noun twice before all have come"
    for item in drawn:
        assert item.owners[0][0] != item.owners[1][0]
    assert len({name for item in drawn[:50] for name in item.owners}) >= 99
    every = items.draw(items.capacity(), "seed 0")
    assert len({(one.noun, one.base, one.predicate_singular) for one in every}) == 9596


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_perfect_reader_is_right_everywhere(experiment: Experiment) -> None:
    """Distance, which is no requirement, aside."""
    (doc, *_) = load.drawn(lieder_experiment=experiment, lieder_items=1)["test"]
    likely = {True: -1.0, False: -5.0}
    answers = [
        (-3.0 if "nonref" in name else likely[name in doc["felicitous"]], False)
        for name in doc["condition"]
    ]
    rows = table_of([("a", "a", (doc["item"],), score.process_results(doc, answers))])
    card = cards()["lieder"]
    values = {one: estimate(rows, card.question_of(one)).value for one in card.metrics}
    del values["direct/distance"]
    assert values.pop("undefined") == 0.0
    absent = {name for name, value in values.items() if value is None}
    two = {"relative", "relative/affirmative_negation"}
    assert absent == (two if experiment == "two" else {"comparisons_with_two"})
    assert {values[name] for name in values.keys() - absent} == {1.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lieder_items": 0}, "lieder_items: Input should be greater than or equal to 1, got 0"),
        ({"lieder_items": 9597}, "lieder_items is 9597; use 1 to 9596"),
        ({"lieder_experiment": "mini"}, "lieder_experiment: Input should be 'base', 'diff' or"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        load.drawn(**options)
