"""LIEDER with lm-eval's own models: the probabilities, and what changes them."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from support.asking import run_in

from lm_eval_ext.results.table import rows
from lm_eval_ext.runs.tasks import our_task_manager

pytestmark = pytest.mark.e2e


def evaluate(task: str, model: str, **options: Any) -> Any:
    return simple_evaluate(
        model=model, tasks=[task], task_manager=our_task_manager(), bootstrap_iters=0, **options
    )


def plain_logprobs(folder: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """One sentence at a time, no batch, no padding, no cache: the definition itself."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    t5 = folder.name == "t5"
    family = transformers.AutoModelForSeq2SeqLM if t5 else transformers.AutoModelForCausalLM
    model = family.from_pretrained(folder).eval()
    sums = []
    for context, continuation in pairs:
        ids = tokenizer(context)["input_ids"]
        with torch.no_grad():
            if t5:
                answer = tokenizer(continuation, add_special_tokens=False)["input_ids"]
                targets = torch.tensor(answer)
                logits = model(input_ids=torch.tensor([ids]), labels=targets[None]).logits[0]
            else:
                full_ids = tokenizer(context + continuation)["input_ids"]
                assert full_ids[: len(ids)] == ids, "the split is at a token's edge"
                logits = model(torch.tensor([full_ids])).logits[0, len(ids) - 1 : -1]
                targets = torch.tensor(full_ids[len(ids) :])
        logs = torch.log_softmax(logits.double(), dim=-1)
        sums.append(float(logs.gather(1, targets[:, None]).sum()))
    return sums


# Only the sentences of the three experiments are others.
@pytest.mark.parametrize(
    ("experiment", "family"),
    [("mini", "gpt2"), ("mini", "llama"), ("mini", "t5"), ("base", "llama")],
)
def test_sums_are_those_of_a_plain_forward_pass(
    experiment: str, family: str, tiny_models: Path, request: pytest.FixtureRequest
) -> None:
    if experiment != "mini":
        request.getfixturevalue("real_data")
    task = f"lieder_{experiment}"
    results = evaluate(
        task, "hf", model_args={"pretrained": str(tiny_models / family)}, device="cpu",
        batch_size=32, limit=16,
    )  # fmt: skip
    samples = results["samples"][task]
    pairs = [tuple(arguments) for sample in samples for arguments in sample["arguments"]]
    ours = [response[0][0] for sample in samples for response in sample["resps"]]
    assert len(pairs) == 16 * 12
    # A document has 12 pairs; every fifth one is of another place in its document.
    plain = plain_logprobs(tiny_models / family, pairs[::5])
    assert max(abs(a - b) for a, b in zip(ours[::5], plain, strict=True)) < 1e-4
    assert max(plain) - min(plain) > 1, "a constant model would prove nothing"


def test_few_shot_is_locked_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    with caplog.at_level(logging.INFO, logger="lm_eval"):
        results = evaluate("lieder_mini", "dummy", limit=1, num_fewshot=3)
    assert "set to 0" in caplog.text
    (sample,) = results["samples"]["lieder_mini"]
    assert [prompt for prompt, _ in sample["arguments"]] == sample["doc"]["context"]


def test_the_recorded_models_give_every_published_accuracy(
    recorded_lieder: Path, shared_data: Path
) -> None:
    compared = 0
    for expected in (shared_data / "lieder/recorded").glob("*.expected_*.json"):
        run, metric = expected.stem.split(".expected_")
        experiment, _, model = run.partition("_")
        recorded_run = run_in(recorded_lieder / experiment / model, f"lieder_{experiment}")
        assert {score.clusters for score in recorded_run.scores.values()} == {16}, "nouns"
        scored = rows(recorded_run)
        shares = scored[scored["metric"] == metric].groupby("comparison")["correct"].mean()
        published = json.loads(expected.read_text()).items()
        assert {name: score["correct"] / score["n"] for name, score in published} == dict(shares)
        compared += len(shares)
    assert compared == 3 * (34 + 34 + 33)
