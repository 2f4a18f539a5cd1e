"""From a corpus to documents: their selection, order and prompts."""

from collections import Counter
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.documents import Setting, chosen, documents
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    Corpus,
    Database,
    Example,
    Form,
    Interpretation,
)
from lm_eval_ext.errors import OptionError


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
        databases={"one": Database(Path("one.sqlite"))},
    )


def made(corpus: Corpus, setting: Setting) -> list[dict[str, str]]:
    return documents(corpus, setting, {"one": ["T1", "T2", "T3"]}.__getitem__, {})[0]


def test_the_forms_of_a_template_follow_each_other_and_interpretations_take_turns(
    corpus: Corpus,
) -> None:
    ids = [one.id for one in chosen(corpus, Setting())]
    assert ids[:8] == [f"{name}/0/{form}" for name in ("big", "small") for form in (BASE, *NOVEL)]
    assert ids[8].startswith("big/1/")
    assert len(ids) == len(set(ids)) == 24


def test_any_first_part_holds_every_form_alike(shared_data: Path) -> None:
    corpus = corpora.read(shared_data / "magnifico/magnifico_data", dialogues=False)
    first = chosen(corpus, Setting())[: 4 * 18]
    assert Counter(one.form for one in first) == dict.fromkeys((BASE, *NOVEL), 18)
    assert len({one.interpretations for one in first}) == 18


def test_a_description_task_describes_novel_forms_only(corpus: Corpus) -> None:
    by_id = {doc["id"]: doc["prompt"] for doc in made(corpus, Setting(kind="desc"))}
    assert "refers to" not in by_id["big/0/base"]
    assert "-- The word 'foreign-big' refers to the big.\n" in by_id["big/0/foreign"]
    direct = {doc["id"]: doc["prompt"] for doc in made(corpus, Setting())}
    assert direct["big/0/base"] == by_id["big/0/base"]
    assert all("refers to" not in text for text in direct.values())


def test_few_shot_prompts_hold_the_support_of_their_own_form(corpus: Corpus) -> None:
    by_id = {doc["id"]: doc["prompt"] for doc in made(corpus, Setting(kind="fewshot"))}
    for form in (BASE, *NOVEL):
        assert by_id[f"big/0/{form}"].count(f"-- {form} 10") == 5
        assert by_id[f"big/0/{form}"].endswith(f"-- {form} 0?\nSELECT")


def test_two_interpretations_have_two_descriptions_or_three_examples_of_each(
    corpus: Corpus,
) -> None:
    described = made(corpus, Setting(subset="combinations", kind="desc"))
    assert [doc["form"] for doc in described] == [BASE, *NOVEL]
    assert described[1]["prompt"].count("refers to") == 2
    assert described[1]["category"] == "multiple"
    shown = made(corpus, Setting(subset="combinations", kind="fewshot"))[1]["prompt"]
    assert [shown.count(f"-- plausible 10{index}?") for index in range(5)] == [2, 0, 2, 0, 2]


def test_dialogues_stand_first_and_base_ones_at_the_start(corpus: Corpus) -> None:
    setting = Setting("dialogues", "dialogue", "end", ("plausible",))
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
    docs, left_out = documents(
        elsewhere, Setting(), {"one": ["T"]}.__getitem__, {("one", "select 2"): "no such column"}
    )
    assert left_out["database_missing"] == ["big/9/base"]
    assert len(left_out["gold_error"]) == 8
    assert all(one.split("/")[1] == "2" for one in left_out["gold_error"])
    assert len(docs) == 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("word", "direct", "end", "plausible"), "magnifico_subset is 'word'; use words, "),
        (("words", "direkt", "end", "plausible"), "magnifico_prompt is 'direkt'"),
        (("words", "direct", "middle", "plausible"), "magnifico_position is 'middle'"),
        (("words", "direct", "end", "nonsense"), "magnifico_forms is 'nonsense'"),
        (("words", "direct", "end", "base"), "magnifico_forms is 'base'"),
        (("words", "direct", "end", "foreign, foreign"), "name each form once"),
        (("words", "direct", "end", ""), "magnifico_forms is ''"),
    ],
)
def test_options_are_checked(options: tuple[str, str, str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Setting.of_options(*options)
