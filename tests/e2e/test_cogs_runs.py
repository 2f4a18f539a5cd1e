"""COGS through lm_eval: recorded golds in every type, a trained model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.asking import of_file

from lm_eval_ext.benchmarks.cogs import load

pytestmark = pytest.mark.e2e


def write(path: Path, prompts: list[str], answers: list[str]) -> Path:
    rows = ({"arguments": [p], "response": a} for p, a in zip(prompts, answers, strict=True))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_recorded_answers_on_the_command_line(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], real_data: Path, tmp_path: Path
) -> None:
    documents = load.dataset(cogs_lexicon="fresh", cogs_split="gen_small", cogs_seed=3,
                             cogs_shape="cvcv_short")["test"]  # fmt: skip
    golds = documents["form"][:]
    env = {"LM_EVAL_EXT_DATA": str(real_data)}
    wrong = {kind for kind in documents["type"] if kind.startswith("prim_")}
    answers = [
        golds[place - 1] if kind in wrong else golds[place]
        for place, kind in enumerate(documents["type"])
    ]
    file = write(tmp_path / "answers.jsonl", documents["sentence"][:], answers)
    done = lm_eval("--tasks", "cogs_fresh_gen_small", "--model", "recorded", "--model_args",
                   f"path={file}", "--metadata", '{"cogs_seed": 3}', env=env)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    scores = done.results()["results"]["cogs_fresh_gen_small"]
    figures = {name.partition(",")[0]: value for name, value in scores.items() if "," in name}
    assert len([name for name in figures if "_stderr" not in name]) == 3
    for kind in set(documents["type"]):
        for metric in ("exact_match", "equivalent"):
            value = of_file(done.output, "cogs_fresh_gen_small", metric, type=kind)
            assert abs(value - (kind not in wrong)) < 0.03, kind
    assert figures["exact_match/structural"] == 1
    assert figures["exact_match"] == pytest.approx(1 - len(wrong) / 21, abs=0.01)
    shown = cli("show", str(done.output)).stdout
    assert "1,050 of 1,050 documents" in shown
    assert "structural" in shown
    assert "seed:3" in cli("show", str(done.output), "--signatures").stdout


def test_a_trained_model_is_far_better_in_distribution(
    lm_eval: Callable[..., Any], demonstration_model: Path
) -> None:
    folder = str(demonstration_model)
    parts = {"id": 200, "testlex": 210, "gen": 500}
    some = {f"cogs_mini_{part}": list(range(0, size, 4)) for part, size in parts.items()}
    done = lm_eval(
        "--tasks", "cogs_mini", "--model", "hf", "--model_args", f"pretrained={folder}",
        "--device", "cpu", "--batch_size", "64", "--gen_kwargs", "max_gen_toks=160",
        "--samples", json.dumps(some),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    scores = done.results()["results"]
    in_distribution, known_words, new_places = (
        scores[f"cogs_mini_{split}"]["exact_match,none"] for split in ("id", "testlex", "gen")
    )
    assert in_distribution > 0.6
    assert in_distribution > known_words + 0.3, "key words have one example each"
    assert in_distribution > new_places + 0.4
    assert scores["cogs_mini_gen"]["exact_match/structural,none"] < 0.2
