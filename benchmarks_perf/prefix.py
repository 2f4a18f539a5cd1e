"""hf-prefix beside hf: the same requests, in turn, each in a process of its own.

    python benchmarks_perf/prefix.py --task magnifico_desc_plausible --requests 384 --new-tokens 24

The model is random: Llama's shape, 6.5 million parameters, a byte-level BPE trained on the
requests. Printed are the ratio of the two times (of requests only, without loading), its
spread over the rounds, the limit (total over distinct tokens), peak memory, and whether the
answers are the same. Give hf its best batch size with --batch-size.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

# ruff: noqa: T201 (a script that prints)

NOISE = 1e-4


def requests_of(task: str, count: int, new_tokens: int) -> list[Any]:
    """Returns the first requests of a task."""
    from lm_eval.tasks import TaskManager

    from lm_eval_ext._autoload import tasks_folder

    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    loaded = next(iter(manager.load([task])["tasks"].values()))
    loaded.build_all_requests(limit=count, rank=0, world_size=1)
    found = loaded.instances[:count]
    for one in found:
        if one.request_type == "generate_until":
            one.arguments = (one.args[0], {**one.args[1], "max_gen_toks": new_tokens})
    return [[one.request_type, one.args] for one in found]


def make_model(requests: list[Any], folder: str) -> float:
    """Saves the model; returns the limit: tokens for each distinct token of the requests."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from lm_eval_ext.models.prefix.tree import grow

    texts = [" ".join(part for part in args if isinstance(part, str)) for _, args in requests]
    core = Tokenizer(models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<pad>", "</s>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    core.train_from_iterator(texts[::8], trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="</s>", model_max_length=8192
    )
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=4096, hidden_size=256, intermediate_size=704, num_hidden_layers=6,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=8192,
        bos_token_id=1, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)  # initial weights say nearly the same to every prompt
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return grow((n, tokenizer.encode(text), 0) for n, text in enumerate(texts)).sharing()


def answer(kind: str, folder: str, batch_size: str) -> None:
    """Runs in a process of its own: prints time, peak memory and answers as JSON."""
    import resource

    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    size: Any = batch_size if batch_size == "auto" else int(batch_size)
    model = get_model(kind)(f"{folder}/model", device="cpu", batch_size=size)
    rows = json.loads(Path(folder, "requests.json").read_text(encoding="utf-8"))
    requests = [Instance(kind, {}, tuple(args), 0) for kind, args in rows]
    begin, cpu = time.perf_counter(), time.process_time()
    answers = getattr(model, rows[0][0])(requests, disable_tqdm=True)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "answers": answers}))


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether texts are equal, or log-probabilities within noise with equal greedy flags."""
    if isinstance(one[0], str):
        return one == other
    return all(abs(a - b) < NOISE and x == y for (a, x), (b, y) in zip(one, other, strict=True))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="hf-prefix beside hf.")
    parser.add_argument("--task", default="magnifico_desc_plausible")
    parser.add_argument("--requests", type=int, default=384)
    parser.add_argument("--new-tokens", type=int, default=24)
    parser.add_argument("--batch-size", default="8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        answer(*args.answer, args.batch_size)
        return
    with tempfile.TemporaryDirectory() as folder:
        requests = requests_of(args.task, args.requests, args.new_tokens)
        Path(folder, "requests.json").write_text(json.dumps(requests), encoding="utf-8")
        limit = make_model(requests, f"{folder}/model")
        rounds: list[dict[str, Any]] = []
        for _ in range(args.rounds):
            rounds.append({})
            for kind in ("hf", "hf-prefix"):
                command = [sys.executable, __file__, "--answer", kind, folder]
                command += ["--batch-size", args.batch_size]
                done = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ, check=True)
                rounds[-1][kind] = json.loads(done.stdout.splitlines()[-1])
    print(f"{args.task}: {len(requests)} requests, batch size {args.batch_size}")
    for figure in ("seconds", "cpu", "peak"):
        ratios = [one["hf"][figure] / one["hf-prefix"][figure] for one in rounds]
        middle = {kind: median(one[kind][figure] for one in rounds) for kind in rounds[0]}
        print(
            f"{figure:8} hf {middle['hf']:.1f}  hf-prefix {middle['hf-prefix']:.1f}  ratio "
            f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    print(f"limit    {limit:.2f} (total over distinct tokens of the prompts)")
    equal = all(same(one["hf"]["answers"], one["hf-prefix"]["answers"]) for one in rounds)
    print(f"answers  {'the same' if equal else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
