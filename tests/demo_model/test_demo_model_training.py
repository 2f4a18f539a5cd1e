"""The demonstration model learns, loads and repeats; an interrupted run leaves nothing."""

import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
import typer
from typer.testing import CliRunner

from lm_eval_ext.cli.demo_model import demo_model
from lm_eval_ext.demo_model import corpus, training
from lm_eval_ext.demo_model import model as demo
from lm_eval_ext.demo_model.training import RECORD_FILE, Settings, Trained, TrainingReport
from lm_eval_ext.errors import OptionError

pytestmark = pytest.mark.slow

STEPS = 25

Model = tuple[Path, TrainingReport]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Model:
    out = tmp_path_factory.mktemp("demo") / "model"
    return out, demo.train(out, seed=5, steps=STEPS, progress=False)


@pytest.fixture(scope="module")
def tokenizer(trained: Model) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(trained[0])


@pytest.fixture(scope="module")
def model(trained: Model) -> Any:
    from transformers import AutoModelForSeq2SeqLM

    return AutoModelForSeq2SeqLM.from_pretrained(trained[0])


class Saved(SimpleNamespace):
    """Stands in for a model and for a tokenizer."""

    def save_pretrained(self, folder: Path) -> None:
        (folder / "weights").write_bytes(b"weights")

    def num_parameters(self) -> int:
        return 100


SETTINGS = Settings(seed=0, steps=2, corpus_sha256="0")
TRAINED = Trained(Saved(), Saved(), [3.0, 2.0], 4.0)


def never(*_: object, **__: object) -> NoReturn:
    raise AssertionError("trained again")


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_the_loaded_model_has_learned(trained: Model, model: Any, tokenizer: Any) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM

    torch.manual_seed(0)
    untrained = AutoModelForSeq2SeqLM.from_config(model.config)
    rows = [
        corpus.encode(tokenizer.backend_tokenizer, text) for text in islice(corpus.texts(9), 64)
    ]
    with torch.no_grad():
        losses = [demo.loss(one, rows).item() for one in (untrained, model)]
    assert losses[1] < losses[0] - 0.5
    report = trained[1]
    assert report.held_out_loss == pytest.approx(losses[1], abs=0.3)
    assert report.final_loss == pytest.approx(losses[1], abs=1.0)
    assert report.steps == STEPS
    assert report.parameters == model.num_parameters() < 5_000_000
    assert report.seconds > 0
    assert not report.reused


def test_special_tokens_reach_transformers(model: Any, tokenizer: Any) -> None:
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (
        "<s>",
        "</s>",
        "<pad>",
    )
    assert tokenizer.eos_token_id == model.config.eos_token_id
    assert tokenizer.pad_token_id == model.config.pad_token_id
    assert len(tokenizer) == model.config.vocab_size


def test_the_same_seed_gives_the_same_model(trained: Model, tmp_path: Path) -> None:
    import torch

    torch.manual_seed(123)  # what the caller did with torch before must not matter ...
    expected = torch.rand(1)
    torch.manual_seed(123)
    report = demo.train(tmp_path / "again", seed=5, steps=STEPS, progress=False)
    assert torch.equal(torch.rand(1), expected)  # ... nor may training disturb it
    assert replace(report, seconds=trained[1].seconds) == trained[1]
    for file in trained[0].iterdir():
        if file.name != RECORD_FILE:
            assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_another_seed_gives_another_model(trained: Model, tmp_path: Path) -> None:
    for steps in (1, 2):
        demo.train(tmp_path / str(steps), seed=steps, steps=1, progress=False)
    one, two = (tmp_path / name / "model.safetensors" for name in "12")
    assert one.read_bytes() != two.read_bytes()
    tokenizers = {(tmp_path / name / "tokenizer.json").read_bytes() for name in "12"}
    assert tokenizers == {(trained[0] / "tokenizer.json").read_bytes()}


def test_a_second_run_does_not_train(trained: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(trained[0])
    monkeypatch.setattr(demo, "fit", never)
    again = demo.train(trained[0], seed=5, steps=STEPS)
    assert again == replace(trained[1], reused=True)
    assert snapshot(trained[0]) == before


@pytest.mark.parametrize("options", [{"seed": 6, "steps": STEPS}, {"seed": 5, "steps": 26}, {}])
def test_another_model_is_not_overwritten(
    trained: Model, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(trained[0])
    monkeypatch.setattr(demo, "fit", never)
    with pytest.raises(OptionError, match=f"seed 5, {STEPS} steps.*nothing was changed"):
        demo.train(
            trained[0], seed=options.get("seed", 0), steps=options.get("steps", demo.DEFAULT_STEPS)
        )
    assert snapshot(trained[0]) == before


@pytest.mark.parametrize("record", [None, "{}", "not json", '{"settings": 1}'])
def test_a_foreign_folder_is_not_overwritten(tmp_path: Path, record: str | None) -> None:
    (tmp_path / "config.json").write_text("{}")
    if record is not None:
        (tmp_path / RECORD_FILE).write_text(record)
    before = snapshot(tmp_path)
    with pytest.raises(OptionError, match="is not a demonstration model") as error:
        training.make(tmp_path, SETTINGS, never)
    assert "\n" not in str(error.value)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("seed", "steps", "message"),
    [(0, 0, "steps is 0"), (-1, 1, "seed is -1"), (2**32, 1, "seed is 4294967296")],
)
def test_illegal_values_are_named(tmp_path: Path, seed: int, steps: int, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        demo.train(tmp_path / "m", seed=seed, steps=steps)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("stage", ["loss", "as_pretrained"], ids=["training", "saving"])
def test_an_interruption_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, stage, interrupted)
    with pytest.raises(KeyboardInterrupt):
        demo.train(tmp_path / "model", steps=1, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_two_runs_for_one_folder_leave_one_model(tmp_path: Path) -> None:
    out = tmp_path / "new" / "model"

    def while_another_run_trains() -> Trained:
        training.make(out, SETTINGS, lambda: TRAINED)
        return TRAINED

    with pytest.raises(OptionError, match=r"cannot write .*model: Directory not empty"):
        training.make(out, SETTINGS, while_another_run_trains)
    assert training.make(out, SETTINGS, never).reused
    assert [path.name for path in out.parent.iterdir()] == ["model"]


def test_a_file_in_the_way_is_found_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="exists and is not a folder"):
        training.make(tmp_path / "file", SETTINGS, never)
    with pytest.raises(OptionError, match=r"cannot write .*file/model: Not a directory"):
        training.make(tmp_path / "file" / "model", SETTINGS, never)


def test_import_is_light() -> None:
    script = (
        "import sys\n"
        "import lm_eval_ext.cli.demo_model\n"
        "heavy = {'torch', 'transformers', 'tokenizers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_command_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fake(out: Path, *, seed: int, steps: int) -> TrainingReport:
        calls.append((out, seed, steps))
        return TrainingReport(steps, 41.7, 0.66, 0.655, 457152, reused=len(calls) > 1)

    monkeypatch.setattr(demo, "train", fake)
    app = typer.Typer()
    app.command()(demo_model)
    first = CliRunner().invoke(app, ["--out", str(tmp_path), "--seed", "3", "--steps", "7"])
    again = CliRunner().invoke(app, ["--out", str(tmp_path)])
    assert calls == [(tmp_path, 3, 7), (tmp_path, 0, demo.DEFAULT_STEPS)]
    assert first.output.endswith(
        "holds a model trained in 42 s: 7 steps, 457152 parameters, "
        "held-out loss 0.655 nats per token\n"
    )
    assert "already holds this model, trained in 42 s" in again.output
