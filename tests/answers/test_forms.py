"""Forms of a response around an answer, by kind, for every benchmark (``forms.yaml``)."""

import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from bench.answers import SUBJECTS, Case, Subject, cases, table

ROOT = Path(__file__).resolve().parents[2]


def cases_by_kind(subject: Subject) -> list[object]:
    """Return a subject's cases of each kind and side, as one parameter with an id."""
    groups: dict[str, list[Case]] = {}
    for case in cases(subject):
        side = "read" if case.must_be_read else "near"
        groups.setdefault(f"{subject.name}: {case.form_kind}, {side}", []).append(case)
    return [pytest.param(group, id=name) for name, group in groups.items()]


@pytest.mark.parametrize("forms", list(chain.from_iterable(map(cases_by_kind, SUBJECTS))))
def test_forms_of_a_kind_are_read_or_not(forms: list[Case]) -> None:
    """Right forms give the answer; denied, doubled, corrected and merely thought ones do not.

    A failure shows each misread response with the steps of the reader.
    """
    assert forms
    misread = {}
    for form in forms:
        if form.is_misread:
            misread[form.response] = form.subject.reader.explain(form.response).why
    assert misread == {}


LOGICAL_FORM = "* knight ( x _ 1 ) ; yawn . agent ( x _ 2 , x _ 1 )"

RIGHT_FORMS = [
    ("conceptual, words", "Hugo Lamm (final answer)"),
    ("conceptual, words", "A: Hugo Lamm"),
    ("conceptual, words", "The person is **Hugo Lamm**."),
    ("conceptual, words", "Hugo Lamm\n\nThus, he is the right one."),
    ("conceptual, words", "Hugo Lamm\n\nSo, that's it."),
    ("conceptual, words", "Hugo Lamm\nTherefore, Nora Pike is out."),
    ("COGS", f"{LOGICAL_FORM} is correct."),
    ("DiNeR", "首先，土豆切块。\n\n因此，这道菜是红烧土豆。"),  # noqa: RUF001
    ("DiNeR", "| 项目 | 内容 |\n|---|---|\n| 菜名 | 红烧土豆 |"),
]
NEAR_FORMS = [
    ("conceptual, words", "The person is not **Hugo Lamm**."),
    ("conceptual, words", "The person who it is not is **Hugo Lamm**."),
    ("conceptual, words", "The person is **Nora Pike**."),
    ("conceptual, words", "So, Hugo Lamm?"),
    ("conceptual, words", "Hugo Lamm was correct, but no longer."),
    ("conceptual, words", "Answer: Hugo Lamm (not confident)"),
    ("conceptual, options", "Answer: warm water (confidence low: iron also possible)"),
    ("conceptual, options", "warm water would be the best answer, but it is rejected."),
    ("conceptual, options", "warm water is the best wrong answer."),
    ("conceptual, options", "warm water is correct only if you ignore the rule."),
    ("COGS", f"{LOGICAL_FORM} is wrong."),
    ("COGS", f"{LOGICAL_FORM} is correct only here."),
    ("DiNeR", "首先，土豆切块。\n\n因此，这道菜不是红烧土豆。"),  # noqa: RUF001
    ("DiNeR", "| 项目 | 内容 |\n|---|---|\n| 配料 | 红烧土豆 |"),
]


def subject_named(name: str) -> Subject:
    """Return the subject of a name."""
    (subject,) = [subject for subject in SUBJECTS if subject.name == name]
    return subject


@pytest.mark.parametrize(("name", "response"), RIGHT_FORMS)
def test_a_form_of_one_benchmark_is_read(name: str, response: str) -> None:
    """Forms that only open answers, options, logical forms or dishes have."""
    subject = subject_named(name)
    assert subject.reads(response), subject.reader.explain(response).why


@pytest.mark.parametrize(("name", "response"), NEAR_FORMS)
def test_a_form_that_is_only_near_one_is_not_read(name: str, response: str) -> None:
    """Forms that deny, doubt or restrict the answer."""
    subject = subject_named(name)
    assert not subject.reads(response), subject.reader.explain(response).why


def test_the_table_counts_both_sides() -> None:
    """The last row is that of all kinds; a cell has both rates."""
    subject = SUBJECTS[0]
    cases_of_subject = list(cases(subject))
    rows = table(cases_of_subject).splitlines()
    must = sum(case.must_be_read for case in cases_of_subject)
    assert f"| all | {must} of {must}; 0 of {len(cases_of_subject) - must} |" in rows[-1]


@pytest.mark.e2e
def test_the_option_why_lists_the_steps() -> None:
    """The command prints each step of a response from standard input."""
    command = [sys.executable, "-m", "bench.answers", "--why", "COGS"]
    completed = subprocess.run(
        command, input="Answer: dog ( x _ 1 )", capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert completed.stdout.splitlines()[-1] == "announcement “Answer”: 'dog ( x _ 1 )'"
