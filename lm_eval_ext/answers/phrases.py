"""The words around an answer, which announce it, deny it, or go on to something else.

They stand in YAML files, one for all benchmarks (``answers/phrases.yaml``) and one for each
benchmark, whose lists are added.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import yaml

_SHARED = Path(__file__).with_name("phrases.yaml")


@dataclass(frozen=True)
class Phrases:
    """Lists of phrases, and the patterns that are made of them.

    Attributes:
        labels: Nouns for an answer, as in "answer:" or "the answer is".
        qualifiers: Adjectives before a label ("final").
        before: Phrases that may precede an announcement in its sentence ("so").
        clauses: Beginnings of a clause before an announcement ("Based on the text,").
        verbs: Verbs between a label and the answer ("is").
        after: Words between a verb and the answer ("probably").
        subjects: Beginnings of a sentence that says nothing but the answer ("it is").
        calls: Announcements that need no label ("I choose").
        corrections: Phrases that take back what stands before ("no, it is").
        conclusions: Phrases that may precede an answer without any label ("therefore, ice").
        praises: What a sentence calls an answer that it begins with ("... is correct").
        openings: Courtesies in the first line of a response ("Sure!").
        leads: Beginnings of a line that announces the next ("Here is").
        negations: Words that deny what follows ("not").
        alternatives: Words between several answers ("or").
        examples: Words before an example ("such as").
        explanations: Labels and beginnings of an explanation ("Note").
        endings: What may end an announced answer within its sentence (", because").
        continuations: Labels with which a model goes on to a further prompt ("Question").
    """

    labels: tuple[str, ...] = ()
    qualifiers: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    conclusions: tuple[str, ...] = ()
    praises: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    explanations: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    continuations: tuple[str, ...] = ()

    @cached_property
    def announcement(self) -> re.Pattern[str]:
        """Announcements of an answer: "So the final answer is", "**Answer:**", "### Answer".

        It stands at the beginning of a line or of a sentence, or behind a comma and one of
        ``before``.
        """
        mark = r"[*_`\"“#> \t]{0,6}"
        determiner = r"(?:the|my|your|our|its|this|a|an)"
        subject = r"(?:\s(?:to|for|of|from|in)\s(?:(?!\bis\b|\bare\b)[^\n.:!?]){1,80}?)?"
        label = (
            rf"(?:{determiner}\s)?(?:{_any_of(self.qualifiers)}\s){{0,2}}"
            rf"{_any_of(self.labels)}(?:,\s{_any_of(self.before)},)?{subject}"
        )
        verb = rf"{mark}\s?{_any_of(self.verbs)}(?!\w)(?:\s{_any_of(self.after)}(?!\w))?"
        colon = r"(?:[ \t]*(?:[:：=→]|-{1,2}>)|\s[-–—]\s)"  # noqa: RUF001
        # A label alone in its line, as a heading or in bold.
        alone = r"(?=[*_\s:：]*$)"  # noqa: RUF001
        remark = r"(?:\s*\([^()\n]{0,40}\))?"
        labelled = rf"{label}{mark}(?:{verb}(?:{colon})?|{remark}{colon}|{alone})"
        bracketed = rf"(?<=[\[【]){label}[\]】](?:{colon})?"
        call = rf"{_any_of(self.calls)}(?!\w)(?:{colon})?"
        line_start = r"^(?:[^\w\n]|\d){0,12}"
        sentence_start = r"(?<=[.!?:;。])\s+\W{0,4}"
        clause_start = r",\s(?=(?:so|thus|therefore|hence)\b)"
        clause = rf"(?:{_any_of(self.clauses)}\b[^\n.:!?]{{1,150}}?,\s)?"
        start = rf"(?:(?:{line_start}|{sentence_start}){clause}|{clause_start})"
        return re.compile(
            rf"{start}{self._before}{{0,2}}(?:{labelled}|{bracketed}|{call})",
            re.IGNORECASE | re.MULTILINE,
        )

    @property
    def _before(self) -> str:
        """The pattern of a phrase before an announcement, with the comma or space behind it."""
        return rf"(?:{_any_of(self.before)}(?:,\s?|\s))"

    @cached_property
    def correction(self) -> re.Pattern[str]:
        """Words that take back an earlier answer, at the beginning of a line or sentence."""
        return re.compile(
            rf"(?:^[^\w\n]{{0,4}}|(?<=[.!?;])\s+)(?:{_any_of(self.corrections)})\s*",
            re.IGNORECASE | re.MULTILINE,
        )

    @cached_property
    def opening(self) -> re.Pattern[str]:
        """A courtesy that is a whole line."""
        return re.compile(
            rf"\W*(?:{_any_of(self.openings)})\b[^:\n]{{0,80}}?[!.,]?\W*", re.IGNORECASE
        )

    @cached_property
    def lead_in(self) -> re.Pattern[str]:
        """A courtesy or a conjunction before an answer in its line: "Sure! ", "Therefore, "."""
        courtesy = rf"{_any_of(self.openings)}[!.]"
        conjunction = rf"{_any_of(self.before)}:|{_any_of(self.conclusions)},"
        return re.compile(rf"\A(?:{courtesy}|{conjunction})\s+(?=\S)", re.IGNORECASE)

    @cached_property
    def conclusion(self) -> re.Pattern[str]:
        """The beginning of a line that concludes from the lines before it: "Therefore, "."""
        return re.compile(rf"\A\W{{0,4}}{_any_of(self.conclusions)},\s+(?=\S)", re.IGNORECASE)

    @cached_property
    def lead(self) -> re.Pattern[str]:
        """The beginning of a line that only announces what follows it."""
        return re.compile(rf"\W*(?:{_any_of(self.leads)})\b[^\n]{{0,120}}[:：]\W*", re.IGNORECASE)  # noqa: RUF001

    @cached_property
    def denial(self) -> re.Pattern[str]:
        """A word that denies what follows it in the same clause."""
        return re.compile(
            rf"(?:{_words(self.negations)})[^.!?\n;:,]{{0,60}}[:\s\"'`*“(]*\Z", re.IGNORECASE
        )

    @cached_property
    def denied(self) -> re.Pattern[str]:
        """The beginning of an announced text that is denied."""
        return re.compile(rf"\W*(?:{_words(self.negations)})(?!\w)", re.IGNORECASE)

    @cached_property
    def alternative(self) -> re.Pattern[str]:
        """A word that offers what follows it beside another answer."""
        return re.compile(rf"(?:{_words(self.alternatives)})[\s:,\"'`*“(]*\Z", re.IGNORECASE)

    @cached_property
    def offer(self) -> re.Pattern[str]:
        """A line that offers another answer: "Or ...", "Alternatively: ..."."""
        return re.compile(
            rf"^\W{{0,4}}(?:{_words(self.alternatives)})(?!\w)", re.IGNORECASE | re.MULTILINE
        )

    @cached_property
    def example(self) -> re.Pattern[str]:
        """A clause that opens with an example's words, or ends with "an example:"."""
        words = _words(self.examples)
        return re.compile(
            rf"(?:\A\W*(?:{words})(?!\w)[^\n]{{0,150}}"
            rf"|\b(?:an|another|one|some|following)\s(?:{words})[\s:,\"'`*“(]*)\Z",
            re.IGNORECASE,
        )

    @cached_property
    def subject(self) -> re.Pattern[str]:
        """The beginning of a sentence that says nothing but the answer."""
        return re.compile(
            rf"\W{{0,4}}{self._before}{{0,2}}(?:{_any_of(self.subjects)})(?!\w)", re.IGNORECASE
        )

    @cached_property
    def trailing_announcement(self) -> re.Pattern[str]:
        """A sentence that calls what it begins with the answer: "(B) ice is the right answer".

        It ends there, or a reason follows; "..., but" takes it back.
        """
        quality = _any_of(self.praises)
        label = _any_of((*self.labels, "one", "option", "choice"))
        article = r"(?:the\s|my\s)"
        adjective = rf"{article}?{quality}\s?(?:\s{quality})?(?:\s?{label})?"
        predicate = rf"(?:{adjective}|{article}{label})"
        return re.compile(
            rf"{self._before}{{0,2}}(?P<answer>[^\n]{{1,300}}?)[*_`\"”']{{0,3}}"
            rf"\s{_any_of(self.verbs)}\s{predicate}(?:[*_]*(?:\s*\Z|[.!][*_]*(?:\s|\Z))"
            rf"|,?\s(?:because|since|as|here|for)\b)",
            re.IGNORECASE,
        )

    @cached_property
    def explanation(self) -> re.Pattern[str]:
        """The beginning of an explanation, at the beginning of a line."""
        return re.compile(
            rf"^(?:[^\w\n]|\d){{0,8}}{_any_of(self.explanations)}\b",
            re.IGNORECASE | re.MULTILINE,
        )

    @cached_property
    def continuation(self) -> re.Pattern[str]:
        """The label of a further prompt, at the beginning of a line."""
        return re.compile(
            rf"(?:^[^\w\n]{{0,6}}|###\s{{0,3}})(?:{_any_of(self.continuations)})\b\s*\d{{0,3}}\W{{0,3}}:",
            re.IGNORECASE | re.MULTILINE,
        )

    @cached_property
    def ending(self) -> re.Pattern[str]:
        """Words that may follow an answer in its sentence."""
        return re.compile("|".join(map(re.escape, self.endings)) or r"(?!)", re.IGNORECASE)


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of these phrases, longest first; without any it never matches."""
    longest_first = sorted(words, key=len, reverse=True)
    if not longest_first:
        return r"(?!)"
    patterns = [re.escape(word).replace(r"\ ", r"\s") for word in longest_first]
    return f"(?:{'|'.join(patterns)})"


def _words(words: Iterable[str]) -> str:
    r"""Return the pattern of :func:`_any_of` for whole words; "n't" is the end of one."""
    patterns = []
    for word in words:
        pattern = re.escape(word).replace(r"\ ", r"\s")
        is_ending = word.startswith("n") and not word.isalpha()  # the contraction n't
        if word[0].isalpha() and not is_ending:
            pattern = rf"(?<!\w){pattern}"
        patterns.append(pattern)
    longest_first = sorted(patterns, key=len, reverse=True)
    return f"(?:{'|'.join(longest_first)})" if patterns else r"(?!)"


def read_phrases(*files: Path, shared: bool = True) -> Phrases:
    """Return the phrases of some YAML files, whose lists are added to each other.

    Args:
        files: Each a mapping from names of :class:`Phrases` to lists.
        shared: Whether to begin with the English ones that all benchmarks share.
    """
    names = [field.name for field in fields(Phrases)]
    lists: dict[str, list[str]] = {name: [] for name in names}
    for file in (_SHARED, *files) if shared else files:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        for name, words in content.items():
            lists[name].extend(words)
    return Phrases(**{name: tuple(dict.fromkeys(words)) for name, words in lists.items()})
