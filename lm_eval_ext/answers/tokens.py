r"""Special tokens and channels: what a chat template or a tokenizer left in a response.

A response may begin with the tokens that open the model's turn, and with the name of its role. The
next special token ends the turn: what follows belongs to another one.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

_FAMILIES = r"""
      <[|｜][^<>\n]{0,60}?[|｜]>  # any <|...|>, and DeepSeek's full-width bars
    | <[|｜]\w[\w|｜▁\ -]{0,60}\Z                      # the same, cut off by the limit of tokens
    | </?s>
    | <(?:bos|eos|pad|sep|cls|eot|eom|eod|eop|end|endoftext|eos_token|bos_token)>
    | <(?:start|begin|end)_of_(?:turn|text|utterance|sentence|document|message|role|answer)>
    | <\|turn> | <turn\|> | <\|channel> | <channel\|>  # Gemma 4
    | <(?:extra_id_|unused|reserved_|special_)\d{1,4}> # T5, Gemma, Nemotron
    | <seed:(?:bos|eos)>
    | \[/?INST\] | <</?SYS>> | \[/?SYSTEM_PROMPT\]
    | \[(?:BOS|EOS|PAD|SEP|CLS|EOT)\] | \[\|[\w\ ]{1,40}\|\]
"""  # noqa: RUF001 (full-width bars are meant)

_ROLES = "assistant|model|bot|ai|gpt"

_STRUCK_OUT = re.compile(
    r"<(s|del|strike)>[^<\n]{0,400}</\1>(?=[ \t]*[^\s<\[])|~~[^~\n]{1,400}~~|<!--.{0,400}?-->",
    re.DOTALL,
)
"""Text that the model crossed out or hid; ``</s>`` with text behind it is no end of a turn."""

_TURN_ENDS = re.compile(r"<\|return\|>|<\|start\|>\s*user\b")
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>\s*final\b[^<\n]{0,60}(?:<\|constrain\|>\w*)?<\|message\|>"
)
_ANY_CHANNEL = re.compile(r"(?:<\|start\|>\s*assistant\b[^<\n]{0,60})?<\|channel\|>")
_BARE_CHANNEL = re.compile(r"\A\s*analysis(?=\S)")
_BARE_FINAL = re.compile(r"(?:\A\s*|assistant\s*)final(?:\s*(?:message|json))?\s*")
"""The same channels without their tokens, as a decoder that skips special tokens writes them."""

_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe0e\ufe0f\ufeff"
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
)
_JOINER = re.compile(
    r"(?<![^\W\d_])[\u200c\u200d]|[\u200c\u200d](?![^\W\d_])|(?<=[!-~])[\u200c\u200d]"
)
"""Joiners, except between letters of the scripts that are written with them."""

_LINE_END = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")


def remove_special_tokens(text: str, further_tokens: Sequence[str] = ()) -> str:
    """Return the turn in a text: without the tokens that open it, and up to the one that ends it.

    Args:
        text: A response.
        further_tokens: Special tokens that only the model's tokenizer has.
    """
    leading, token = _patterns(tuple(further_tokens))
    text = _STRUCK_OUT.sub("", text)
    opening = leading.match(text)
    start = opening.end() if opening else 0
    ending = token.search(text, start)
    return text[start : ending.start()] if ending else text[start:]


@lru_cache(maxsize=8)
def _patterns(further_tokens: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of what opens a turn, and that of a special token."""
    families = _FAMILIES
    for token in further_tokens:
        families += f"    | {re.escape(token)}\n"
    role = rf"(?:(?:{_ROLES})\b(?=\s*(?:[\n:]|\Z|{families}))\s*:?)?"
    flags = re.VERBOSE | re.IGNORECASE
    leading = re.compile(rf"\s*(?:(?:{families})\s*{role}\s*)+", flags)
    return leading, re.compile(families, flags)


def final_channel(text: str) -> str:
    """Return what stands in the last final channel of a turn.

    If there are only other channels (such as an analysis that was cut off), it is what stands
    before them. A text without channels is returned unchanged.
    """
    turn = _TURN_ENDS.split(text, maxsplit=1)[0]
    finals = list(_FINAL_CHANNEL.finditer(turn))
    if finals:
        return turn[finals[-1].end() :]
    channel = _ANY_CHANNEL.search(turn)
    if channel:
        return turn[: channel.start()]
    if _BARE_CHANNEL.match(text):
        bare_finals = list(_BARE_FINAL.finditer(text))
        if bare_finals:
            return text[bare_finals[-1].end() :]
    return text


def remove_invisible(text: str) -> str:
    """Return a text without zero-width and control characters, with plain spaces and line ends."""
    text = _LINE_END.sub("\n", text)
    if text.isascii() and text.isprintable():
        return text
    return _SPACES.sub(" ", _JOINER.sub("", _INVISIBLE.sub("", text)))
