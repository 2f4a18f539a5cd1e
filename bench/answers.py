"""Rates of reading: which forms of a response are read as their answer, by benchmark and kind.

    python -m bench.answers [--why BENCHMARK]

Forms that must be read and near forms that must not stand in ``tests/answers/forms.yaml``, and
those of one benchmark beside its tests. With ``--why``, a response from standard input is read, and
each step is printed.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.cogs.answers import READER as COGS_READER
from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.records import Option, plain
from lm_eval_ext.benchmarks.diner.answers import NAME_READER
from lm_eval_ext.benchmarks.slog.answers import READERS as SLOG_READERS

TESTS = Path(__file__).resolve().parents[1] / "tests"
FORMS = TESTS / "answers" / "forms.yaml"


@dataclass(frozen=True)
class Subject:
    """A benchmark with a right and a wrong answer.

    Attributes:
        name: For the table.
        reader: What reads its responses.
        right: The answer that forms hold.
        wrong: Another answer.
        extra_forms: A file of further forms, of this benchmark alone.
        extra_mark: What stands for the answer there.
    """

    name: str
    reader: AnswerReader
    right: str
    wrong: str
    extra_forms: Path | None = None
    extra_mark: str = "@"

    def reads(self, response: str) -> bool:
        """Return whether the right answer is read out of a response."""
        answer = self.reader.read(response)
        if "(" in self.right:
            return " ".join(answer.split()) == self.right
        return plain(answer) == plain(self.right)


_OPTIONS = (Option("A", "ice"), Option("B", "warm water"), Option("C", "iron"))
_FORM = "* knight ( x _ 1 ) ; yawn . agent ( x _ 2 , x _ 1 )"
_OTHER_FORM = "frog ( x _ 1 ) AND jump . agent ( x _ 2 , x _ 1 )"

SUBJECTS = (
    Subject("conceptual, options", reader_for(_OPTIONS, "options"), "warm water", "iron"),
    Subject("conceptual, labels", reader_for((), "follows"), "yes", "no"),
    Subject("conceptual, words", reader_for((), "text_first"), "Hugo Lamm", "Nora Pike"),
    Subject(
        "DiNeR",
        NAME_READER,
        "红烧土豆",
        "炒面",
        TESTS / "benchmarks" / "diner" / "diner_chat_cases.yaml",
    ),
    Subject("COGS", COGS_READER, _FORM, _OTHER_FORM),
    Subject("SLOG, COGS's notation", SLOG_READERS["cogs"], _FORM, _OTHER_FORM),
    Subject(
        "SLOG, variable-free",
        SLOG_READERS["varfree"],
        "see ( agent = Mia , theme = dog ( nmod . on = * bed ) )",
        "jump ( agent = frog )",
    ),
)


@dataclass(frozen=True)
class Case:
    """A form with the answers put in.

    Attributes:
        subject: The benchmark with the answers.
        form_kind: The kind of form, a heading of the file with the forms.
        response: The whole response.
        must_be_read: Whether it says the right answer.
    """

    subject: Subject
    form_kind: str
    response: str
    must_be_read: bool

    @property
    def is_misread(self) -> bool:
        """Whether the reader and the table disagree."""
        return self.subject.reads(self.response) != self.must_be_read


def cases(subject: Subject) -> Iterator[Case]:
    """Yield the forms of all benchmarks, and those of the subject's own file."""
    for form_kind, shared_forms in _read_yaml(FORMS).items():
        for form in shared_forms["read"]:
            yield Case(subject, form_kind, _filled(form, subject), must_be_read=True)
        for form in shared_forms["near"]:
            yield Case(subject, form_kind, _filled(form, subject), must_be_read=False)
    if subject.extra_forms is None:
        return
    extra_kinds = _read_yaml(subject.extra_forms)
    for side, must_be_read in (("right", True), ("wrong", False)):
        for form_kind, forms in extra_kinds[side].items():
            for form in forms:
                response = form.replace(subject.extra_mark, subject.right)
                yield Case(subject, form_kind, response, must_be_read)


def _read_yaml(file: Path) -> Mapping[str, Mapping[str, list[str]]]:
    content: Mapping[str, Mapping[str, list[str]]] = yaml.safe_load(file.read_text("utf-8"))
    return content


def _filled(form: str, subject: Subject) -> str:
    return form.replace("{A}", subject.right).replace("{B}", subject.wrong)


@dataclass
class Rates:
    """The counts of a benchmark's forms of a kind, and of those that are read.

    Attributes:
        forms: The number of forms that must be read.
        read: The number of those that are.
        near: The number of near forms, which must not be read.
        near_read: The number of those that are.
    """

    forms: int = 0
    read: int = 0
    near: int = 0
    near_read: int = 0

    def add(self, case: Case) -> None:
        """Count a case."""
        is_read = case.must_be_read != case.is_misread
        if case.must_be_read:
            self.forms += 1
            self.read += is_read
        else:
            self.near += 1
            self.near_read += is_read

    @property
    def cell(self) -> str:
        """A cell of the table."""
        rate = "none"
        if self.forms:
            rate = f"{self.read} of {self.forms}"
        return f"{rate}; {self.near_read} of {self.near}"


def table(all_cases: Iterable[Case]) -> str:
    """Return the rates of each benchmark by kind of form, as a table of Markdown."""
    rates: dict[str, dict[str, Rates]] = {}
    in_all: dict[str, Rates] = {subject.name: Rates() for subject in SUBJECTS}
    for case in all_cases:
        of_kind = rates.setdefault(case.form_kind, {})
        of_kind.setdefault(case.subject.name, Rates()).add(case)
        in_all[case.subject.name].add(case)
    names = list(in_all)
    lines = [_line(["kind of form", *names]), "|---" * (len(names) + 1) + "|"]
    for form_kind, by_name in {**rates, "all": in_all}.items():
        cells = [by_name.get(name, Rates()).cell for name in names]
        lines.append(_line([form_kind, *cells]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, and what is misread; the exit status is 1 if anything is."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.answers", description=(__doc__ or "").splitlines()[0]
    )
    readers = {subject.name: subject.reader for subject in SUBJECTS}
    parser.add_argument(
        "--why", choices=readers, help="read a response from standard input and print each step"
    )
    options = parser.parse_args()
    if options.why:
        for step in readers[options.why].explain(sys.stdin.read()).why:
            sys.stdout.write(f"{step.name}: {step.text!r}\n")
        return
    all_cases: list[Case] = []
    for subject in SUBJECTS:
        all_cases.extend(cases(subject))
    sys.stdout.write(
        "Read as the right answer: forms that say it; near forms that do not.\n\n"
        f"{table(all_cases)}\n"
    )
    misread = [case for case in all_cases if case.is_misread]
    for case in misread:
        mistake = "read as right"
        if case.must_be_read:
            mistake = "not read"
        line = f"{case.subject.name}, {case.form_kind}, {mistake}: {case.response!r}\n"
        sys.stdout.write(line)
    sys.exit(bool(misread))


if __name__ == "__main__":
    main()
