"""From a corpus to documents: their selection, order and prompts."""

from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora, load
from lm_eval_ext.benchmarks.magnifico.documents import (
    PromptKind,
    Setting,
    chosen,
    documents,
    overlapping,
)
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    Corpus,
    Database,
    Description,
    Example,
    Form,
    Interpretation,
)
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql import place_of


def interpretation(name: str, category: str = "basic") -> Interpretation:
    return Interpretation(name, category, f"the {name}", {form: f"{form}-{name}" for form in NOVEL})


def example(name: str, index: int, form: Form, db_id: str = "One") -> Example:
    return Example(
        f"{name}/{index}",
        tuple(name.split("+")),
        form,
        db_id,
        f"{form} {index}?",
        f"select {index}",
    )


@pytest.fixture
def corpus() -> Corpus:
    forms = (BASE, *NOVEL)
    names = ("big", "small")
    return Corpus(
        interpretations={name: interpretation(name) for name in names},
        examples=tuple(
            example(name, index, form) for name in names for form in forms for index in range(3)
        ),
        support={
            (name, form): tuple(example(name, 100 + index, form) for index in range(5))
            for name in names
            for form in forms
        },
        combinations=tuple(example("big+small", 7, form) for form in forms),
        dialogues={
            ("big", form, "one"): {"start": f"{form} start", "mid": f"{form} mid"}
            | ({} if form == BASE else {"end": f"{form} end"})
            for form in (BASE, "plausible")
        },
        databases={"one": Database(place_of(Path("one.sqlite")))},
    )


def made(corpus: Corpus, setting: Setting) -> list[dict[str, str]]:
    return documents(corpus, setting, {"one": ["T1", "T2", "T3"]}, {}).documents


def test_the_forms_of_a_template_follow_each_other_and_interpretations_take_turns(
    corpus: Corpus,
) -> None:
    ids = [one.id for one in chosen(corpus, Setting())]
    assert ids[:8] == [f"{name}/0/{form}" for name in ("big", "small") for form in (BASE, *NOVEL)]
    assert ids[8].startswith("big/1/")
    assert len(ids) == len(set(ids)) == 24


def test_a_description_task_describes_novel_forms_only(corpus: Corpus) -> None:
    by_id = {doc["id"]: doc["prompt"] for doc in made(corpus, Setting(prompt="desc"))}
    assert "refers to" not in by_id["big/0/base"]
    assert "-- The word 'foreign-big' refers to the big.\n" in by_id["big/0/foreign"]
    direct = {doc["id"]: doc["prompt"] for doc in made(corpus, Setting())}
    assert direct["big/0/base"] == by_id["big/0/base"]
    assert all("refers to" not in text for text in direct.values())


def test_few_shot_prompts_hold_the_support_of_their_own_form(corpus: Corpus) -> None:
    by_id = {doc["id"]: doc["prompt"] for doc in made(corpus, Setting(prompt="fewshot"))}
    for form in (BASE, *NOVEL):
        assert by_id[f"big/0/{form}"].count(f"-- {form} 10") == 5
        assert by_id[f"big/0/{form}"].endswith(f"-- {form} 0?\nSELECT")


def test_two_interpretations_have_two_descriptions_or_three_examples_of_each(
    corpus: Corpus,
) -> None:
    described = made(corpus, Setting(subset="combinations", prompt="desc"))
    assert [doc["form"] for doc in described] == [BASE, *NOVEL]
    both = "-- The word 'foreign-big' refers to the big. The word 'foreign-small' refers to the "
    assert f"\n{both}small.\n" in described[2]["prompt"]
    assert described[1]["category"] == "multiple"
    shown = made(corpus, Setting(subset="combinations", prompt="fewshot"))[1]["prompt"]
    assert [shown.count(f"-- plausible 10{index}?") for index in range(5)] == [2, 0, 2, 0, 2]


WORDS: dict[Form, str] = {"foreign": "bogla", "adversarial": "adversarial-big"}
DESCRIBED = {
    "big": Description("concept_word is said of large ones.", {"plausible": "bigly", **WORDS}),
    "small": Description("little ones are meant.", {}),
}


def test_the_authors_descriptions_name_the_word_of_their_list(corpus: Corpus) -> None:
    theirs = replace(corpus, descriptions=DESCRIBED)
    by_id = {doc["id"]: doc["prompt"] for doc in made(theirs, Setting(prompt="desc"))}
    assert "\n-- bigly is said of large ones.\n" in by_id["big/0/plausible"]
    assert "\n-- adversarial-big is said of large ones.\n" in by_id["big/0/adversarial"]
    # Not the list's: nobody could know that both invented words mean the same.
    assert "\n-- foreign-big is said of large ones.\n" in by_id["big/0/foreign"]
    # A phrase's has no place for a word.
    assert "\n-- little ones are meant.\n" in by_id["small/0/plausible"]
    assert "large" not in by_id["big/0/base"]
    # Two words are described as the question has them.
    described = made(theirs, Setting(subset="combinations", prompt="desc"))
    line = "\n\n-- plausible-big is said of large ones. little ones are meant.\n\n"
    assert line in described[1]["prompt"]


def overlapping_corpus(corpus: Corpus) -> Corpus:
    """One adversarial support example of ``big`` has the gold query of the second template."""
    support = dict(corpus.support)
    same = replace(support["big", "adversarial"][3], query="select 1", db_id="ONE")
    support["big", "adversarial"] = (*support["big", "adversarial"][:3], same)
    return replace(corpus, support=support)


@pytest.mark.parametrize("kind", ["direct", "desc", "fewshot", "desc_fewshot"])
def test_templates_that_stand_in_their_support_are_dropped_on_request(
    corpus: Corpus, kind: PromptKind
) -> None:
    changed = overlapping_corpus(corpus)
    kept = {doc["id"] for doc in made(changed, Setting(prompt=kind))}
    left = {doc["id"] for doc in made(changed, Setting(prompt=kind, overlap="drop"))}
    assert kept - left == {f"big/1/{form}" for form in (BASE, *NOVEL)}
    # Only the forms that are asked count.
    plausible = Setting(prompt=kind, forms=("plausible",), overlap="drop")
    assert len(made(changed, plausible)) == len(made(corpus, plausible)) == 12


def test_51_real_examples_of_a_form_also_stand_in_their_support(shared_data: Path) -> None:
    corpus = corpora.read(shared_data / "magnifico/magnifico_data")
    for form in NOVEL:
        asked = [one for one in chosen(corpus, Setting(forms=(form,))) if one.form == form]
        assert len(overlapping(corpus, asked)) == 51
    everything = chosen(corpus, Setting())
    left = chosen(corpus, Setting(overlap="drop"))
    gone = overlapping(corpus, everything)
    assert {one.template for one in everything} - {one.template for one in left} == gone
    assert not overlapping(corpus, left)
    page = (Path(__file__).parents[3] / "docs/benchmarks/magnifico.md").read_text(encoding="utf-8")
    assert f"{len(everything) - len(left)} of {len(everything):,} examples" in page


def test_dialogues_stand_first_and_base_ones_at_the_start(corpus: Corpus) -> None:
    setting = Setting(subset="dialogues", prompt="dialogue", forms=("plausible",))
    by_id = {doc["id"]: doc["prompt"] for doc in made(corpus, setting)}
    assert len(by_id) == 6
    assert by_id["big/0/base"].startswith("base start\n\nUser1: Suppose")
    assert by_id["big/0/plausible"].startswith("plausible end\n\nUser1: Suppose")


def test_what_cannot_be_scored_is_named_by_cause(corpus: Corpus) -> None:
    elsewhere = Corpus(
        interpretations=corpus.interpretations,
        examples=(*corpus.examples, example("big", 9, BASE, "Two")),
        support=corpus.support,
        databases=corpus.databases,
    )
    gold_errors = {("one", "select 2"): "no such column"}
    chosen_set = documents(elsewhere, Setting(), {"one": ["T"]}, gold_errors)
    excluded = chosen_set.excluded
    assert excluded["database_missing"] == ["big/9/base"]
    assert len(excluded["gold_error"]) == 8
    assert all(id_.split("/")[1] == "2" for id_ in excluded["gold_error"])
    assert len(chosen_set.documents) == 16


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("subset", "word", "Input should be 'words', .* got 'word'"),
        ("forms", "base", ".* got 'base'"),
        ("forms", "foreign, foreign", "name each form once"),
        ("overlap", "no", ".* got 'no'"),
    ],
)
def test_options_are_checked(name: str, value: str, message: str) -> None:
    with pytest.raises(OptionError, match=rf"magnifico_{name}.*{message}"):
        load.dataset.options({f"magnifico_{name}": value})
