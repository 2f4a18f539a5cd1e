r"""Reads the SQL query out of a model's response.

The prompt ends in "SELECT" (paper, section 4). A base model continues it and is stopped at ";", a
blank line, "--" or "#"; a chat model is not stopped. The same rules serve both. They select a part
of the response (or of what JSON, a box or a quotation in it says) without changing it, and add
nothing except the prompt's own SELECT. In order:

1. *Length.* Only the first million characters are read.
2. *What all benchmarks share* (:mod:`lm_eval_ext.answers`). Only the final channel counts, text
   in thinking tags is dropped, special tokens end the turn, and invisible characters are removed.
   What stands behind the last thought is read first, then what stands before it.
3. *Quoted answer.* If the whole answer is in one pair of quotation marks (', " or \`), they are
   removed; a JSON string is decoded.
4. *Start.* The query begins at the first of these places where the text reads as SQL:

   a. the start of the answer, behind a tag such as ``[QUERY]`` if that is closed (``[/QUERY]``);
   b. the start of a block: a fence of \`\`\` or ~~~ after its language, ``[SQL]``
      (or ``QUERY``, ``ANSWER``, ``CODE``),
      ``\boxed{``, ``\begin{verbatim}``, three quotation marks, lines that begin with ">". Blocks
      precede prose because models talk about parts of a query before they show it;
   c. a string of JSON that is the answer, begins a fenced block, or stands in prose, decoded. The
      strings of keys such as "sql", "query" or "answer" come first. By these rules, a query is
      looked for in the string, but it continues no prompt;
   d. in prose, a SELECT or WITH in capitals, or one in other letters that does not follow a word
      or a comma, where it is English ("with t as (select" never is). One after "(", UNION, EXCEPT
      or INTERSECT is excluded: it belongs to a query that began earlier;
   e. if there is none: the SELECTs and WITHs that were left out in (d) as English, and places whose
      query was not seen for the prose behind it. SQLite must be able to parse these.

   A place does not count if the words right before it deny the query ("not", "do not use", "instead
   of", "wrong:") or call it an example ("for example").

   Comments before the query are skipped. At (a) and in fences, text that does not begin with SELECT
   or WITH continues the prompt: "SELECT " is put before it. Parentheses are removed if they enclose
   the whole query, and in prose only if they begin a line or follow a colon or a mark.
5. *Reading as SQL.* Text is not SQL if, up to the first keyword after FROM, it has anything that
   only prose has: three words in a row (outside parentheses) that are not keywords, a character
   that SQL lacks (":", "?", "!", "{", a full stop or a quotation mark of another script, ...), an
   apostrophe in a word, a SELECT where none is legal or behind a letter of another script, or a
   full stop as the last token. At (a) and (b), text that begins with SELECT or select (not Select)
   is checked only up to FROM and needs no FROM. All other text needs one: otherwise "42" would
   become a query that returns the expected number.
6. *End.* The query ends before the first of these outside strings, quoted names and comments:

   - ";", "#", a fence, "\*\*", "</", "<|", "[/", "\\end{";
   - a full stop, colon or quotation mark of another script, and a comma or parenthesis of one
     behind a character of ASCII;
   - a blank line, except in parentheses, after a comma or an operator, before a clause that goes
     on (WHERE, GROUP BY, FROM ...), beside UNION, EXCEPT or INTERSECT, and before the main SELECT
     of a WITH;
   - a line, except in parentheses, that begins with SELECT or WITH (not after UNION etc.), with a
     label such as "User1:", with a list number such as "2.", with the head of a table of results,
     or with a sentence in another script;
   - for a query in prose (d), a full stop at the end of a line, and the closing quotation mark
     (', " or \`) if there is an opening one before the query.

   Trailing comments are dropped. A truncated query ends where it was cut off.
7. *Prose behind the query.* If SQLite cannot parse all that, the query ends before the first
   sentence, label or full stop before which SQLite can. A sentence has three words or more, one of
   them English ("the", "this", "returns", ...). It begins with a capital letter, a line, or one of
   "which", "this", "these" and "it". A query without prose behind it is never shortened, whatever
   is wrong with it.
8. *A query with mistakes.* If nothing else is a query, text counts at (a), at (b), and in prose at
   the start of a line or after a colon, if it has SELECT and FROM in capitals (at (a) and (b), both
   in small letters will do) and up to a dozen words between them: names with spaces that are not
   quoted, for example. So does text that goes on with the prompt's SELECT: names and signs up to a
   FROM in capitals, a table, and what a query goes on with. It fails when it is executed, as an
   error of the query.

So the first query counts (blocks before prose), right or wrong. Base models are stopped after
their first query, and choosing among several would give verbose models more attempts. Only an
answer that wavers ("it could be A or B") has no query. SQL is not repaired: a query with an error
is the answer and fails when it is executed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Final

from lm_eval_ext.answers.reader import AnswerReader, Reading
from lm_eval_ext.answers.reasoning import outside_reasoning
from lm_eval_ext.answers.tokens import final_channel, remove_invisible, remove_special_tokens
from lm_eval_ext.answers.turn import Step
from lm_eval_ext.benchmarks.magnifico.dialect_masks import DialectMasks
from lm_eval_ext.benchmarks.magnifico.other_statements import (
    first_statement,
    is_other_statement,
    statement_as_written,
)
from lm_eval_ext.benchmarks.magnifico.query_spans import (
    BEGINS,
    QUOTED,
    english_spans,
    in_parentheses,
    query_spans,
    without_quotation_marks,
)
from lm_eval_ext.benchmarks.magnifico.sql_prose import (
    before_prose,
    has_alternative,
    is_broken_continuation,
    is_broken_query,
    is_dismissed,
    reads_as_sql,
)
from lm_eval_ext.benchmarks.magnifico.sql_text import (
    QuerySpan,
    parses,
    query_at,
)

MAX_CHARS: Final = 1_000_000
"""Characters that are read of each stretch of an answer outside of its reasoning: the first ones.
The executor refuses even much shorter queries."""

_MAX_SPANS: Final = 200
_MAX_DOUBTFUL: Final = 40
"""Number of spans that are tried, and of those where prose behind a query is looked for."""

MAX_CHECKED: Final = 400_000
"""Characters that are checked of all spans together. Spans overlap, so that an answer of nothing
but SELECTs would otherwise be read as often as it has spans."""

_MAX_ROUNDS: Final = 5

_IN_CAPITALS = re.compile(r"\s*(?:SELECT|WITH)\b")
_DETERMINED = re.compile(r"\b(?:the|an|this|these|those|their|your)\s+[^\W\d]", re.IGNORECASE)
_OWN_LINE = re.compile(r"(?:\A|\n|[:：][ \t]*)[ \t>*`\"'-]*\Z")  # noqa: RUF001


def query_of(answer: str) -> str | None:
    """Return the query in an answer by the rules in the module's docstring, or None."""
    return QueryReader().explain(answer).answer or None


def query_in_dialect(answer: str) -> str | None:
    r"""Return the query in an answer in the dialect of DuckDB or PostgreSQL, or None.

    The rules know SQLite's syntax, and take anything else for prose. So what only the other
    dialects have is replaced by single characters that SQLite reads as letters, and put back in the
    query. Dollar quotes, ``#>`` and ``**`` stay unknown.
    """
    return QueryReader(is_sqlite=False).explain(answer).answer or None


class QueryReader(AnswerReader):
    """Reads queries out of responses.

    The first stages are those of all benchmarks, but a query may stand before a thought as well as
    behind the last one, and responses may be longer.

    A response is hostile input: reading takes linear time and raises nothing.

    Args:
        is_sqlite: Whether the database is SQLite's; otherwise DuckDB's or PostgreSQL's.
        continues_prompt: Whether the prompt ended in SELECT, which is put before what lacks one.
            Otherwise statements that are no queries are taken whole.
    """

    def __init__(self, *, is_sqlite: bool = True, continues_prompt: bool = True) -> None:
        self._is_sqlite = is_sqlite
        self._continues_prompt = continues_prompt

    def explain(self, response: str) -> Reading:
        """Return the query in a response with the steps that led to it."""
        masks = DialectMasks()
        text = response
        if not self._is_sqlite and masks.can_mask(text):
            text = masks.mask(text)
        steps = [Step("response", response)]
        for step in _read(text, continues_prompt=self._continues_prompt):
            step_text = masks.unmask(step.text)
            if step_text != steps[-1].text:
                steps.append(Step(step.name, step_text))
        return Reading(steps[-1].text, tuple(steps))


def _read(text: str, *, continues_prompt: bool) -> list[Step]:
    """Return the steps from a response to the query, or to "".

    The query of a query is the query itself: the rules are applied until nothing changes.
    """
    steps = _find(text, continues_prompt=continues_prompt)
    for _ in range(_MAX_ROUNDS):
        query = steps[-1].text
        if not query:
            return steps
        again = _find(query, continues_prompt=continues_prompt)[-1]
        if again.text == query:
            return steps
        steps.append(again)
    return [Step("no query", "")]


@dataclass(frozen=True)
class _Turn:
    """The text of a response outside of a thought, and the steps to it."""

    text: str
    steps: list[Step]


def _find(answer: str, *, continues_prompt: bool) -> list[Step]:
    """Return the steps to the query in an answer; the last one has it, or ""."""
    turns = list(_turns(answer))
    doubtful: list[QuerySpan] = []
    tried = checked = 0
    for turn in turns:
        spans = _affordable(query_spans(turn.text), MAX_CHECKED - checked)
        for span in islice(spans, _MAX_SPANS - tried):
            tried += 1
            checked += span.checked_chars
            candidate = _candidate(span)
            if candidate is None:
                continue
            if reads_as_sql(candidate):
                if not continues_prompt and is_other_statement(candidate):
                    continue
                chosen = before_prose(candidate) or candidate
                return [*turn.steps, _choice(chosen, continues_prompt=continues_prompt)]
            if len(doubtful) < _MAX_DOUBTFUL:
                shorter = None
                if _IN_CAPITALS.match(candidate.text, candidate.start):
                    shorter = _before_prose(candidate)
                if shorter is not None:
                    return [*turn.steps, _choice(shorter, continues_prompt=continues_prompt)]
                doubtful.append(candidate)
    if not continues_prompt:
        for turn in turns:
            statement = _other_statement(turn.text)
            if statement:
                return [*turn.steps, Step("a statement that is no query", statement)]
    return [_last_resort(turns, doubtful, continues_prompt=continues_prompt)]


def _other_statement(text: str) -> str:
    """Return the first statement that is no query in a text, or in the strings of JSON in it."""
    read_texts: list[str] = []
    for span in islice(query_spans(text), _MAX_SPANS):
        if span.text in read_texts:
            continue
        read_texts.append(span.text)
    # Strings of JSON come first: the text around them has the same statement with escapes.
    for read_text in sorted(read_texts, key=len):
        statement = first_statement(read_text)
        if statement:
            return statement
    return ""


def _affordable(spans: Iterable[QuerySpan], chars: int) -> Iterator[QuerySpan]:
    """Yield spans until a number of characters has been checked in them."""
    remaining = chars
    for span in spans:
        if remaining <= 0:
            return
        yield span
        remaining -= span.checked_chars


def _candidate(span: QuerySpan) -> QuerySpan | None:
    """Return a span without parentheses around its query; None if no query can begin there."""
    inner = in_parentheses(span)
    if inner is None and span.prose and span.text[span.start] == "(":
        return None
    candidate = inner or span
    return None if is_dismissed(candidate) else candidate


def _last_resort(
    turns: Sequence[_Turn], doubtful: Sequence[QuerySpan], *, continues_prompt: bool
) -> Step:
    """Return the query that prose, English or its own mistakes hide; "" without any.

    Args:
        turns: What the answer says.
        doubtful: The spans that do not read as SQL.
        continues_prompt: As for :class:`QueryReader`.
    """
    for span in doubtful:
        if _IN_CAPITALS.match(span.text, span.start):
            continue  # looked at before
        shorter = _before_prose(span)
        if shorter is not None:
            return _choice(shorter, continues_prompt=continues_prompt)
    english = chain.from_iterable(english_spans(turn.text) for turn in turns)
    for span in islice(_affordable(english, MAX_CHECKED), _MAX_DOUBTFUL):
        query = _among_english(span, continues_prompt=continues_prompt)
        if query:
            return Step(span.source, query)
    for span in doubtful:
        is_broken = is_broken_query(span) or is_broken_continuation(span)
        if _stands_alone(span) and is_broken:
            query = _query_in(span, continues_prompt=continues_prompt)
            return Step(f"{span.source}, a query with mistakes", query)
    return Step("no query", "")


def _turns(answer: str) -> Iterator[_Turn]:
    """Yield what an answer says outside of thoughts, the last stretch first."""
    channel = final_channel(answer)
    for start, end in outside_reasoning(channel):
        stretch = channel[start:end]
        if len(stretch) > MAX_CHARS:
            stretch = stretch.lstrip()[:MAX_CHARS]
        turn = remove_special_tokens(stretch)
        visible = remove_invisible(turn)
        text = without_quotation_marks(visible)
        readings = [
            Step("", answer),
            Step("final channel", channel),
            Step("outside of reasoning", stretch),
            Step("special tokens", turn),
            Step("invisible characters", visible),
            Step("quotation marks", text),
        ]
        steps = [
            step for previous_step, step in pairwise(readings) if step.text != previous_step.text
        ]
        yield _Turn(text, steps)


def _query_in(span: QuerySpan, *, continues_prompt: bool) -> str:
    """Return the query in a span: with the prompt's SELECT if it lacks one, or as it is written."""
    return query_at(span) if continues_prompt else statement_as_written(span)


def _choice(span: QuerySpan, *, continues_prompt: bool) -> Step:
    """Return the step that takes the query in a span, unless another one is offered with it."""
    if has_alternative(span):
        return Step(f"{span.source}, several queries", "")
    return Step(span.source, _query_in(span, continues_prompt=continues_prompt))


def _before_prose(span: QuerySpan) -> QuerySpan | None:
    """Return the query before the prose that hides it (rule 7), unless it continues a sentence."""
    shorter = before_prose(span)
    if shorter is None or not reads_as_sql(shorter):
        return None
    continues_prompt = not BEGINS.match(span.text, span.start)
    if continues_prompt and span.text[shorter.end] == ".":
        return None
    return shorter


def _among_english(span: QuerySpan, *, continues_prompt: bool) -> str | None:
    """Return the query that begins with a word of a sentence, if it is no sentence (rule 4e)."""
    candidate = before_prose(span) or span
    query = query_at(candidate)
    if not reads_as_sql(candidate) or _DETERMINED.search(QUOTED.sub("", query)):
        return None
    if not parses(query):
        return None
    return _query_in(candidate, continues_prompt=continues_prompt)


def _stands_alone(span: QuerySpan) -> bool:
    """Return whether a span is no part of a sentence."""
    text_before = span.text[max(0, span.start - 50) : span.start]
    return not span.prose or _OWN_LINE.search(text_before) is not None
