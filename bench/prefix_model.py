"""Requests of our tasks, and a random model that can read them."""

from pathlib import Path
from typing import Any

VOCABULARY = 4096
SEED = 7


def requests_of(task: str, count: int, new_tokens: int, folder: Path | None = None) -> list[Any]:
    """Returns the first requests of a task as ``[type, arguments]``.

    Args:
        task: Its name.
        count: How many; fewer if it has fewer.
        new_tokens: Most tokens of a generated text.
        folder: The folder of its YAML, if it is not one of ours.
    """
    from lm_eval.tasks import TaskManager

    from lm_eval_ext._autoload import tasks_folder

    manager = TaskManager(include_defaults=False, include_path=str(folder or tasks_folder()))
    loaded = next(iter(manager.load([task])["tasks"].values()))
    loaded.build_all_requests(rank=0, world_size=1)
    found = loaded.instances[:count]
    for one in found:
        if one.request_type == "generate_until":
            one.arguments = (one.args[0], {**one.args[1], "max_gen_toks": new_tokens})
    return [[one.request_type, one.args] for one in found]


def save_model(requests: list[Any], folder: Path, shape: str = "llama") -> None:
    """Saves a random model with a BPE of the requests.

    Args:
        requests: As of :func:`requests_of`.
        folder: Where to.
        shape: ``llama``, or ``gpt2`` (learned positions, full attention heads); both have six
            layers of width 256 and about 6 million parameters.
    """
    import torch
    import transformers

    tokenizer = _tokenizer([_text(args) for _, args in requests][::8])
    torch.manual_seed(SEED)
    special = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    model: Any
    if shape == "gpt2":
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=VOCABULARY, n_embd=256, n_layer=6, n_head=8, n_positions=1024, **special
            )
        )
    else:
        model = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=VOCABULARY, hidden_size=256, intermediate_size=704, num_hidden_layers=6,
                num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=8192,
                **special,
            )
        )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)  # with the initial ones it answers every prompt nearly alike
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def sharing(requests: list[Any], folder: Path) -> float:
    """Returns the limit: tokens per token that must be read once prefixes are shared."""
    import transformers

    from lm_eval_ext.models.prefix.plan import grow

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = (tokenizer.encode(_text(args)) for _, args in requests)
    if requests[0][0] == "loglikelihood":
        read = (tokens[:-1] for tokens in read)  # the last one is only predicted
    return grow((number, tokens, 0) for number, tokens in enumerate(read)).sharing()


def _text(args: Any) -> str:
    return "".join(part for part in args if isinstance(part, str))


def _tokenizer(texts: list[str]) -> Any:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="</s>", model_max_length=8192
    )
