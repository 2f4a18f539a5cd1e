"""Tiny random models on disk; nothing is downloaded.

:func:`make` has the tokenizer families that COGS's novel tokens must work with,
:func:`make_large` the types of models that users evaluate.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.benchmarks.cogs.tokens import OLD_TEXTS

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

TEXTS = (
    "A small tokenizer learns its words from a few sentences.",
    "John owns a dog but Mark doesn't own a cat. The dog is very nice.",
    "Mary and Paul know that the cats and the dogs are not here.",
    "It is not a very big deal, they said, and they all managed to leave.",
)
SENTINELS = 4
"""Tokens of T5 that stand for masked texts."""

FAMILIES = {
    "byte_bpe": "GPT-2's, with tokenizer.json",
    "byte_bpe_files": "GPT-2's, with vocab.json alone",
    "byte_lower": "makes capitals small, so that decoding is no exact round trip",
    "unigram": "T5's, with its class",
    "unigram_behind": "T5's without a class, with its sentinels behind the vocabulary",
    "llama": "Llama's, with its class",
    "llama_first": "Llama's without a class, with Metaspace",
    "llama_legacy": "Llama's without a class; its normaliser puts a space before each stretch",
}
"""The families that :func:`make` knows, and what each one is."""


def make(family: str, folder: Path, *, letters: str = "") -> None:
    """Save a tokenizer and a random model for it.

    The weights are the same each time. The order of unigram's pieces is not where their scores are
    equal: its trainer leaves that to chance.

    ``letters`` are known to ``unigram`` besides those of COGS.
    """
    assert family in FAMILIES, family
    folder.mkdir(parents=True)
    tokenizer = _tokenizer(family, letters)
    tokenizer.save_pretrained(folder)
    config_file = folder / "tokenizer_config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    if family == "unigram":
        config |= {"tokenizer_class": "T5Tokenizer", "extra_ids": SENTINELS}
    elif family == "llama":
        config |= {"tokenizer_class": "LlamaTokenizer", "legacy": True}
    elif family == "byte_bpe_files":
        config["tokenizer_class"] = "GPT2Tokenizer"
        tokenizer.backend_tokenizer.model.save(str(folder))
        (folder / "tokenizer.json").unlink()
    config_file.write_text(json.dumps(config), encoding="utf-8")
    _model(family, len(tokenizer)).save_pretrained(folder)
    if family == "unigram_behind":
        _untie(folder)


def _tokenizer(family: str, letters: str) -> "PreTrainedTokenizerFast":
    if family.startswith("byte"):
        return _byte_bpe(family)
    if family.startswith("unigram"):
        return _unigram(family, letters)
    return _llama(family)


def _untie(folder: Path) -> None:
    """Give a T5 output embeddings of its own, as T5 1.1 has them.

    transformers 5 cannot save such a model from scratch: its configuration always says "tied",
    and what counts is whether the file has two matrices that differ.
    """
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    shape = tensors["shared.weight"].shape
    tensors["lm_head.weight"] = torch.randn(shape, generator=torch.Generator().manual_seed(8))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["tie_word_embeddings"] = False
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


SHAPES: dict[str, dict[str, int]] = {
    "gpt2": {"n_positions": 256, "n_embd": 32, "n_layer": 1, "n_head": 2},
    "llama": {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 4, "max_position_embeddings": 256,
    },
    "t5": {
        "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4,
        "decoder_start_token_id": 0,
    },
}  # fmt: skip


def _random_model(
    model_type: str, vocabulary: int, *, bos: int, eos: int, **config_keys: object
) -> "PreTrainedModel":
    """Return a model of a type for a vocabulary of this size; the same weights every time.

    ``bos`` and ``eos`` are ids of tokens.
    """
    import torch
    import transformers

    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(
        model_type,
        vocab_size=vocabulary,
        bos_token_id=bos,
        eos_token_id=eos,
        **SHAPES[model_type],
        **config_keys,
    )
    if model_type == "t5":
        return transformers.AutoModelForSeq2SeqLM.from_config(config)
    return transformers.AutoModelForCausalLM.from_config(config)


def _model(family: str, tokens: int) -> "PreTrainedModel":
    """Return a family's model for so many tokens; one model of each type is untied.

    T5 has 28 rows more than tokens, as the real one.
    """
    import torch

    if family.startswith("unigram"):
        return _random_model("t5", tokens + 28, bos=0, eos=1, pad_token_id=0)
    if family.startswith("llama"):
        is_tied = family == "llama_legacy"
        model = _random_model("llama", tokens, bos=1, eos=2, tie_word_embeddings=is_tied)
        return model.to(torch.bfloat16 if family == "llama" else torch.float32)
    is_tied = family != "byte_bpe_files"
    return _random_model("gpt2", tokens, bos=0, eos=0, tie_word_embeddings=is_tied)


MODEL_TYPES = ("gpt2", "llama", "t5")


def make_large(model_type: str, folder: Path) -> None:
    """Save a random model of one of ``MODEL_TYPES`` whose weights are large, with a tokenizer.

    Initial weights give nearly the same probability everywhere; larger ones give comparisons
    something to differ by. T5's are large as they are.
    """
    import torch

    has_bos = model_type == "llama"
    tokenizer = with_bytes(bos=has_bos)
    bos = 2 if has_bos else 1
    model = _random_model(model_type, len(tokenizer), bos=bos, eos=1, pad_token_id=0)
    if model_type != "t5":
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3.0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _fast(core: "Tokenizer", **settings: object) -> "PreTrainedTokenizerFast":
    """Return a tokenizer as transformers saves it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=core, **settings)


def _byte_level(texts: Iterable[str], special: list[str]) -> "Tokenizer":
    """Return byte-level BPE as GPT-2 has it, trained on texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    return core


def _byte_bpe(family: str) -> "PreTrainedTokenizerFast":
    from tokenizers import normalizers

    end = "<|endoftext|>"
    core = _byte_level(OLD_TEXTS, [end])
    if family == "byte_lower":
        core.normalizer = normalizers.Lowercase()
    return _fast(core, bos_token=end, eos_token=end, unk_token=end)


def with_bytes(*, bos: bool) -> "PreTrainedTokenizerFast":
    """Return a tokenizer for any text, which starts with a BOS token or with nothing."""
    from tokenizers import processors

    core = _byte_level(TEXTS, ["<pad>", "</s>", "<s>"])
    if bos:
        core.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 2)]
        )
    return _fast(
        core,
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="<s>" if bos else None,
        model_max_length=256,
    )


def _unigram(family: str, letters: str) -> "PreTrainedTokenizerFast":
    """Return T5's tokenizer; its class adds the sentinels, unless they are behind."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    core = Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
        ]
    )
    core.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=150 + len(letters),
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    core.train_from_iterator((*OLD_TEXTS, "[ ]", *letters), trainer)
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(SENTINELS))]
    if family == "unigram":
        document = json.loads(core.to_str())
        document["model"]["vocab"] += [[sentinel, 0.0] for sentinel in sentinels]
        core = Tokenizer.from_str(json.dumps(document))
    core.add_special_tokens(sentinels)
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return _fast(
        core,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        extra_special_tokens=sentinels,
    )


def _llama(family: str) -> "PreTrainedTokenizerFast":
    """Return Llama's tokenizer, trained on words and used on whole texts, as SentencePiece is."""
    from tokenizers import Tokenizer, decoders, normalizers, processors
    from tokenizers.pre_tokenizers import Metaspace

    special = ["<unk>", "<s>", "</s>"]
    core = Tokenizer(_byte_fallback_bpe(special))
    if family == "llama_first":
        core.pre_tokenizer = Metaspace(prepend_scheme="first", split=False)
    else:
        core.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    core.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    core.add_special_tokens(special)
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    return _fast(core, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def _byte_fallback_bpe(special: list[str]) -> "BPE":
    """Return BPE that is trained on words, and writes unknown letters as bytes."""
    from tokenizers import Tokenizer, models, trainers
    from tokenizers.pre_tokenizers import Metaspace

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = Metaspace()
    byte_pieces = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=[*special, *byte_pieces], show_progress=False
    )
    trained.train_from_iterator(OLD_TEXTS, trainer)
    model = json.loads(trained.to_str())["model"]
    return models.BPE(
        vocab=model["vocab"],
        merges=[tuple(merge) for merge in model["merges"]],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
