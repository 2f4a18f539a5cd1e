"""Where generated texts end."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Stops:
    """The ends of a text: end-of-text tokens, and stop sequences in its last few tokens.

    Args:
        tokenizer: The model's.
        sequences: The stop sequences, the end-of-text token's name among them.
        end_tokens: Token ids after which a text is complete.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        sequences: Sequence[str],
        end_tokens: Iterable[int],
    ) -> None:
        self.tokenizer = tokenizer
        self.end_tokens = frozenset(end_tokens)
        self.by_length: dict[int, list[str]] = {}
        for sequence in sequences:
            # lm-eval looks two tokens further back than the sequence is long, since a model
            # may spell it with other tokens.
            length = len(tokenizer.encode(sequence, add_special_tokens=False)) + 2
            self.by_length.setdefault(length, []).append(sequence)

    def complete(self, texts: Sequence[Sequence[int]]) -> list[bool]:
        """Return for each text's generated tokens whether it is complete."""
        is_complete = [text[-1] in self.end_tokens for text in texts]
        for length, sequences in self.by_length.items():
            tails = self.tokenizer.batch_decode([text[-length:] for text in texts])
            for number, tail in enumerate(tails):
                if any(sequence in tail for sequence in sequences):
                    is_complete[number] = True
        return is_complete
