"""What a chat template changes, the same for every benchmark; docs/chat.md says it to users.

- *Prompt.* It becomes the user's turn, unchanged; demonstrations become turns of both.
- *Instruction.* A prompt that says itself what to do gets none. For one that does not
  (``chat_instruction`` of a task), an instruction precedes it in the user's turn.
- *Stop strings.* The task's own are dropped, since an answer may begin with prose, a blank line or
  a code fence; what a user gives with ``--gen_kwargs until=...`` holds.
- *Thinking.* What stands in thinking tags is no part of the answer.
- *Answer.* A task that compares whole answers reads the answer out of what stands around it
  (``read_chat_answer`` of a task); without a template nothing is read out of anything, except where
  a benchmark always does so.
- *System prompt.* The user's (``--system_instruction``), or none.

The functions here read hostile input: they take linear time and raise nothing.
"""

import re
from collections.abc import Iterable
from typing import Any

from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

POLICY = "chat-1"
"""In the signature of what a chat model generated; changes when any of the above does."""

_TAG = re.compile(
    r"""(?<!['"])(?:(?<!`)|(?<=```))
    <(/?)(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)\s?>
    (?!['"]|`(?!``))""",
    re.IGNORECASE | re.VERBOSE,
)
"""A quotation mark beside a tag says that it is quoted, three of them (a fence) do not."""

_NEAR = 40
_OPENED = re.compile(r"<(?:think|thinking|reasoning|analysis)>\s*\Z", re.IGNORECASE)
"""At the end of a prompt, in the last characters of it."""

_SPECIAL = re.compile(r"<[|｜]|</?s>|<(?:eos|end_of_turn|eot)>")  # noqa: RUF001
"""Special tokens, which end a turn."""

_FENCE = re.compile(r"^[ \t]*`{3,}[^\n`]*\n(.*?)(?:^[ \t]*`{3,}|\Z)", re.DOTALL | re.MULTILINE)

MOST_CHARACTERS = 100_000
"""The part of an answer that is read."""


def without_thinking(text: str) -> list[tuple[int, int]]:
    """The parts of a text that stand outside of thinking, the last one first."""
    parts: list[tuple[int, int]] = []
    start = depth = 0
    closed = None  # the end of the last closing tag within the open thought
    for tag in _TAG.finditer(text):
        if not tag[1]:
            if not depth:
                parts.append((start, tag.start()))
                closed = None
            depth += 1
            continue
        if not depth:
            parts = []  # the prompt's template opened this thought
        depth = max(0, depth - 1)
        start = closed = tag.end()
    # A thought that mentions an opening tag ends at its last closing tag.
    if not depth or closed is not None:
        parts.append((start, len(text)))
    return parts[::-1]


def said(answer: str) -> str:
    """What an answer says behind its last thought, or before it if nothing follows; "" if nothing.

    It ends before a special token.
    """
    parts = (answer[start:end] for start, end in without_thinking(answer[:MOST_CHARACTERS]))
    texts = (_SPECIAL.split(part, maxsplit=1)[0] for part in parts)
    return next((text for text in texts if text.strip()), "")


def continued(prompt: object, answer: str) -> str:
    """An answer with the tag of a thought that the prompt's template has opened for it."""
    opened = _OPENED.search(prompt[-_NEAR:]) if isinstance(prompt, str) else None
    return opened[0] + answer if opened else answer


def warn_of_thoughts(task: str, requests: Iterable[Any]) -> None:
    """Warns of answers that are nothing but an unfinished thought, and so wrong."""
    answers = [
        continued(request.arguments[0], str(answer))
        for request in requests
        for answer in request.resps
    ]
    cut = sum(bool(answer.strip()) and not said(answer) for answer in answers)
    if cut:
        _log.warning(
            "%s: %d of %d answers end before the model has finished thinking; give it more tokens "
            "(--gen_kwargs max_gen_toks=...)",
            task,
            cut,
            len(answers),
        )


def fenced(text: str) -> list[str]:
    """The contents of fenced blocks; one that is never closed ends with the text."""
    return [block[1].strip() for block in _FENCE.finditer(text) if block[1].strip()]
