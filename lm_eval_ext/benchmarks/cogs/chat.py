"""COGS after a chat template: the instruction before a sentence, and the form in an answer."""

import re
from collections.abc import Iterator

from lm_eval_ext.harness.chat import fenced, said
from lm_eval_ext.logical_forms import NotAFormError, normalise, parse

INSTRUCTION = """\
Translate the sentence into its logical form.
- x _ N is the word at position N; the first word has position 0. Names stand for themselves.
- A noun gives noun ( x _ N ), a verb for each of its roles verb . role ( x _ N , argument ).
- These parts follow the order of the words and are joined by AND. Nouns with "the" come before
  all others, each as * noun ( x _ N ) ;
- All words and marks are separated by single spaces, and everything stands on one line.
For example, "The pilot handed a ticket to Nora ." becomes
* pilot ( x _ 1 ) ; hand . agent ( x _ 2 , x _ 1 ) AND hand . theme ( x _ 2 , x _ 4 ) AND \
hand . recipient ( x _ 2 , Nora ) AND ticket ( x _ 4 )
Answer with the logical form alone.

Sentence:"""
"""Our own words and example; the paper has no such condition."""

_NEXT = re.compile(
    r"^\W{0,4}(?:sentence|input|user|human)\b\s*\W{0,3}:", re.IGNORECASE | re.MULTILINE
)
"""Where a model goes on with an example of its own, or repeats the prompt."""

_LEAD = re.compile(
    r":|\b(?:form|answer|output|translation|result) (?:is|would be)\b", re.IGNORECASE
)
"""What announces a form; no form of COGS has a colon."""

_ESCAPED = re.compile(r"\\([*_();,.])")
_AROUND = re.compile(r"^(?:[-•>]\s+|\*\*|[`\"'“$\s])+|(?:\*\*|[`\"'”$\s])+$")

_MOST_LINES = 400


def form_in(answer: str) -> str:
    r"""The logical form in what a chat model wrote, unchanged but for Markdown's ``\*`` and ``\_``.

    It is looked for in fenced blocks and, if none has one, in the text: after a colon or "the form
    is", in a line or in a paragraph over several lines. Of several forms the last counts, but no
    form behind a further ``Sentence:``. Nothing that is not wholly a form, of at least one
    predicate, is taken for one: an answer without any is returned as it is.
    """
    text = _ESCAPED.sub(r"\1", said(answer))
    for part in ("\n\n".join(fenced(text)), text):
        for example in _NEXT.split(part):
            if found := list(_forms(example)):
                return found[-1]
    return text.strip()


def _forms(text: str) -> Iterator[str]:
    pieces = (piece for lead in _LEAD.split(text) for piece in re.split(r"\n\s*\n", lead))
    lines = 0
    for piece in pieces:
        if _is_form(joined := _bare(" ".join(piece.split("\n")))):
            yield joined
            continue
        for line in piece.split("\n"):
            lines += 1
            if lines > _MOST_LINES:
                return
            if _is_form(bare := _bare(line)):
                yield bare


def _bare(text: str) -> str:
    """Without a bullet, quotation marks or bold type around it, and a sentence's full stop."""
    text = _AROUND.sub("", text.strip())
    return _AROUND.sub("", text.removesuffix("."))


def _is_form(text: str) -> bool:
    try:
        return bool(parse(normalise(text)).atoms)
    except NotAFormError:
        return False
