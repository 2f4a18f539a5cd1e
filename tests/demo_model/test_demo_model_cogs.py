"""cogs_mini's demonstration model: exact tokens, the same model for the same seed."""

from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.demo_model import cogs as demo
from lm_eval_ext.demo_model.training import TrainingReport
from lm_eval_ext.errors import OptionError

pytestmark = pytest.mark.slow

STEPS = 60

Trained = tuple[Path, TrainingReport]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    out = tmp_path_factory.mktemp("demo") / "cogs"
    return out, demo.train(out, seed=3, steps=STEPS, progress=False)


@pytest.fixture(scope="module")
def tokenizer(trained: Trained) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(trained[0])


@pytest.mark.parametrize("split", mini.ALL_SPLITS)
def test_tokens_give_the_text_back(tokenizer: Any, split: str) -> None:
    for example in mini.examples(split):
        for text in (example.sentence, example.form):
            ids = tokenizer(text).input_ids
            assert tokenizer.unk_token_id not in ids, text
            assert ids[-1] == tokenizer.eos_token_id
            assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_it_learns_and_is_loaded_as_a_sequence_model(trained: Trained, tokenizer: Any) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM

    folder, report = trained
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    torch.manual_seed(0)
    untrained = AutoModelForSeq2SeqLM.from_config(model.config)
    example = mini.examples("dev")[0]
    ids, labels = (
        torch.tensor([tokenizer(text).input_ids]) for text in (example.sentence, example.form)
    )
    with torch.no_grad():
        before, after = (m(input_ids=ids, labels=labels).loss.item() for m in (untrained, model))
    assert after < before - 1, "in nats per token"
    assert report.steps == STEPS
    assert report.parameters == model.num_parameters()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_model(trained: Trained, tmp_path: Path) -> None:
    one, again, other = (
        demo.train(tmp_path / name, seed=seed, steps=3, progress=False)
        for name, seed in (("one", 3), ("again", 3), ("other", 4))
    )
    assert (again.final_loss, again.held_out_loss) == (one.final_loss, one.held_out_loss)
    first, second = (tmp_path / name / "model.safetensors" for name in ("one", "again"))
    assert first.read_bytes() == second.read_bytes()
    assert other.held_out_loss != one.held_out_loss
    assert demo.train(trained[0], seed=3, steps=STEPS).reused


def test_wrong_options_are_one_clear_line(trained: Trained, tmp_path: Path) -> None:
    for arguments, message in (
        ({"steps": 0}, "steps is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "it must be from 0 to"),
    ):
        with pytest.raises(OptionError, match=message):
            demo.train(tmp_path / "x", **arguments)
    with pytest.raises(OptionError, match="made from other settings"):
        demo.train(trained[0], seed=9, steps=STEPS)
    assert not (tmp_path / "x").exists()
