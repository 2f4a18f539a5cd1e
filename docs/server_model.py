"""The tiny Llama that docs/servers.py asks: random weights, and a tokenizer of the tasks' words."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from lm_eval_ext.runs.tasks import own_manager

ROOM = 2048
"""Tokens of a prompt."""

DOCUMENTS, VOCABULARY = 96, 3000
"""What the tokenizer is trained on, of each task, and how many tokens it has at most."""

LOUDER, OF_ENDS = 3.0, 1.8
"""What initial weights are multiplied with, since they give all tokens nearly the same probability;
and what those of tokens that end an answer are multiplied with in addition."""

TEMPLATE = (
    "{{ bos_token }}{% for turn in messages %}{{ turn['role'] }}: {{ turn['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)


def texts(tasks: Iterable[str]) -> Iterator[str]:
    """The tasks' prompts with the right answers, or with what LIEDER compares."""
    for name in tasks:
        task = own_manager().load([name])["tasks"][name]
        task.build_all_requests(limit=DOCUMENTS, rank=0, world_size=1)
        for request in task.instances:
            prompt, rest = request.arguments
            yield prompt + (
                rest if isinstance(rest, str) else f" {task.doc_to_target(request.doc)}"
            )


def make(folder: Path, tasks: Iterable[str]) -> None:
    """Saves a model with random weights whose answers are words, differ, and end now and then."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        texts(tasks),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], show_progress=False,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        ),
    )  # fmt: skip
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
    )
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=core.get_vocab_size(), hidden_size=96, intermediate_size=256,
            num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=ROOM, bos_token_id=0, eos_token_id=1, pad_token_id=1,
        )
    )  # fmt: skip
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(LOUDER)
        for word, number in core.get_vocab().items():
            text = core.decode([number])
            if "\ufffd" in text or word == "<s>":
                model.lm_head.weight[number] = 0.0  # a part of a character
            elif "\n" in text or word == "</s>":
                model.lm_head.weight[number] *= OF_ENDS
    model.eval().save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token="</s>",
        model_max_length=ROOM, chat_template=TEMPLATE,
    ).save_pretrained(folder)  # fmt: skip
