"""Prompts as turns of a conversation, without the tokens of a chat template."""

import json
import re
from dataclasses import dataclass

_OPENING = re.compile(
    r"<\|im_start\|>[ ]*(?P<chatml>\w+)\n"
    r"|<\|start_header_id\|>[ ]*(?P<llama>\w+)<\|end_header_id\|>\n*"
    r"|<\|header_start\|>[ ]*(?P<llama4>\w+)<\|header_end\|>\n*"
    r"|<start_of_turn>[ ]*(?P<gemma>\w+)\n"
    r"|<\|(?P<phi>system|user|assistant)\|>\n?"
    r"|<\uff5c(?P<deepseek>User|Assistant)\uff5c>"
    r"|(?P<inst>\[INST\])"
    r"|(?P<answer>\[/INST\])"
)
"""The start of a turn in the templates of ChatML, Llama 3 and 4, Gemma, Phi, DeepSeek, Mistral."""

_CLOSING = re.compile(
    r"\s*(?:<\|im_end\|>|<\|eot_id\|>|<\|eot\|>|<end_of_turn>|<\|end\|>|<\|endoftext\|>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>)\s*$"
)
_BEGIN = re.compile(
    r"^\s*(?:<\|begin_of_text\|>|<bos>|<s>|<\uff5cbegin\u2581of\u2581sentence\uff5c>)"
)
_ROLES = {"model": "assistant", "inst": "user", "answer": "assistant"}


@dataclass(frozen=True)
class Turn:
    """A turn of one side; ``role`` is "" for a prompt without a chat template."""

    role: str
    text: str


def turns_of(prompt: str) -> list[Turn]:
    """Split a prompt into turns.

    Args:
        prompt: The text that a model got; or messages as JSON, as chat servers get them.

    Returns:
        One turn without a role where no chat template is recognized. A last, empty turn of the
        assistant, which asks for the answer, is left out.
    """
    messages = _messages(prompt)
    if messages:
        return messages
    text = _BEGIN.sub("", prompt)
    openings = list(_OPENING.finditer(text))
    if not openings:
        return [Turn("", prompt)]
    turns = []
    text_before = text[: openings[0].start()].strip()
    if text_before:
        turns.append(Turn("", text_before))
    ends = [opening.start() for opening in openings[1:]]
    for opening, end in zip(openings, [*ends, len(text)], strict=True):
        content = text[opening.end() : end]
        while _CLOSING.search(content):
            content = _CLOSING.sub("", content)
        turns.append(Turn(_role(opening), content.strip("\n")))
    if turns[-1].role == "assistant" and not turns[-1].text.strip():
        turns.pop()
    return turns


def _role(opening: re.Match[str]) -> str:
    name = str(opening.lastgroup)
    word = name if name in _ROLES else str(opening[name]).lower()
    return _ROLES.get(word, word)


def _messages(prompt: str) -> list[Turn]:
    """Return the turns of messages in JSON; [] if the prompt is something else."""
    if not prompt.lstrip().startswith("["):
        return []
    try:
        messages: object = json.loads(prompt)
    except ValueError:
        return []
    if not isinstance(messages, list):
        return []
    turns = []
    for message in messages:
        if not isinstance(message, dict) or "role" not in message:
            return []
        turns.append(Turn(str(message["role"]), str(message.get("content", ""))))
    return turns
