"""The conceptual tasks through plain lm_eval: an encoder-decoder, a user's pipeline."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lm_eval_ext.benchmarks.conceptual import mini, openbookqa

pytestmark = pytest.mark.e2e


def test_mini_runs_with_an_encoder_decoder(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], tiny_models: Path
) -> None:
    """Which would write on: lm-eval adds the prompt's length to ``max_gen_toks``."""
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
    for part in ("score/random", "score/concept", "gain", "relative_error_change",
                 "too_few_demonstrations", "shots:2", "fewshot-seed:99", "seed:99"):  # fmt: skip
        assert part in shown.stdout, part


def own_openbookqa(folder: Path) -> dict[str, str]:
    """conceptual_mini's questions as an archive of OpenBookQA's form, declared as its source."""
    items = mini.concepts()
    facts = {item["question"]: item["explanation"] for group in items.values() for item in group}
    rows = [
        {
            "id": f"own-{number}",
            "question": {
                "stem": sample.question,
                "choices": [{"label": o.label, "text": o.text} for o in sample.options],
            },
            "fact1": facts[sample.question],
            "answerKey": sample.answer_label,
        }
        for number, sample in enumerate(mini.samples())
    ]
    archive = folder / "conceptual/own.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as content:
        for name, part in zip(openbookqa.IN_ARCHIVE, (rows[:20], rows[20:]), strict=True):
            content.writestr(name, "\n".join(map(json.dumps, part)))
    entry = dict.fromkeys(("title", "licence", "cite", "revision"), "own")
    entry |= dict.fromkeys(("homepage", "url"), "https://example.org/") | {"folder": "conceptual/"}
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    file = {"path": "own.zip", "size": archive.stat().st_size, "sha256": digest}
    declared = {**entry, "files": {"archive": file}}
    (folder / "sources.yaml").write_text(yaml.safe_dump({"openbookqa": declared}))
    return {"LM_EVAL_EXT_SOURCES": str(folder / "sources.yaml"), "LM_EVAL_EXT_DATA": str(folder)}


def test_a_users_pipeline_drives_openbookqa(
    lm_eval: Callable[..., Any], tiny_models: Path, tmp_path: Path
) -> None:
    pytest.importorskip("spacy")
    from support import spacy_pipeline

    pipeline = spacy_pipeline.trained()
    done = lm_eval("--tasks", "conceptual_openbookqa", "--model", "hf", "--device", "cpu",
                   "--model_args", f"pretrained={tiny_models / 'gpt2'}", "--limit", "4",
                   "--gen_kwargs", "max_gen_toks=4",
                   "--metadata", json.dumps({"conceptual_pipeline": str(pipeline)}),
                   env=own_openbookqa(tmp_path))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for sample in done.samples("conceptual_openbookqa"):
        assert sample["doc"]["concept"] in set(spacy_pipeline.FACTS.values())
        assert all(why == f"shares: {sample['doc']['concept']}"
                   for why in sample["doc"]["concept_why"])  # fmt: skip
    own = done.results()["configs"]["conceptual_openbookqa"]["metadata"]["signature"]
    assert own["pipeline"].startswith("en_tiny-1.2.3-")
    assert str(tmp_path) not in json.dumps(own) and str(pipeline) not in json.dumps(own)
