"""Tokenizes many texts in one call, before HFLM asks for them one by one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

Text = tuple[str, bool | None]
"""A text, and whether special tokens are added to it; None leaves it to the tokenizer."""

BATCH = 1024
"""Texts in a call of the tokenizer: a quarter of the time that single calls take."""

CHARACTERS = 1 << 20
"""In one call, at some hundred bytes of memory per token; the text that exceeds it is the last."""


def can_batch(tokenizer: Any) -> bool:
    """Whether a tokenizer encodes a list as it would each text by itself.

    A class with its own way of encoding may not: CodeLlama's looks for the place to fill in only
    in a single text.
    """
    if not getattr(tokenizer, "is_fast", False):
        return False
    kind = type(tokenizer)
    usual = {
        "encode": PreTrainedTokenizerBase,
        "__call__": PreTrainedTokenizerBase,
        "_encode_plus": PreTrainedTokenizerFast,
    }
    return all(
        getattr(kind, name, None) is getattr(base, name, None) for name, base in usual.items()
    )


def texts_of(pairs: Iterable[tuple[str, str]], *, causal: bool) -> Iterator[Text]:
    """Yields what HFLM encodes for contexts and continuations, in its order.

    Spaces at a context's end belong to its continuation; a causal model's continuation is what
    the tokens of both together have more than the context's.
    """
    for context, continuation in pairs:
        if context == "":
            yield continuation, False
            continue
        kept = context.rstrip()
        if causal:
            yield context + continuation, None
            yield kept, None
        else:
            yield kept, None
            yield context[len(kept) :] + continuation, False


def encode(
    tokenizer: Any,
    beginning: str | None,
    usual: bool | None,  # noqa: FBT001 (HFLM's add_bos_token)
    texts: Sequence[Text],
) -> list[list[int]]:
    """Encodes texts; whether with special tokens is decided as by HFLM, text by text.

    Args:
        tokenizer: One that :func:`can_batch`.
        beginning: Text of the beginning-of-sequence token, if there is one; no second one is added.
        usual: Whether special tokens are added where a text does not say.
        texts: What to encode.
    """
    alike: dict[bool | None, list[int]] = {}
    for number, (text, asked) in enumerate(texts):
        unasked = False if beginning is not None and text.startswith(beginning) else usual
        alike.setdefault(unasked if asked is None else asked, []).append(number)
    tokens: dict[int, list[int]] = {}
    for special, numbers in alike.items():
        options = {} if special is None else {"add_special_tokens": special}
        found = tokenizer(
            [texts[number][0] for number in numbers],
            return_attention_mask=False,
            return_token_type_ids=False,
            **options,
        )
        tokens.update(zip(numbers, found["input_ids"], strict=True))
    return [tokens[number] for number in range(len(texts))]


class TokenPrefetch:
    """Tokens of the texts that are asked for next; asking for any other drops some of them.

    Args:
        texts: In about the order in which they will be asked for.
        encode: Encodes texts, as one at a time would be.
    """

    def __init__(
        self, texts: Iterable[Text], encode: Callable[[list[Text]], list[list[int]]]
    ) -> None:
        self._texts = iter(texts)
        self._encode = encode
        self._known: dict[Text, list[int]] = {}

    def get(self, text: Text) -> list[int] | None:
        """Returns a text's tokens, or None for one that is not among the next."""
        if text not in self._known:
            # The ones before are dropped: of many long texts, few are held at a time.
            batch = list(dict.fromkeys(next_batch(self._texts)))
            self._known = dict(zip(batch, self._encode(batch), strict=True)) if batch else {}
        found = self._known.get(text)
        return None if found is None else list(found)


def next_batch(texts: Iterator[Text]) -> Iterator[Text]:
    """Yields the texts of one call of the tokenizer."""
    characters = 0
    for text in islice(texts, BATCH):
        yield text
        characters += len(text[0])
        if characters > CHARACTERS:
            return
