"""A tree as an English question, with the meanings stated or with novel words for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_ext.benchmarks.magnifico.generate.english import listed, plural, value_text
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Average,
    Compare,
    During,
    Exceeds,
    Extreme,
    Filter,
    Having,
    Linked,
    Mode,
    OneOf,
    Pair,
    Plain,
    Question,
    Shorter,
    Term,
    Top,
    Versus,
)

ADJECTIVE = frozenset({"equals", "above", "either", "linked", "at_least"})
"""Kinds whose word stands before the noun: "hefty orders"."""

_RANKS = {(True, 1): "highest", (False, 1): "lowest", (True, 2): "second highest"}
_FUNCTIONS = {"MAX": "highest", "MIN": "lowest", "AVG": "average", "SUM": "total"}
_BOUNDS = {
    ">": "above", ">=": "at least", "<": "below", "<=": "at most", "=": "", "<>": "not",
}  # fmt: skip
_DATES = {">": "after {}", "<": "before {}", ">=": "{} or later", "<=": "{} or earlier"}


def question(asked: Question, words: Mapping[str, str]) -> str:
    """One sentence. ``words`` are the novel words by kind; without any, it is the base question."""
    return _Sentence(asked, words).whole()


def condition(one: Filter, words: Mapping[str, str] = {}) -> str:
    """What a condition says behind a plural noun: "whose price is above 30"."""
    return _Clause(words, many=True).of(one)


class _Clause:
    """Relative clauses behind the noun, for one row or for many."""

    def __init__(self, words: Mapping[str, str], *, many: bool) -> None:
        self._words = words
        self._are, self._have, self._do = (
            ("are", "have", "do not") if many else ("is", "has", "does not")
        )

    def of(self, one: Filter) -> str:  # noqa: PLR0911
        word = self._words.get(one.kind) if one.kind else None
        if isinstance(one, Linked):
            return self._linked(one, word)
        if isinstance(one, Exceeds):
            those = self.of(one.those)
            verb = word or "exceed all of"
            return f"that {verb} those {those} in terms of {one.term.phrase}"
        phrase = self.phrase(one.term)
        if isinstance(one, Mode):
            return f"that {self._have} the {word or 'most common'} {phrase}"
        if isinstance(one, Extreme):
            return f"that {self._have} the {word or _RANKS[one.highest, 1]} {phrase}"
        if isinstance(one, Average):
            return f"whose {phrase} {self._average(one, word)}"
        if isinstance(one, Shorter):
            what = f"fits {word}" if word else f"has fewer than {one.characters} characters"
            return f"whose {phrase} {what}"
        if isinstance(one, During):
            return f"whose {phrase} falls in {word or one.months}"
        if isinstance(one, OneOf):
            values = listed([value_text(value) for value in one.values], "or")
            return f"whose {phrase} is {f'one of the {word}' if word else values}"
        if word:
            return f"that {self._are} {word}"
        return f"whose {phrase} {_bound(one)}"

    def phrase(self, term: Plain | Pair) -> str:
        """What a column is called; that of a pair can be a word."""
        if isinstance(term, Plain):
            return term.phrase
        if word := self._words.get(term.kind):
            return word
        return pair_phrase(term)

    def _linked(self, one: Linked, word: str | None) -> str:
        if one.negated or one.where is None:
            if one.kind == "not_in" or one.negated:
                how = f"{self._are} {word}" if word else f"{self._do} appear"
                return f"that {how} in the {one.child.one} records"
            return f"that {self._have} at least one {one.child.one}"
        return f"that {self._have} at least one {one.child.one} {condition(one.where)}"

    def _average(self, one: Average, word: str | None) -> str:
        if one.less_deviation:
            if word:
                return f"lies in the {word}"
            return "is above the overall average minus the standard deviation"
        if not one.above:
            return f"lies in the {word}" if word else "is below the overall average"
        return f"is {word}" if word else "is above the overall average"


def pair_phrase(term: Pair) -> str:
    """The meaning of two columns as one."""
    first, second = term.first.phrase, term.second.phrase
    if term.way == "days":
        return f"number of days from the {second} to the {first}"
    if term.way == "product":
        return f"product of {first} and {second}"
    if term.way == "difference":
        return f"difference between {first} and {second}"
    return f"{first} directly followed by the {second}"


def _bound(one: Compare) -> str:
    value = value_text(one.value)
    if one.operator == "LIKE":
        piece = str(one.value).strip("%")
        return f'contains "{piece}"'
    dated = isinstance(one.term, Plain) and one.term.field.role in {"date", "year"}
    if dated and one.operator in _DATES:
        return f"is {_DATES[one.operator].format(value)}"
    return f"is {_BOUNDS[one.operator]} {value}".replace("  ", " ")


class _Sentence:
    def __init__(self, asked: Question, words: Mapping[str, str]) -> None:
        self._q, self._words = asked, words

    def whole(self) -> str:
        q = self._q
        if q.top:
            return self._top(q.top)
        if q.by and q.having:
            return self._having(q.by, q.having)
        if q.versus:
            return self._versus(q.versus)
        if q.by:
            return self._grouped(q.by)
        if isinstance(q.show[0], Aggregate):
            return self._aggregates()
        return self._list()

    def _noun(self, *, many: bool = True, article: str = "the", there: str = "") -> str:
        """The rows asked about, with their conditions.

        ``there`` goes between the noun and what is said of it: "employees are there whose ...".
        """
        q, words = self._q, self._words
        before = [
            one for one in q.where if one.kind.rstrip("_23") in ADJECTIVE and one.kind in words
        ]
        clauses = _Clause(words, many=many)
        # Clauses with a clause of their own go last, so that none is read as part of another.
        behind = sorted(
            (one for one in q.where if one not in before),
            key=lambda one: (
                not isinstance(one, Mode | Extreme),
                isinstance(one, Linked | Exceeds),
            ),
        )
        noun = q.entity.many if many else q.entity.one
        if article == "the" and many and not q.where:
            article = "" if q.by and q.show else "all"  # "for each city", so not of all
        said = listed([clauses.of(one) for one in behind]) if behind else ""
        if len(behind) == 1 and isinstance(behind[0], Mode | Extreme):
            said = f"with {said.partition(' the ')[1].strip()} {said.partition(' the ')[2]}"
        parts = [article, *(words[one.kind] for one in before), noun, there, said]
        return " ".join(filter(None, parts))

    def _term(self, term: Term, *, many: bool = False) -> str:
        if isinstance(term, Aggregate):
            word = self._words.get(term.kind) if term.kind else None
            if term.of is None:
                return word or "number"
            return f"{word or _FUNCTIONS[term.function]} {self._term(term.of)}"
        if isinstance(term, Pair):
            word = self._words.get(term.kind)
            return word or pair_phrase(term)
        return plural(term.phrase) if many else term.phrase

    def _terms(self, *, many: bool = False) -> str:
        said = [self._term(term, many=many) for term in self._q.show]
        if len(said) > 1 and isinstance(self._q.show[-1], Pair):
            # Otherwise "the date and first name followed by the last name" could be two columns.
            return f"{listed(said[:-1])}, and the {said[-1]}"
        return listed(said)

    def _list(self) -> str:
        q = self._q
        if q.distinct:
            return f"What are the different {self._terms(many=True)} of {self._noun()}?"
        plain = all(isinstance(term, Plain) for term in q.show)
        # Verbs that are novel words have no other number.
        if any(isinstance(one, Exceeds) for one in q.where) or (q.style % 3 == 0 and plain):
            return f"What are the {self._terms(many=plain)} of {self._noun()}?"
        verb, each = ("List", "each") if q.style % 3 == 1 else ("Show", "every")
        return f"{verb} the {self._terms()} of {self._noun(many=False, article=each)}."

    def _aggregates(self) -> str:
        q = self._q
        (term, *_) = q.show
        assert isinstance(term, Aggregate)
        if term.of is None and not term.kind:
            return f"How many {self._noun(article='', there='are there')}?"
        opening = ("What is", "Give", "Find")[q.style % 3]
        end = "?" if q.style % 3 == 0 else "."
        return f"{opening} the {self._measured(term)}{end}"

    def _measured(self, term: Aggregate) -> str:
        """What is computed of which rows: numbers are of hotels, prices of all hotels."""
        article = "" if term.of is None else "the"
        return f"{self._terms()} of {self._noun(article=article)}"

    def _grouped(self, by: Plain) -> str:
        q = self._q
        (term, *_) = q.show
        assert isinstance(term, Aggregate)
        if term.of is None and not term.kind and q.style % 2:
            rows = self._noun(article="", there="are there")
            return f"For each {by.phrase}, how many {rows}?"
        if q.style % 3 == 0 and not q.where:
            return f"Show the {self._measured(term)} for each {by.phrase}."
        return f"For each {by.phrase}, what is the {self._measured(term)}?"

    def _having(self, by: Plain, having: Having) -> str:
        q, term = self._q, having.term
        if term.of is None and not term.kind:
            rows = f"more than {having.value} {self._noun(article='', many=having.value != 1)}"
            if by.links:
                owners = plural(by.links[0].noun)
                return f"What are the {plural(by.field.phrase)} of the {owners} with {rows}?"
            return f"Which {plural(by.phrase)} have {rows}?"
        of = f" of {q.entity.many}" if term.of is None or not q.where else ""
        among = f" among {self._noun()}" if q.where else ""
        bound = f"{_BOUNDS[having.operator]} {value_text(having.value)}"
        return f"For which {plural(by.phrase)} is the {self._term(term)}{of} {bound}{among}?"

    def _versus(self, versus: Versus) -> str:
        other = _Sentence(replace(self._q, where=(versus.condition,)), self._words)
        both, how = ("both ", "and") if versus.also else ("", "but not")
        first, second = f"{both}among {self._noun()}", f"{how} among {other._noun()}"
        return f"Which {self._terms(many=True)} occur {first} {second}?"

    def _top(self, top: Top) -> str:
        q, words = self._q, self._words
        rank = _RANKS[top.descending, top.rank]
        word = words.get(top.kind) if top.kind else None
        if q.by:
            if top.kind == "value_mode":
                return f"What is the {word or 'most common'} {q.by.phrase} among {self._noun()}?"
            number = f"the {word or rank} number of {self._noun(article='')}"
            if q.by.links:
                return f"What is the {q.by.field.phrase} of the {q.by.links[0].noun} with {number}?"
            return f"Which {q.by.phrase} has {number}?"
        by = self._term(top.term)
        if q.show == (top.term,):
            return f"What is the {word or rank} {by} of {self._noun()}?"
        verb = "is" if len(q.show) == 1 else "are"
        if q.where:  # "the hotel in Rome with ..." would be read as the highest price of all
            what = f"the {self._terms()} of the one with the {word or rank} {by}"
            ask = f"what {verb} {what}?" if q.style % 2 else f"show {what}."
            return f"Among {self._noun()}, {ask}"
        what = f"the {self._terms()} of {self._noun(many=False)} with the {word or rank} {by}"
        return f"Show {what}." if q.style % 2 else f"What {verb} {what}?"


__all__: Sequence[str] = ("ADJECTIVE", "condition", "pair_phrase", "question")
