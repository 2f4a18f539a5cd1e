"""Answers in a formal notation, such as logical forms: a candidate is one if it parses."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lm_eval_ext.answers.candidates import (
    MAX_CANDIDATES,
    Candidate,
    announced_candidates,
    announces_line,
    check_candidate,
    clause_before,
    first_sentence,
    without_remark,
)
from lm_eval_ext.answers.choice import Accepted, CandidateGrammar, before_further_prompt
from lm_eval_ext.answers.markdown import Block, Span, bare, fenced_blocks, unwrapped
from lm_eval_ext.answers.phrases import Phrases
from lm_eval_ext.answers.turn import Step


@dataclass(frozen=True)
class Notation:
    """What a benchmark knows about its formal notation.

    Attributes:
        parses: Whether a text is an expression of the notation; a single word is none.
        is_part: Whether an expression is a proper part of another one, and so may explain it.
        is_name: Whether a text is an expression of one word.
        lookalike: What looks like an expression that does not parse; a line of it stands for the
            answer if nothing parses.
    """

    parses: Callable[[str], bool]
    is_part: Callable[[str, str], bool]
    is_name: Callable[[str], bool]
    lookalike: re.Pattern[str] | None = None


class FormalGrammar(CandidateGrammar):
    """Finds an expression of a notation.

    Expressions are looked for behind announcements, in fenced blocks, behind colons, in
    paragraphs, lines and inline code. The last announced one counts; without any, the last one in
    a fenced block; without any, the last one elsewhere. An expression does not count if it

    - is denied, or called an example;
    - stands in an explanation behind an expression, or is a part of an earlier one.

    Where one is offered beside another ("or"), there is no answer.
    """

    def __init__(self, phrases: Phrases, notation: Notation) -> None:
        super().__init__(phrases)
        self.notation = notation

    def accept(self, text: str) -> str | None:
        """Return an expression, unchanged."""
        return text if self.notation.parses(text) else None

    def accept_any(self, texts: Sequence[str]) -> str | None:
        """Return the expression in the first text that is one, if need be without its markup.

        A star at the beginning belongs to the notation and is no bullet: without the star, a
        wrong form could become a right one.
        """
        for text in texts:
            outer = text
            for inner in unwrapped(text):
                if _STAR.match(outer) and inner == _STAR.sub("", outer):
                    break
                if self.accept(inner) is not None:
                    return inner
                outer = inner
        return None

    def find(self, text: str) -> list[Step]:
        """Return the steps from what a model says to the expression."""
        stretch = before_further_prompt(text, self.phrases)
        steps = [Step("up to a further prompt", stretch)]
        expressions = self._expressions(stretch)
        eligible = self._without_explanations(stretch, expressions)
        if self._offers_several(stretch, expressions):
            steps.append(Step("several answers", stretch.strip()))
        elif eligible:
            steps.append(_last_of_highest_rank(eligible).step)
        else:
            steps.append(Step("no complete expression, so the text", self.fallback(stretch)))
        return steps

    def fallback(self, text: str) -> str:
        """Return a single word that is announced or alone, or a loose expression, or the text."""
        for candidate in reversed(announced_candidates(text, self.phrases)):
            name = bare(candidate.text)
            if not candidate.is_dismissed and self.notation.is_name(name):
                return name
        if self.notation.is_name(bare(text)):
            return bare(text)
        if self.notation.lookalike is not None:
            for line in text.splitlines():
                loose = bare(line)
                # What parses is denied here: as an answer it would be right for the wrong reason.
                if self.notation.lookalike.fullmatch(loose) and not self.notation.parses(loose):
                    return loose
        return text.strip()

    def _expressions(self, text: str) -> list[Accepted]:
        """Return everything in a text that parses, in the order of the text."""
        expressions: dict[int, Accepted] = {}
        for candidate in _candidates(text, self.phrases):
            checked = check_candidate(text, candidate, self.phrases)
            answer = self.accept_any(self._stretches(checked.text))
            if answer is None or checked.is_dismissed:
                continue
            earlier = expressions.get(checked.start)
            if earlier is None or _rank(checked) > _rank(earlier.candidate):
                expressions[checked.start] = Accepted(checked, answer)
        return [expressions[start] for start in sorted(expressions)]

    def _stretches(self, text: str) -> list[str]:
        """Return a text on one line, and without what is not the expression behind it."""
        line = self.phrases.lead_in.sub("", " ".join(text.split()))
        sentence = first_sentence(line)
        clause = self.phrases.ending.split(sentence, maxsplit=1)[0]
        stretches = [line, without_remark(line), sentence, clause]
        announced = self.phrases.trailing_announcement.fullmatch(sentence)
        if announced:
            stretches.append(announced["answer"])
        return list(dict.fromkeys(stretches))

    def _without_explanations(self, text: str, expressions: Sequence[Accepted]) -> list[Accepted]:
        """Return the expressions that do not explain an earlier one."""
        explanations = [match.start() for match in self.phrases.explanation.finditer(text)]
        eligible: list[Accepted] = []
        for accepted in expressions:
            if not eligible or not self._explains(text, accepted, eligible, explanations):
                eligible.append(accepted)
        return eligible

    def _explains(
        self,
        text: str,
        accepted: Accepted,
        earlier: Sequence[Accepted],
        explanations: Sequence[int],
    ) -> bool:
        """Return whether an expression explains an earlier one.

        Args:
            text: What the model says.
            accepted: The expression.
            earlier: Those before it, one or more.
            explanations: Where explanations begin.
        """
        candidate = accepted.candidate
        if candidate.source == "correction":
            return False
        for explained in earlier:
            if self.notation.is_part(accepted.answer, explained.answer):
                return True
        if candidate.source == "announcement" and announces_line(text, candidate):
            return False
        first_start = earlier[0].candidate.start
        return any(first_start < position <= candidate.start for position in explanations)

    def _offers_several(self, text: str, expressions: Sequence[Accepted]) -> bool:
        """Return whether an expression is offered beside an earlier, different one."""
        for earlier, later in pairwise(expressions):
            clause = clause_before(text, later.candidate.start)
            if earlier.answer != later.answer and self.phrases.alternative.search(clause):
                return True
        if not expressions:
            return False
        return self.phrases.offer.search(text, expressions[0].candidate.start + 1) is not None


_STAR = re.compile(r"\A\s*\*[ \t]+")
_RANKS = {"line": 0, "code": 0, "fence": 1}
_ANNOUNCED_RANK = 2


def _rank(candidate: Candidate) -> int:
    return _RANKS.get(candidate.source, _ANNOUNCED_RANK)


def _last_of_highest_rank(expressions: Sequence[Accepted]) -> Accepted:
    highest = max(_rank(accepted.candidate) for accepted in expressions)
    matching = [accepted for accepted in expressions if _rank(accepted.candidate) == highest]
    return matching[-1]


_COLON = re.compile(
    r"[:：]\s+"  # noqa: RUF001
    r"|\b(?:form|answer|translation|representation|output|result|meaning|it|this|that|sentence)\b"
    r"[^\n:]{0,120}?\b(?:is|becomes|be)\s+",
    re.IGNORECASE,
)
_CODE = re.compile(r"(`{1,3})([^`\n]+)\1")


_MAX_BEHIND_COLON = 8_000
"""Characters behind a colon that may be an expression over several lines."""


def _candidates(text: str, phrases: Phrases) -> Iterator[Candidate]:
    """Yield what may be an expression: announced, fenced, in paragraphs, lines and inline code."""
    for candidate in announced_candidates(text, phrases):
        yield candidate
        first_line = candidate.text.partition("\n")[0]
        if first_line != candidate.text:
            yield replace(candidate, text=first_line)
    fences = fenced_blocks(text)[-MAX_CANDIDATES:]
    for fence in fences:
        yield from _pieces(Span(fence.content_start, fence.end, fence.text), "fence")
    for paragraph in _paragraphs(text, fences):
        yield from _pieces(paragraph, "line")
        for code in _CODE.finditer(paragraph.text):
            yield Candidate(code[2], paragraph.start + code.start(), "code")


def _paragraphs(text: str, fences: Sequence[Block]) -> list[Span]:
    """Return the paragraphs of a text outside of fenced blocks."""
    edges = [0]
    for fence in fences:
        edges.extend((fence.start, fence.end))
    edges.append(len(text))
    paragraphs = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        position = start
        for piece in re.split(r"(\n[ \t]*\n)", text[start:end]):
            if piece.strip():
                paragraphs.append(Span(position, position + len(piece), piece))
            position += len(piece)
    return paragraphs[:MAX_CANDIDATES]


def _pieces(block: Span, source: str) -> Iterator[Candidate]:
    """Yield a block, what stands behind its colons, and its lines, with the same for each."""
    if len(block.text.splitlines()) > 1:
        yield Candidate(block.text, block.start, source)
        for colon in list(_COLON.finditer(block.text))[:MAX_CANDIDATES]:
            start = block.start + colon.end()
            text_behind = block.text[colon.end() : colon.end() + _MAX_BEHIND_COLON]
            yield Candidate(text_behind, start, source)
    position = block.start
    for line in block.text.splitlines(keepends=True):
        if line.strip():
            yield Candidate(line, position, source)
            for colon in list(_COLON.finditer(line))[-3:]:
                yield Candidate(line[colon.end() :], position + colon.end(), source)
        position += len(line)
