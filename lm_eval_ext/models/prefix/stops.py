"""When a text is complete, as lm-eval's ``hf`` decides it for a batch of one."""

from collections.abc import Sequence
from typing import Any


class Stops:
    """The ends of a text: end-of-text tokens, and stop sequences in its last few tokens.

    Args:
        tokenizer: The model's.
        sequences: The stop sequences, the end-of-text token's name among them.
        end_tokens: Token ids after which a text is complete.
    """

    def __init__(self, tokenizer: Any, sequences: Sequence[str], end_tokens: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self.end_tokens = frozenset(end_tokens)
        self.by_length: dict[int, list[str]] = {}
        for sequence in sequences:
            # lm-eval looks two tokens further back than the sequence is long, since a model
            # may spell it with other tokens.
            length = len(tokenizer.encode(sequence, add_special_tokens=False)) + 2
            self.by_length.setdefault(length, []).append(sequence)

    def complete(self, texts: Sequence[Sequence[int]]) -> list[bool]:
        """Returns for each text's generated tokens whether it is complete."""
        done = [text[-1] in self.end_tokens for text in texts]
        for length, sequences in self.by_length.items():
            tails = self.tokenizer.batch_decode([text[-length:] for text in texts])
            for number, tail in enumerate(tails):
                done[number] = done[number] or any(one in tail for one in sequences)
        return done
