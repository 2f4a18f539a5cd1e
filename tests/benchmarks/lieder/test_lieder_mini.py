"""lieder_mini has LIEDER's design and none of its text."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pydantic
import pytest

from lm_eval_ext.benchmarks.lieder import mini
from lm_eval_ext.benchmarks.lieder.records import FOUR_CONTEXTS, Group, Sentence

DIGEST = "1c754ebe919c9e2fb6a95b2d6b7d092c6c8fa8c705af00b8b40487e4dc4fe931"
"""A change here makes scores incomparable: raise the task's version, then renew this."""

CONDITIONS = [f"{context}_{ending}" for context in FOUR_CONTEXTS for ending in ["s", "p", "nonref"]]

SENTENCES = [sentence for group in mini.groups() for sentence in group.sentences]


def test_every_item_comes_in_every_family_with_twelve_conditions() -> None:
    groups = mini.groups()
    items = list(dict.fromkeys(group.item for group in groups))
    assert len(items) >= 16
    assert [(g.item, g.family) for g in groups] == [(i, f) for i in items for f in mini.FAMILIES]
    for group in groups:
        assert [s.condition for s in group.sentences] == CONDITIONS


def test_felicity_is_as_in_lieder() -> None:
    for group in mini.groups():
        judged = {s.condition: s.felicitous for s in group.sentences}
        assert {c for c, felicitous in judged.items() if felicitous} == {
            "pos_neg_s",
            "neg_pos_s",
            "pos_pos_p",
        }
        assert {c for c, felicitous in judged.items() if felicitous is None} == {
            f"{context}_nonref" for context in FOUR_CONTEXTS
        }


def test_one_item_word_for_word() -> None:
    kite = {g.family: {s.condition: s for s in g.sentences} for g in mini.groups()[3:6]}
    assert [kite["plain_negated"][f"{c}_s"].context for c in FOUR_CONTEXTS] == [
        "Mei sewed a kite, whereas Oscar did not sew a kite.",
        "Mei sewed a kite, and Oscar also sewed a kite.",
        "Mei did not sew a kite, whereas Oscar sewed a kite.",
        "Mei did not sew a kite, nor did Oscar sew a kite.",
    ]
    assert [kite["certain_unlikely"][f"{c}_s"].context for c in FOUR_CONTEXTS] == [
        "It is certain that Mei sewed a kite, but it is unlikely that Oscar sewed a kite.",
        "It is certain that Mei sewed a kite, and it is equally certain that Oscar sewed a kite.",
        "It is unlikely that Mei sewed a kite, but it is certain that Oscar sewed a kite.",
        "It is unlikely that Mei sewed a kite, and it is equally unlikely that Oscar sewed a kite.",
    ]
    assert [kite["able_unable"][f"{c}_s"].context for c in FOUR_CONTEXTS] == [
        "Mei was able to sew a kite, whereas Oscar was unable to sew a kite.",
        "Mei was able to sew a kite, and Oscar was likewise able to sew a kite.",
        "Mei was unable to sew a kite, whereas Oscar was able to sew a kite.",
        "Mei was unable to sew a kite, and Oscar was likewise unable to sew a kite.",
    ]
    assert [s.continuation for s in kite["able_unable"].values()][:3] == [
        " The kite flies higher than the chimney.",
        " The kites fly higher than the chimney.",
        " None of this surprises anyone.",
    ]


def test_sentences_join_into_english_text() -> None:
    for s in SENTENCES:
        assert re.fullmatch(r"[A-Z][^.]*\.", s.context), s
        assert re.fullmatch(r" [A-Z][^.]*\.", s.continuation), s
        text = s.context + s.continuation
        assert "  " not in text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text), text


def test_contexts_and_continuations_tell_the_conditions_apart() -> None:
    for group in mini.groups():
        assert len({s.context for s in group.sentences}) == 4
        assert len({s.continuation for s in group.sentences}) == 3
    assert set(Counter(s.context + s.continuation for s in SENTENCES).values()) == {1}


def test_no_two_items_share_a_noun_or_a_person() -> None:
    people = [name for item in mini.items() for name in item.owners]
    assert len(set(people)) == len(people)
    assert len({item.noun for item in mini.items()}) == len(mini.items())


def test_nothing_is_taken_from_lieder(shared_data: Path) -> None:
    texts = [
        json.loads(line)["sent"]
        for name in ("base", "diff", "two")
        for line in (shared_data / f"lieder/stimuli/{name}_stimuli.jsonl").read_text().splitlines()
    ]
    joined = "\n".join(texts)
    for s in SENTENCES:
        assert s.context not in joined
        assert s.continuation.strip() not in joined
    words = set(re.findall(r"\w+", joined))
    for item in mini.items():
        own = {item.noun, item.plural, *item.owners, item.base, item.finite, item.attempt}
        assert not own & words


def test_digest_is_pinned() -> None:
    assert mini.digest() == DIGEST


def _with_first(**change: str | bool) -> list[Group]:
    """The dataset with one sentence changed."""
    first, *others = mini.groups()
    sentence = Sentence(**{**vars(first.sentences[0]), **change})
    return [Group(first.item, first.family, (sentence, *first.sentences[1:])), *others]


@pytest.mark.parametrize(
    "change",
    [
        {"context": "Farah keeps a goat."},
        {"continuation": " The goat sleeps."},
        {"condition": "pos_pos_s"},
        {"felicitous": False},
    ],
)
def test_digest_shows_a_change_of_a_sentence(
    change: dict[str, str | bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, changed = mini.digest(), _with_first(**change)
    monkeypatch.setattr(mini, "groups", lambda: changed)
    assert mini.digest() != before


def test_digest_shows_a_change_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    before, text = mini.digest(), mini.embedded_items()
    monkeypatch.setattr(mini, "embedded_items", lambda: text + "#\n")
    assert mini.digest() != before


def test_a_misspelt_field_of_an_item_is_refused() -> None:
    item = mini.items()[0].model_dump()
    with pytest.raises(pydantic.ValidationError, match="plurall"):
        mini.parse_items([{**item, "plurall": "goats"}])


def test_import_reads_no_data() -> None:
    script = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda e, a: opened.append(str(a[0])) if e == 'open' else None)\n"
        "from lm_eval_ext.benchmarks.lieder import mini\n"
        "assert not any(name.endswith('.yaml') for name in opened), opened\n"
        "mini.groups()\n"
        "assert any(name.endswith('mini.yaml') for name in opened)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
