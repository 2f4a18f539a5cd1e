"""Tiny random models on disk; nothing is downloaded.

:func:`make` has the tokenizer families that COGS's novel tokens must work with,
:func:`make_large` the kinds of models that users evaluate.
"""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.cogs.tokens import OLD_TEXTS

TEXTS = (
    "A small tokenizer learns its words from a few sentences.",
    "John owns a dog but Mark doesn't own a cat. The dog is very nice.",
    "Mary and Paul know that the cats and the dogs are not here.",
    "It is not a very big deal, they said, and they all managed to leave.",
)
SENTINELS = 4
"""``byte_bpe`` and ``byte_bpe_files`` are GPT-2's, with tokenizer.json and with vocab.json alone;
``byte_lower`` makes capitals small, so that decoding is no exact round trip;
``unigram`` is T5's with its class, ``unigram_behind`` has its sentinels behind the vocabulary;
``llama`` is Llama's class, ``llama_first`` Metaspace and ``llama_legacy`` the normaliser that
puts a space before each stretch, both without a class.
"""


def make(family: str, folder: Path, *, letters: str = "") -> None:
    """Saves a tokenizer and a random model for it; the same each time.

    ``letters`` are known to ``unigram`` besides those of COGS.
    """
    folder.mkdir(parents=True)
    tokenizer = {
        "byte": _byte_bpe, "unigram": partial(_unigram, letters=letters), "llama": _llama,
    }[family.split("_", maxsplit=1)[0]](family)  # fmt: skip
    tokenizer.save_pretrained(folder)
    config_file = folder / "tokenizer_config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    if family in ("unigram", "llama"):
        config["tokenizer_class"] = {"unigram": "T5Tokenizer", "llama": "LlamaTokenizer"}[family]
        config |= {"extra_ids": SENTINELS} if family == "unigram" else {"legacy": True}
    if family == "byte_bpe_files":
        config["tokenizer_class"] = "GPT2Tokenizer"
        tokenizer.backend_tokenizer.model.save(str(folder))
        (folder / "tokenizer.json").unlink()
    config_file.write_text(json.dumps(config), encoding="utf-8")
    _model(family, len(tokenizer)).save_pretrained(folder)
    if family == "unigram_behind":
        _untie(folder)


def _untie(folder: Path) -> None:
    """Gives a T5 output embeddings of its own, as T5 1.1 has them.

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


def _random(kind: str, size: int, bos: int, eos: int, **more: Any) -> Any:
    """A model of a kind for a vocabulary; the same weights every time."""
    import torch
    import transformers

    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=size, bos_token_id=bos, eos_token_id=eos, **SHAPES[kind], **more
    )
    family = (
        transformers.AutoModelForSeq2SeqLM if kind == "t5" else transformers.AutoModelForCausalLM
    )
    return family.from_config(config)


def _model(family: str, size: int) -> Any:
    """T5 has 28 rows more than tokens as the real one; one model of each kind is untied."""
    import torch

    if family.startswith("unigram"):
        return _random("t5", size + 28, 0, 1, pad_token_id=0)
    if family.startswith("llama"):
        model = _random("llama", size, 1, 2, tie_word_embeddings=family == "llama_legacy")
        return model.to(torch.bfloat16 if family == "llama" else torch.float32)
    return _random("gpt2", size, 0, 0, tie_word_embeddings=family != "byte_bpe_files")


KINDS = ("gpt2", "llama", "t5")


def make_large(kind: str, folder: Path) -> None:
    """Saves a random model of one of ``KINDS`` whose weights are large, with a tokenizer.

    Initial weights give nearly the same probability everywhere; larger ones give comparisons
    something to differ by. T5's are large as they are.
    """
    import torch

    tokenizer = with_bytes(bos=kind == "llama")
    model = _random(kind, len(tokenizer), 2 if kind == "llama" else 1, 1, pad_token_id=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.0 if kind == "t5" else 3.0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _fast(core: Any, **special: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=core, **special)


def _bytes(texts: Iterable[str], special: list[str]) -> Any:
    """Byte-level BPE as GPT-2 has it."""
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


def _byte_bpe(family: str) -> Any:
    from tokenizers import normalizers

    end = "<|endoftext|>"
    core = _bytes(OLD_TEXTS, [end])
    if family == "byte_lower":
        core.normalizer = normalizers.Lowercase()
    return _fast(core, bos_token=end, eos_token=end, unk_token=end)


def with_bytes(*, bos: bool) -> Any:
    """A tokenizer for any text, which starts with a BOS token or with nothing."""
    from tokenizers import processors

    core = _bytes(TEXTS, ["<pad>", "</s>", "<s>"])
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


def _unigram(family: str, letters: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    core = Tokenizer(models.Unigram())
    spaces = {"replacement": "▁", "prepend_scheme": "always"}
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**spaces)]
    )
    core.decoder = decoders.Metaspace(**spaces)
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


def _llama(family: str) -> Any:
    """Trained on words, as SentencePiece does, and used on whole texts."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    from tokenizers.pre_tokenizers import Metaspace

    special = ["<unk>", "<s>", "</s>"]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = Metaspace()
    byte_pieces = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=[*special, *byte_pieces], show_progress=False
    )
    trained.train_from_iterator(OLD_TEXTS, trainer)
    model = json.loads(trained.to_str())["model"]
    core = Tokenizer(
        models.BPE(
            vocab=model["vocab"],
            merges=[tuple(merge) for merge in model["merges"]],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
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
