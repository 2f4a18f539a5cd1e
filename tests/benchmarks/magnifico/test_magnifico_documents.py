"""From a corpus to documents: their selection, order and prompts."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Literal

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
    """Return an interpretation whose words name their form."""
    return Interpretation(name, category, f"the {name}", {form: f"{form}-{name}" for form in NOVEL})


def example(name: str, index: int, form: Form, db_id: str = "One") -> Example:
    """Return an example of an interpretation, or of two with + between their names."""
    return Example(
        f"{name}/{index}",
        tuple(name.split("+")),
        form,
        db_id,
        f"{form} {index}?",
        f"select {index}",
    )


FORMS: tuple[Form, ...] = (BASE, *NOVEL)


@pytest.fixture
def corpus() -> Corpus:
    """Return a corpus of two interpretations with three templates each, and one of both."""
    names = ("big", "small")
    examples: list[Example] = []
    support = {}
    for name, form in itertools.product(names, FORMS):
        examples.extend(example(name, index, form) for index in range(3))
        support[name, form] = tuple(example(name, 100 + index, form) for index in range(5))
    return Corpus(
        interpretations={name: interpretation(name) for name in names},
        examples=tuple(examples),
        support=support,
        combinations=tuple(example("big+small", 7, form) for form in FORMS),
        dialogues={
            ("big", BASE, "one"): {"start": "base start", "mid": "base mid"},
            ("big", "plausible", "one"): {
                "start": "plausible start",
                "mid": "plausible mid",
                "end": "plausible end",
            },
        },
        databases={"one": Database(place_of(Path("one.sqlite")))},
    )


SCHEMAS = {"one": ["T1", "T2", "T3"]}
"""The schema of the only database, as prompts show it."""


def documents_of(corpus: Corpus, setting: Setting) -> list[dict[str, str]]:
    """Return the documents of the corpus, none of whose golds fails."""
    return documents(corpus, setting, SCHEMAS, {}).documents


def prompts_of(corpus: Corpus, setting: Setting) -> dict[str, str]:
    """Return the prompt of each document."""
    return {doc["id"]: doc["prompt"] for doc in documents_of(corpus, setting)}


def ids_of(corpus: Corpus, setting: Setting) -> set[str]:
    """Return the names of the documents."""
    return set(prompts_of(corpus, setting))


def test_the_forms_of_a_template_follow_each_other_and_interpretations_take_turns(
    corpus: Corpus,
) -> None:
    """The first template of both interpretations comes before the second of the first."""
    ids = [each.id for each in chosen(corpus, Setting())]
    first_templates: list[str] = []
    for name in ("big", "small"):
        first_templates.extend(f"{name}/0/{form}" for form in FORMS)
    assert ids[:8] == first_templates
    assert ids[8].startswith("big/1/")
    assert len(ids) == 24
    assert len(set(ids)) == 24


def test_a_description_task_describes_novel_forms_only(corpus: Corpus) -> None:
    """A base prompt is the same as without descriptions, which direct prompts never have."""
    described = prompts_of(corpus, Setting(prompt="desc"))
    assert "refers to" not in described["big/0/base"]
    assert "-- The word 'foreign-big' refers to the big.\n" in described["big/0/foreign"]
    direct = prompts_of(corpus, Setting())
    assert direct["big/0/base"] == described["big/0/base"]
    for name, prompt in direct.items():
        assert "refers to" not in prompt, name


@pytest.mark.parametrize("form", FORMS)
def test_few_shot_prompts_hold_the_support_of_their_own_form(corpus: Corpus, form: Form) -> None:
    """All five solved examples stand before the question."""
    prompt = prompts_of(corpus, Setting(prompt="fewshot"))[f"big/0/{form}"]
    assert prompt.count(f"-- {form} 10") == 5
    assert prompt.endswith(f"-- {form} 0?\nSELECT")


def test_two_interpretations_have_two_descriptions(corpus: Corpus) -> None:
    """Both words of a combination are described in one line."""
    docs = documents_of(corpus, Setting(subset="combinations", prompt="desc"))
    assert [doc["form"] for doc in docs] == list(FORMS)
    big = "The word 'foreign-big' refers to the big."
    small = "The word 'foreign-small' refers to the small."
    assert f"\n-- {big} {small}\n" in docs[FORMS.index("foreign")]["prompt"]
    assert docs[FORMS.index("plausible")]["category"] == "multiple"


def test_two_interpretations_have_three_examples_of_each(corpus: Corpus) -> None:
    """The first, the third and the fifth of each are shown."""
    docs = documents_of(corpus, Setting(subset="combinations", prompt="fewshot"))
    prompt = docs[FORMS.index("plausible")]["prompt"]
    for index, times in enumerate([2, 0, 2, 0, 2]):
        assert prompt.count(f"-- plausible 10{index}?") == times, index


WORDS: dict[Form, str] = {"foreign": "bogla", "adversarial": "adversarial-big"}
DESCRIBED = {
    "big": Description("concept_word is said of large ones.", {"plausible": "bigly", **WORDS}),
    "small": Description("little ones are meant.", {}),
}


def test_the_authors_descriptions_name_the_word_of_their_list(corpus: Corpus) -> None:
    """But for foreign words: nobody could know that both invented words mean the same."""
    prompts = prompts_of(replace(corpus, descriptions=DESCRIBED), Setting(prompt="desc"))
    assert "\n-- bigly is said of large ones.\n" in prompts["big/0/plausible"]
    assert "\n-- adversarial-big is said of large ones.\n" in prompts["big/0/adversarial"]
    assert "\n-- foreign-big is said of large ones.\n" in prompts["big/0/foreign"]
    # A phrase's has no place for a word.
    assert "\n-- little ones are meant.\n" in prompts["small/0/plausible"]
    assert "large" not in prompts["big/0/base"]


def test_the_authors_descriptions_of_two_words_name_those_of_the_question(corpus: Corpus) -> None:
    """A combination does not use the list's word."""
    with_descriptions = replace(corpus, descriptions=DESCRIBED)
    docs = documents_of(with_descriptions, Setting(subset="combinations", prompt="desc"))
    line = "\n\n-- plausible-big is said of large ones. little ones are meant.\n\n"
    assert line in docs[FORMS.index("plausible")]["prompt"]


def overlapping_corpus(corpus: Corpus) -> Corpus:
    """Return a corpus in which a support example has the gold query of big's second template."""
    support = dict(corpus.support)
    same = replace(support["big", "adversarial"][3], query="select 1", db_id="ONE")
    support["big", "adversarial"] = (*support["big", "adversarial"][:3], same)
    return replace(corpus, support=support)


@pytest.mark.parametrize("kind", ["direct", "desc", "fewshot", "desc_fewshot"])
def test_templates_that_stand_in_their_support_are_dropped_on_request(
    corpus: Corpus, kind: PromptKind
) -> None:
    """All forms of the template are dropped, if the form that overlaps is asked."""
    changed = overlapping_corpus(corpus)
    all_ids = ids_of(changed, Setting(prompt=kind))
    remaining_ids = ids_of(changed, Setting(prompt=kind, overlap="drop"))
    assert all_ids - remaining_ids == {f"big/1/{form}" for form in FORMS}
    plausible = Setting(prompt=kind, forms=("plausible",), overlap="drop")
    assert len(ids_of(changed, plausible)) == 12
    assert len(ids_of(corpus, plausible)) == 12


@pytest.mark.parametrize("form", NOVEL)
def test_51_real_examples_of_a_form_also_stand_in_their_support(
    shared_data: Path, form: Literal["plausible", "foreign", "adversarial"]
) -> None:
    """It is so in each novel form."""
    corpus = corpora.read(shared_data / "magnifico/magnifico_data")
    of_form = [each for each in chosen(corpus, Setting(forms=(form,))) if each.form == form]
    assert len(overlapping(corpus, of_form)) == 51


def test_dropping_overlap_leaves_none_and_the_page_says_how_many_go(shared_data: Path) -> None:
    """Exactly the overlapping templates are dropped."""
    corpus = corpora.read(shared_data / "magnifico/magnifico_data")
    all_examples = chosen(corpus, Setting())
    remaining = chosen(corpus, Setting(overlap="drop"))
    remaining_templates = {each.template for each in remaining}
    dropped = {each.template for each in all_examples} - remaining_templates
    assert dropped == overlapping(corpus, all_examples)
    assert not overlapping(corpus, remaining)
    page = (Path(__file__).parents[3] / "docs/benchmarks/magnifico.md").read_text(encoding="utf-8")
    count = len(all_examples) - len(remaining)
    assert f"{count} of {len(all_examples):,} examples" in page


def test_dialogues_stand_first_and_base_ones_at_the_start(corpus: Corpus) -> None:
    """By default, the definition of a novel word comes at the end of its dialogue."""
    setting = Setting(subset="dialogues", prompt="dialogue", forms=("plausible",))
    prompts = prompts_of(corpus, setting)
    assert len(prompts) == 6
    assert prompts["big/0/base"].startswith("base start\n\nUser1: Suppose")
    assert prompts["big/0/plausible"].startswith("plausible end\n\nUser1: Suppose")


def test_examples_that_cannot_be_scored_are_named_by_cause(corpus: Corpus) -> None:
    """An example without a database, or with a gold query that fails, is excluded."""
    elsewhere = example("big", 9, BASE, "Two")
    with_elsewhere = replace(corpus, examples=(*corpus.examples, elsewhere))
    gold_errors = {("one", "select 2"): "no such column"}
    result = documents(with_elsewhere, Setting(), {"one": ["T"]}, gold_errors)
    assert result.excluded["database_missing"] == ["big/9/base"]
    with_error = result.excluded["gold_error"]
    assert len(with_error) == 8
    for example_id in with_error:
        assert "/2/" in example_id
    assert len(result.documents) == 16


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("subset", "word", "Input should be 'words', .* got 'word'"),
        ("forms", "base", ".* got 'base'"),
        ("forms", "foreign, foreign", "name each form once"),
        ("overlap", "no", ".* got 'no'"),
    ],
    ids=["no such subset", "a form that is always asked", "a form twice", "no such choice"],
)
def test_illegal_options_are_refused(name: str, value: str, message: str) -> None:
    """The error names the option, the value and the legal values."""
    with pytest.raises(OptionError, match=rf"magnifico_{name}.*{message}"):
        load.dataset.options({f"magnifico_{name}": value})
