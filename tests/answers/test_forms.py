"""Forms of a response around an answer, by kind, for every benchmark (``forms.yaml``)."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.answers import SUBJECTS, Case, Subject, cases, table

ROOT = Path(__file__).resolve().parents[2]


def cases_by_kind(subject: Subject) -> list[object]:
    """Return a subject's cases of each kind and side, as one parameter with an id."""
    groups: dict[str, list[Case]] = {}
    for case in cases(subject):
        side = "read" if case.must_be_read else "near"
        groups.setdefault(f"{subject.name}: {case.kind}, {side}", []).append(case)
    return [pytest.param(group, id=name) for name, group in groups.items()]


@pytest.mark.parametrize(
    "forms", [group for subject in SUBJECTS for group in cases_by_kind(subject)]
)
def test_forms_of_a_kind_are_read_or_not(forms: list[Case]) -> None:
    """Right forms give the answer; denied, doubled, corrected and merely thought ones do not.

    A failure shows each misread response with the steps of the reader.
    """
    assert forms
    misread = {
        form.response: form.subject.reader.explain(form.response).why
        for form in forms
        if form.is_misread
    }
    assert misread == {}


@pytest.mark.parametrize(
    ("name", "response", "is_right"),
    [
        ("conceptual, words", "Hugo Lamm (final answer)", True),
        ("conceptual, words", "A: Hugo Lamm", True),
        ("conceptual, words", "The person is **Hugo Lamm**.", True),
        ("conceptual, words", "The person is not **Hugo Lamm**.", False),
        ("conceptual, words", "The person who it is not is **Hugo Lamm**.", False),
        ("conceptual, words", "The person is **Nora Pike**.", False),
        ("conceptual, words", "Hugo Lamm\n\nThus, he is the right one.", True),
        ("conceptual, words", "Hugo Lamm\n\nSo, that's it.", True),
        ("conceptual, words", "Hugo Lamm\nTherefore, Nora Pike is out.", True),
        ("conceptual, words", "So, Hugo Lamm?", False),
        ("conceptual, words", "Hugo Lamm was correct, but no longer.", False),
        ("conceptual, words", "Answer: Hugo Lamm (not confident)", False),
        ("conceptual, options", "Answer: warm water (confidence low: iron also possible)", False),
        ("conceptual, options", "warm water would be the best answer, but it is rejected.", False),
        ("conceptual, options", "warm water is the best wrong answer.", False),
        ("conceptual, options", "warm water is correct only if you ignore the rule.", False),
        ("COGS", "* knight ( x _ 1 ) ; yawn . agent ( x _ 2 , x _ 1 ) is correct.", True),
        ("COGS", "* knight ( x _ 1 ) ; yawn . agent ( x _ 2 , x _ 1 ) is wrong.", False),
        (
            "COGS",
            "* knight ( x _ 1 ) ; yawn . agent ( x _ 2 , x _ 1 ) is correct only here.",
            False,
        ),
        ("DiNeR", "首先，土豆切块。\n\n因此，这道菜是红烧土豆。", True),  # noqa: RUF001
        ("DiNeR", "首先，土豆切块。\n\n因此，这道菜不是红烧土豆。", False),  # noqa: RUF001
        ("DiNeR", "| 项目 | 内容 |\n|---|---|\n| 菜名 | 红烧土豆 |", True),
        ("DiNeR", "| 项目 | 内容 |\n|---|---|\n| 配料 | 红烧土豆 |", False),
    ],
)
def test_a_form_of_one_benchmark_is_read_or_not(name: str, response: str, is_right: bool) -> None:
    """Forms that only open answers and dishes have, each beside a near one."""
    (subject,) = (subject for subject in SUBJECTS if subject.name == name)
    assert subject.reads(response) is is_right, subject.reader.explain(response).why


def test_the_table_counts_both_sides() -> None:
    """A row for each kind and one for all; each cell has both rates."""
    subject = SUBJECTS[0]
    cases_of_subject = list(cases(subject))
    rows = table(cases_of_subject).splitlines()
    must = sum(case.must_be_read for case in cases_of_subject)
    assert f"| all | {must} of {must}; 0 of {len(cases_of_subject) - must} |" in rows[-1]


@pytest.mark.e2e
def test_why_lists_the_steps() -> None:
    """The command prints each step of a response from standard input."""
    command = [sys.executable, "-m", "bench.answers", "--why", "COGS"]
    run = subprocess.run(
        command, input="Answer: dog ( x _ 1 )", capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert run.stdout.splitlines()[-1] == "announcement “Answer”: 'dog ( x _ 1 )'"
