"""Reasoning: what a model thinks in tags of its own is no part of its answer."""

import re

_NAMES = (
    "think|thinking|thoughts?|inner_thoughts?|antthinking|reasoning|reason|rationale|reflection|"
    "scratchpad|analysis|seed:think|chain_of_thought"
)

_TAG = re.compile(
    rf"""
      (?<!['"])(?:(?<!`)|(?<=```))
      <(?P<slash>/?)(?:{_NAMES})\s?>
      (?!['"]|`(?!``))
    | \[(?P<square>/?)THINK\]                                       # Magistral
    | ◁(?P<triangle>/?)think▷                                       # Kimi
    | <\|(?:START_THINKING|begin_of_thought|inner_prefix)\|>
    | <\|channel>\s*(?:thought|analysis)\b                          # Gemma 4
    | (?P<token><\|(?:END_THINKING|end_of_thought|inner_suffix)\|>|<channel\|>)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A tag; a quotation mark beside it says that it is quoted, three of them (a fence) do not."""

_OPENED = re.compile(r"(?:<(?:think|thinking|reasoning|analysis)>|\[THINK\])\s*\Z", re.IGNORECASE)
_NEAR_END = 40
"""Characters at the end of a prompt among which its template opens a thought."""


def outside_reasoning(text: str) -> list[tuple[int, int]]:
    """Return start and end of what a text has outside of reasoning, the last stretch first.

    An opening tag that is never closed hides the rest. A closing tag that was never opened hides
    everything before it: the prompt's template opened that thought.
    """
    stretches: list[tuple[int, int]] = []
    start = 0
    depth = 0
    last_close: int | None = None  # within the open thought
    for tag in _TAG.finditer(text):
        if not _closes(tag):
            if depth == 0:
                stretches.append((start, tag.start()))
                last_close = None
            depth += 1
            continue
        if depth == 0:
            stretches = []
        depth = max(0, depth - 1)
        start = last_close = tag.end()
    # A thought that mentions an opening tag ends at its last closing tag.
    if depth == 0 or last_close is not None:
        stretches.append((start, len(text)))
    return stretches[::-1]


def _closes(tag: re.Match[str]) -> bool:
    return bool(tag["slash"] or tag["square"] or tag["triangle"] or tag["token"])


def with_opened_thought(prompt: object, response: str) -> str:
    """Return a response with the tag of a thought that its prompt's template has opened."""
    if not isinstance(prompt, str):
        return response
    opened = _OPENED.search(prompt[-_NEAR_END:])
    return opened[0] + response if opened else response
