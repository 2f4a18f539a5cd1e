"""The stages that are the same for all benchmarks: from a response to what the model says."""

from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_ext.answers.reasoning import outside_reasoning
from lm_eval_ext.answers.tokens import final_channel, remove_invisible, remove_special_tokens

MAX_CHARACTERS = 100_000
"""Characters that are read of what a response says outside of its reasoning: the first ones."""


class Step(NamedTuple):
    """A step of reading: its name, and the text after it."""

    name: str
    text: str


def turn_steps(response: str, further_tokens: Sequence[str] = ()) -> list[Step]:
    """Return the steps from a response to what the model says; the text of the last step is that.

    What counts stands behind the last thought; if nothing follows it, what stands before it; ""
    if the model says nothing. Steps that change nothing are left out. A thought may be of any
    length: it is removed from the whole response, and only then is the rest cut to
    :data:`MAX_CHARACTERS`.
    """
    steps = [Step("response", response)]
    channel = final_channel(response)
    _add(steps, "final channel", channel)
    stretch = turn = ""
    for start, end in outside_reasoning(channel):
        stretch = channel[start:end]
        if len(stretch) > MAX_CHARACTERS:
            stretch = stretch.lstrip()[:MAX_CHARACTERS]
        turn = remove_special_tokens(stretch, further_tokens)
        if turn.strip():
            break
    _add(steps, "outside of reasoning", stretch)
    _add(steps, "special tokens", turn)
    _add(steps, "invisible characters", remove_invisible(turn))
    return steps


def _add(steps: list[Step], name: str, text: str) -> None:
    if text != steps[-1].text:
        steps.append(Step(name, text))


def turn_text(response: str, further_tokens: Sequence[str] = ()) -> str:
    """Return what the model says in a response, after the stages of :func:`turn_steps`."""
    return turn_steps(response, further_tokens)[-1].text


said = turn_text
"""The name that :func:`turn_text` had before; other people's code may import it."""


def is_unfinished(response: str) -> bool:
    """Return whether a response is nothing but a thought that does not end."""
    return bool(response.strip()) and not turn_text(response).strip()
