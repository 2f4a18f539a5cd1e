"""The demonstration model's tokenizer: a small byte-level BPE."""

from typing import Any

from lm_eval_ext.demo import corpus

BOS, EOS, PAD = "<s>", "</s>", "<pad>"
BOS_ID, EOS_ID, PAD_ID = 0, 1, 2

TOKENIZER_TEXTS = 8000


def train_tokenizer(vocabulary: int) -> Any:
    """Trains a byte-level BPE, the same for every seed.

    A token never crosses the space before a word, so that the tokens of a context are a prefix
    of those of the context with its continuation; every text starts with BOS, as in training.

    Returns:
        A ``tokenizers.Tokenizer``.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS, EOS, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus.sentences(0, TOKENIZER_TEXTS), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, BOS_ID)]
    )
    return tokenizer


def encode(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Token ids of each text, from BOS to EOS."""
    return [[*encoding.ids, EOS_ID] for encoding in tokenizer.encode_batch(texts)]


def as_pretrained(tokenizer: Any, context_length: int) -> Any:
    """Wraps a ``tokenizers.Tokenizer`` as transformers saves and loads it.

    Args:
        tokenizer: From :func:`train_tokenizer`.
        context_length: The model's, in tokens.

    Returns:
        A ``PreTrainedTokenizerFast``.
    """
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        model_max_length=context_length,
    )
