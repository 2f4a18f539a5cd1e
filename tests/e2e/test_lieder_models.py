"""LIEDER with lm-eval's own models: the probabilities, and what changes them."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from support import logged

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.cards import cards
from lm_eval_ext.results.files import find
from lm_eval_ext.results.table import rows, samples_file
from lm_eval_ext.stats.statistics import figure
from lm_eval_ext.stats.table import frame

pytestmark = pytest.mark.e2e


def evaluate(task: str, model: Any, arguments: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    return simple_evaluate(
        model=model,
        model_args=arguments or {},
        tasks=[task],
        task_manager=TaskManager(include_defaults=False, include_path=tasks_folder()),
        bootstrap_iters=10,
        **kwargs,
    )


def plain_logprobs(folder: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """One sentence at a time, no batch, no padding, no cache: the definition itself."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoder_decoder = "t5" in folder.name
    family = (
        transformers.AutoModelForSeq2SeqLM if encoder_decoder else transformers.AutoModelForCausalLM
    )
    model = family.from_pretrained(folder).eval()
    sums = []
    for context, continuation in pairs:
        with torch.no_grad():
            if encoder_decoder:
                source = torch.tensor([tokenizer(context)["input_ids"]])
                target = torch.tensor(
                    [tokenizer(continuation, add_special_tokens=False)["input_ids"]]
                )
                logits = model(input_ids=source, labels=target).logits[0]
                targets = target[0]
            else:
                whole = tokenizer(context + continuation)["input_ids"]
                start = len(tokenizer(context)["input_ids"])
                assert whole[:start] == tokenizer(context)["input_ids"], (
                    "the split is at a token's edge"
                )
                logits = model(torch.tensor([whole])).logits[0, start - 1 : -1]
                targets = torch.tensor(whole[start:])
        logs = torch.log_softmax(logits.double(), dim=-1)
        sums.append(float(logs.gather(1, targets[:, None]).sum()))
    return sums


@pytest.mark.parametrize(
    ("experiment", "kind"),
    [
        *(("mini", kind) for kind in ("gpt2", "llama", "t5")),
        # Only the sentences are others.
        *(("base", "llama"), ("diff", "t5"), ("two", "gpt2")),
    ],
)
def test_sums_are_those_of_a_plain_forward_pass(
    experiment: str, kind: str, tiny_models: Path, request: pytest.FixtureRequest
) -> None:
    if experiment != "mini":
        request.getfixturevalue("real_data")
    task = f"lieder_{experiment}"
    results = evaluate(
        task, "hf", {"pretrained": str(tiny_models / kind)},
        device="cpu", batch_size=32, limit=16,
    )  # fmt: skip
    samples = results["samples"][task]
    pairs = [tuple(arguments) for sample in samples for arguments in sample["arguments"]]
    ours = [response[0][0] for sample in samples for response in sample["resps"]]
    assert len(pairs) == 16 * 12
    # A document has 12 pairs; every fifth one is of another place in its document.
    plain = plain_logprobs(tiny_models / kind, pairs[::5])
    assert max(abs(a - b) for a, b in zip(ours[::5], plain, strict=True)) < 1e-4
    assert max(plain) - min(plain) > 1, "a constant model would prove nothing"


def test_a_chat_template_makes_the_context_the_users_turn(
    tiny_models: Path, tmp_path: Path
) -> None:
    import shutil

    import transformers

    folder = tmp_path / "chat"
    shutil.copytree(tiny_models / "gpt2", folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = (
        "{% for m in messages %}<{{m.role}}>{{m.content}}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    results = evaluate(
        "lieder_mini", "hf", {"pretrained": str(folder)}, device="cpu", limit=1,
        apply_chat_template=True, system_instruction="Read on.",
    )  # fmt: skip
    (sample,) = results["samples"]["lieder_mini"]
    for (prompt, continuation), context in zip(
        sample["arguments"], sample["doc"]["context"], strict=True
    ):
        assert prompt == f"<system>Read on.\n<user>{context}\n<assistant>"
        assert not continuation.startswith(" ")


def test_few_shot_is_locked_out(
    tiny_models: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    with caplog.at_level(logging.INFO, logger="lm_eval"):
        results = evaluate(
            "lieder_mini", "hf", {"pretrained": str(tiny_models / "gpt2")},
            device="cpu", limit=1, num_fewshot=3,
        )  # fmt: skip
    assert "set to 0" in caplog.text
    (sample,) = results["samples"]["lieder_mini"]
    assert [prompt for prompt, _ in sample["arguments"]] == sample["doc"]["context"]


def test_old_samples_score_the_same_again(tiny_models: Path, tmp_path: Path) -> None:
    """What lm-eval logged is enough: the same scores to the last digit, without the model."""
    from lm_eval_ext.models.recorded import RecordedLM

    first = logged.evaluate(
        tmp_path, "hf", ["lieder_mini"], model_args=f"pretrained={tiny_models / 'gpt2'}",
        device="cpu", batch_size=16, limit=16,
    )  # fmt: skip
    again = evaluate("lieder_mini", RecordedLM(path=str(tmp_path)), limit=16)
    assert again["results"]["lieder_mini"] == first["results"]["lieder_mini"]


def test_a_completions_server_gives_what_the_model_itself_gives(tiny_models: Path) -> None:
    from support import completions_server

    folder = tiny_models / "gpt2"
    with completions_server.serve(folder) as url:
        served = evaluate(
            "lieder_mini",
            "local-completions",
            {
                "base_url": url, "model": "tiny", "tokenizer": str(folder),
                "tokenizer_backend": "huggingface", "num_concurrent": 1, "max_retries": 1,
            },
            limit=6, batch_size=8,
        )  # fmt: skip
    local = evaluate("lieder_mini", "hf", {"pretrained": str(folder)}, device="cpu", limit=6)

    def logprobs(results: Any) -> list[float]:
        return [r[0][0] for s in results["samples"]["lieder_mini"] for r in s["resps"]]

    assert logprobs(served) == pytest.approx(logprobs(local), abs=1e-3)
    assert served["results"] == local["results"]


@pytest.mark.parametrize("model", logged.RECORDED_MODELS)
@pytest.mark.parametrize("experiment", logged.EXPERIMENTS)
def test_the_recorded_model_gives_every_published_accuracy(
    recorded_lieder: Path, shared_data: Path, experiment: str, model: str
) -> None:
    run = shared_data / "lieder/recorded" / f"{experiment}_{model}"
    task = f"lieder_{experiment}"
    (file,) = find(recorded_lieder / experiment / model)
    scored = rows(file, task)
    shares = scored.groupby(["metric", "comparison"])["correct"].mean()
    compared = 0
    for metric in ("direct", "relative"):
        expected = Path(f"{run}.expected_{metric}.json")
        if metric == "relative" and experiment == "two":
            assert not expected.exists()
            continue
        for name, figures in json.loads(expected.read_text()).items():
            assert shares[metric, name] == figures["correct"] / figures["n"], name
            compared += 1
    assert compared == (33 if experiment == "two" else 34)


def of_metric(rows: list[dict[str, Any]], metric: str) -> float:
    """A document's value of one of lm-eval's metrics."""
    question = cards()["lieder"].question_of(metric)
    value = figure(frame([("a", "a", ("a",), rows)]), question).value
    assert value is not None
    return value


def test_standard_errors_are_clustered_by_item(recorded_lieder: Path) -> None:
    """Against a statistics library that is told the nouns as clusters."""
    import numpy as np
    import statsmodels.api as sm

    (file,) = find(recorded_lieder / "base" / "gpt2")
    results = file.content
    lines = samples_file(file, "lieder_base").read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    nouns = np.array([hash(sample["doc"]["item"]) for sample in samples])
    assert len(set(nouns)) == 16
    scores = results["results"]["lieder_base"]
    for name in ("direct", "relative", "direct/plurality"):
        values = np.array([of_metric(sample["rows"], name) for sample in samples])
        fit = sm.OLS(values, np.ones(len(values))).fit(
            cov_type="cluster", cov_kwds={"groups": nouns}
        )
        assert scores[f"{name}_stderr,none"] == pytest.approx(float(fit.bse[0])), name
    assert results["higher_is_better"]["lieder_base"]["undefined"] is False
    assert results["higher_is_better"]["lieder_base"]["direct"] is True
