"""The conceptual tasks through plain lm_eval: an encoder-decoder."""

from pathlib import Path

import pytest
from support.commands import Command

pytestmark = pytest.mark.e2e


def test_mini_runs_with_an_encoder_decoder(
    lm_eval: Command, cli: Command, tiny_models: Path
) -> None:
    """``max_length`` ends its answers: lm-eval adds the prompt's length to ``max_gen_toks``."""
    done = lm_eval("--tasks", "conceptual_mini", "--model", "hf", "--device", "cpu",
                   "--model_args", f"pretrained={tiny_models / 't5'}", "--limit", "3",
                   "--num_fewshot", "2", "--gen_kwargs", "max_gen_toks=4,max_length=4",
                   "--seed", "0,1,2,99")  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for sample in done.samples("conceptual_mini"):
        prompts = [sample["arguments"][f"gen_args_{n}"]["arg_0"] for n in range(2)]
        assert [prompt.count("Input: ") for prompt in prompts] == [3, 3]
    results = done.results()
    assert results["n-samples"]["conceptual_mini"] == {"original": 36, "effective": 3}
    shown = cli("show", str(done.output), "--signatures")
    assert shown.returncode == 0, shown.stderr
    for text in ("score/random", "score/concept", "gain", "relative_error_change",
                 "too_few_demonstrations", "shots:2", "fewshot-seed:99", "seed:99"):  # fmt: skip
        assert text in shown.stdout, text
