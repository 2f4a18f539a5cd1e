"""Tiny random models on disk, each of a family that users evaluate; nothing is downloaded."""

import shutil
from pathlib import Path
from typing import Any

KINDS = ("gpt2", "llama", "t5")

TEXT = (
    "A small tokenizer learns its words from a few sentences.",
    "John owns a dog but Mark doesn't own a cat. The dog is very nice.",
    "Mary and Paul know that the cats and the dogs are not here.",
    "It is not a very big deal, they said, and they all managed to leave.",
)


def few_tokens(kind: str) -> str:
    """``--gen_kwargs`` for answers of four tokens.

    lm-eval adds the prompt's length to ``max_gen_toks``, which lets an encoder-decoder write on.
    """
    return "max_gen_toks=4" + ",max_length=4" * (kind == "t5")


def make(kind: str, folder: Path) -> None:
    """Saves a random model of a kind with its tokenizer; the same weights every time.

    ``gpt2`` starts its texts with nothing, ``llama`` with a BOS token, ``t5`` is an
    encoder-decoder.
    """
    import torch
    import transformers

    torch.manual_seed(7)
    tokenizer = make_tokenizer(bos=kind == "llama")
    size = len(tokenizer)
    if kind == "gpt2":
        config: Any = transformers.GPT2Config(
            vocab_size=size, n_positions=256, n_embd=32, n_layer=2, n_head=2,
            bos_token_id=1, eos_token_id=1, pad_token_id=0,
        )  # fmt: skip
        model: Any = transformers.GPT2LMHeadModel(config)
    elif kind == "llama":
        config = transformers.LlamaConfig(
            vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
            bos_token_id=2, eos_token_id=1, pad_token_id=0,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
    else:
        config = transformers.T5Config(
            vocab_size=size, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
            decoder_start_token_id=0, eos_token_id=1, pad_token_id=0,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
    if kind != "t5":
        # Initial weights give nearly the same probability everywhere; larger ones give
        # comparisons something to differ by. T5's are large as they are.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3.0)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def chatting(folder: Path, copy: Path) -> Path:
    """A copy of a model with a chat template: ``<role>text`` and a line break for each turn."""
    import transformers

    shutil.copytree(folder, copy)
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    tokenizer.chat_template = (
        "{% for m in messages %}<{{m.role}}>{{m.content}}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    tokenizer.save_pretrained(copy)
    return copy


def make_tokenizer(*, bos: bool) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<pad>", "</s>", "<s>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if bos:
        core.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 2)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="<s>" if bos else None,
        model_max_length=256,
    )
