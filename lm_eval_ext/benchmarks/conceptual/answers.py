"""Reads an answer to a question: one of its options, one of a few labels, or a few words."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from lm_eval_ext.answers.candidates import (
    Candidate,
    clause_before,
    is_crossed_out,
    line_at,
    line_variants,
    without_answer_remark,
)
from lm_eval_ext.answers.choice import Accepted, CandidateGrammar, is_courtesy
from lm_eval_ext.answers.markdown import bare
from lm_eval_ext.answers.phrases import read_phrases
from lm_eval_ext.answers.reader import AnswerReader, ReaderOptions
from lm_eval_ext.answers.turn import Step
from lm_eval_ext.benchmarks.conceptual.matching import named_options
from lm_eval_ext.benchmarks.conceptual.prompt import LABELS, SHOW_LABELS
from lm_eval_ext.benchmarks.conceptual.records import Option, plain

PHRASES = read_phrases(Path(__file__).with_name("phrases.yaml"))

_CHOICE_WORD = re.compile(
    r"(?:the\s)?(?:option|choice|letter|label|answer)\s+(?=\S)", re.IGNORECASE
)
_LABEL_BEHIND = re.compile(r"(.*\S)\s*\((\w)\)\.?", re.DOTALL)
_LEADING_LABEL = re.compile(r"\W{0,3}(\w{1,20})\W{0,3}?(?:[,.;:)!—–-]|\s-)\s*(?=\w)")  # noqa: RUF001
_EMPHASIS = re.compile(r"\*\*([^*\n]{1,300})\*\*|(?<!`)`([^`\n]{1,300})`")

_ANSWER_INITIAL = re.compile(r"\AA:\s+(?=\S)")
"""The initial of "Answer" where no option has it for a label."""

_EMPHASISED_PREDICATE = re.compile(
    r"(?P<subject>(?:The|This|That)\s[^*\n]{1,60}?)\s(?:is|was|are|were|would\sbe|should\sbe):?\s"
    r"\*\*(?P<answer>[^*\n]{1,300})\*\*[.!]?"
)
"""A sentence that has nothing in bold type but its end: "The person is **Hugo Lamm**."."""


class _QuestionGrammar(CandidateGrammar):
    """The rules for questions with and without options."""

    def __init__(self) -> None:
        super().__init__(PHRASES)

    def fallback(self, text: str) -> str:
        """Return the line that says most likely what the answer is, though it is none.

        A text of which a line would count, had it not been denied, comes back whole.
        """
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        while len(lines) > 1 and is_courtesy(lines[0], self.phrases):
            del lines[0]
        if not lines:
            return ""
        if self.accept_any(self.readings_of_line(lines[0])) is not None:
            return "" if is_crossed_out(lines[0]) else " ".join(text.split())
        return bare(lines[0])

    def readings_of_line(self, line: str) -> list[str]:
        """Return the line, what it calls the answer, and what follows "it is"."""
        readings = super().readings_of_line(line)
        unmarked = bare(line)
        subject = self.phrases.subject.match(unmarked)
        if subject:
            readings.extend(line_variants(unmarked[subject.end() :].strip(), self.phrases))
        announced = self.phrases.trailing_announcement.match(unmarked)
        if announced:
            readings.append(announced["answer"])
        return readings


class OptionGrammar(_QuestionGrammar):
    """Accepts a text that names exactly one option, by its text, its label, or both.

    Attributes:
        options: The options of the question.
        labels_shown: Whether the prompt shows their labels, so that a label alone names one.
    """

    def __init__(self, options: Sequence[Option], *, labels_shown: bool) -> None:
        super().__init__()
        self.options = options
        self.labels_shown = labels_shown

    def accept(self, text: str) -> str | None:
        """Return a text that names one option; of "B, because ..." the label alone."""
        if text.endswith("?") and not any(option.text.endswith("?") for option in self.options):
            return None
        if self.option_named(text) is not None:
            return text
        label_behind = _LABEL_BEHIND.fullmatch(text)
        if label_behind and self.option_named(f"({label_behind[2]}) {label_behind[1]}") is not None:
            return label_behind[1]
        word = _CHOICE_WORD.match(text)
        if word and self.option_named(text[word.end() :]) is not None:
            return text[word.end() :]
        return self._leading_label(text)

    def option_named(self, text: str) -> str | None:
        """Return the label of the only option that a text names, or None."""
        named = named_options(text, self.options, labels_shown=self.labels_shown)
        return min(named) if len(named) == 1 else None

    def _leading_label(self, text: str) -> str | None:
        """Return the label that begins a text, if the rest names no other option."""
        leading = _LEADING_LABEL.match(text)
        if leading is None:
            return None
        label = self.option_named(leading[1])
        if label is None:
            return None
        mentioned = set(self._mentioned(text[leading.end() :]))
        return leading[1] if mentioned <= {label} else None

    def names_several(self, text: str) -> bool:
        """Return whether the first line of a text mentions more than one option."""
        return len(set(self._mentioned(text.partition("\n")[0]))) > 1

    def _mentioned(self, text: str) -> Iterator[str]:
        """Yield the labels of the options that a text has words of."""
        words = f" {plain(text)} "
        for option in self.options:
            if (plain(option.text) and f" {plain(option.text)} " in words) or (
                self.labels_shown and _has_label(text, option.label)
            ):
                yield option.label

    def choose_line(
        self, accepted: Sequence[Accepted], lines: Sequence[Candidate]
    ) -> Accepted | None:
        """Return the first line that names an option, apart from lists of several options.

        None if lines name several options and none of them is the first line.
        """
        order = {line.start: number for number, line in enumerate(lines)}
        named = [self.option_named(line.answer) for line in accepted]
        single = []
        for number, line in enumerate(accepted):
            position = order[line.candidate.start]
            in_list = False
            for neighbour in (number - 1, number + 1):
                if 0 <= neighbour < len(accepted) and named[neighbour] != named[number]:
                    distance = abs(order[accepted[neighbour].candidate.start] - position)
                    in_list = in_list or distance == 1
            if not in_list and not self._is_alternative(lines, position):
                single.append((named[number], line))
        if not single:
            return None
        different = {name for name, _ in single}
        first_line = order[single[0][1].candidate.start]
        opens = all(is_courtesy(line.text, self.phrases) for line in lines[:first_line])
        return single[0][1] if len(different) == 1 or opens else None

    def _is_alternative(self, lines: Sequence[Candidate], position: int) -> bool:
        """Return whether the line before or behind one says "or"."""
        for neighbour in (position - 1, position + 1):
            if not 0 <= neighbour < len(lines):
                continue
            words = lines[neighbour].text
            is_end = neighbour < position and self.phrases.alternative.search(words)
            is_offer = neighbour > position and self.phrases.offer.match(words)
            if is_end or is_offer or self.phrases.alternative.fullmatch(words):
                return True
        return False

    def unannounced(self, text: str) -> Step:
        """Return an option in a block or a line, or else the only one that is emphasised."""
        step = super().unannounced(text)
        if step.name != "no answer":
            return step
        emphasised = []
        for emphasis in _EMPHASIS.finditer(text):
            clause = clause_before(text, emphasis.start())
            is_denied = (
                self.phrases.denial.search(clause) is not None
                or self.phrases.alternative.search(clause) is not None
                or is_crossed_out(line_at(text, emphasis.start()))
            )
            answer = None if is_denied else self.accept_any([emphasis[1] or emphasis[2]])
            if answer is not None:
                emphasised.append(answer)
        options = {self.option_named(answer) for answer in emphasised}
        return Step("emphasis", emphasised[-1]) if len(options) == 1 else step


class SpanGrammar(_QuestionGrammar):
    """Accepts a few words, for questions without options."""

    def accept(self, text: str) -> str | None:
        """Return a text of a few words that denies nothing, with its markup taken off."""
        if not text or len(text.split()) > _MAX_ANSWER_WORDS or self.phrases.denied.match(text):
            return None
        return bare(text)

    def accept_any(self, texts: Sequence[str]) -> str | None:
        """Return the answer in the shortest text that is one."""
        return super().accept_any(texts[::-1])

    def accept_candidate(self, candidate: Candidate) -> str | None:
        """Return the answer in an announced text; behind "no," only if it is very short."""
        answer = super().accept_candidate(candidate)
        if (
            answer
            and candidate.source == "correction"
            and len(answer.split()) > _MAX_CORRECTION_WORDS
        ):
            return None
        return answer

    def readings_of_line(self, line: str) -> list[str]:
        """Return the line, what follows "it is", and what the line calls the answer."""
        if not line.endswith("?"):
            line = self.phrases.lead_in.sub("", line)
        line = _ANSWER_INITIAL.sub("", line)
        readings = [line, without_answer_remark(line)]
        emphasis = _EMPHASISED_PREDICATE.fullmatch(line)
        if emphasis and not self.phrases.denial.search(emphasis["subject"] + ":"):
            readings.append(emphasis["answer"])
        subject = self.phrases.subject.match(line)
        if subject:
            readings.append(line[subject.end() :].strip())
        announced = self.phrases.trailing_announcement.match(line)
        if announced:
            readings.append(announced["answer"])
        return readings

    def choose_line(
        self, accepted: Sequence[Accepted], lines: Sequence[Candidate]
    ) -> Accepted | None:
        """Return the first line that is no courtesy, or a last line that it leads to.

        A last line counts instead if it is short and the lines before it are long, or if it
        concludes ("Therefore, ...") in up to three words from a sentence of four or more.

        None if the text is a list of short lines.
        """
        answers = [line for line in accepted if not is_courtesy(line.candidate.text, self.phrases)]
        answers = answers or list(accepted)
        content = [line for line in lines if not is_courtesy(line.text, self.phrases)]
        if 1 < len(content) <= _MAX_LIST_LINES and all(
            _is_list_item(line.text) for line in content
        ):
            return None
        opening = lines[0].text if lines else ""
        last = answers[-1]
        is_conclusion = self.phrases.conclusion.match(last.candidate.text) is not None
        is_reason = not _is_list_item(opening) and len(opening.split()) >= _MIN_REASON_WORDS
        is_short = len(last.answer.split()) <= _MAX_CONCLUSION_WORDS
        if is_conclusion and is_reason and is_short:
            return last
        ends_text = bool(lines) and last.candidate.start == lines[-1].start
        earlier_lines = [line.text for line in lines[:-1]]
        are_reasons = len(opening.split()) > _LONG_LINE_WORDS
        if len(earlier_lines) > 1 and all(line.endswith((".", ":")) for line in earlier_lines):
            are_reasons = True
        if are_reasons and ends_text and _is_list_item(last.answer):
            return last
        return answers[0]


def _has_label(text: str, label: str) -> bool:
    """Return whether a text has a label as a word of its own, in the same case."""
    return re.search(rf"(?<!\w){re.escape(label)}(?!['\w])", text) is not None


def _is_list_item(line: str) -> bool:
    return len(line.split()) <= _MAX_ITEM_WORDS and not line.endswith((".", ":", "!", "?"))


_MAX_LIST_LINES = 6
"""The most lines of a text that offers a list of answers."""

_MAX_ANSWER_WORDS = 40
_MAX_ITEM_WORDS = 8
"""Words of the longest answer, and of the longest one in a list."""

_LONG_LINE_WORDS = 12
"""Words of a first line that is a reason if it is longer and a short line ends the text."""

_MAX_CORRECTION_WORDS = 4
"""Words of the longest answer behind "no,", where a sentence may follow."""

_MIN_REASON_WORDS = 4
_MAX_CONCLUSION_WORDS = 3
"""Words of a first line from which a last line concludes, at least, and of that, at most."""


@lru_cache(maxsize=256)
def reader_for(options: tuple[Option, ...], template: str) -> AnswerReader:
    """Return what reads the answer to a question.

    Args:
        options: The question's options, if any.
        template: The template of the prompt, which may ask for labels or show those of options.
    """
    if options:
        grammar: CandidateGrammar = OptionGrammar(options, labels_shown=template in SHOW_LABELS)
    elif template in LABELS:
        labels = [Option(label, label) for label in LABELS[template]]
        grammar = OptionGrammar(labels, labels_shown=False)
    else:
        grammar = SpanGrammar()
    return AnswerReader(ReaderOptions(grammar))
