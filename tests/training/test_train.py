"""Training by recipe: schema, resuming, gates, tokenizers, records. Everything is tiny."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import yaml
from support.results_files import rows, write_run
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.training import batches, command, fitting, material, recipe, records
from lm_eval_ext.training.material import Material
from lm_eval_ext.training.options import parse_seeds
from lm_eval_ext.training.recipe import NewTokenizer, Spans, Training, read_recipe
from lm_eval_ext.training.starting import new_tokenizer

WORDS = ("red", "blue", "green", "dog", "cat", "bird")
PAIRS = [(f"{a} {b}", f"{b} {a}") for a in WORDS for b in WORDS]


def tiny(model: str) -> dict[str, Any]:
    sizes = {
        "t5": {
            "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2,
            "dropout_rate": 0.1,
        },
        "gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
    }[model]  # fmt: skip
    return {
        "title": "Words the other way round",
        "paper": "none",
        "departures": [],
        "source": "pairs",
        "model": {"config": {"model_type": model, **sizes}, "tokenizer": {"kind": "words"}},
        "training": {
            "steps": 6, "batch_size": 8, "optimizer": "muon", "learning_rate": 0.01,
            "embedding_rate": 0.02, "evaluate_every": 2, "evaluate_answers": 2,
        },
        "gates": {"all": 0.0},
    }  # fmt: skip


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes a recipe that trains on PAIRS, with changes; returns its path."""

    def prepare(source: str, data: Any, seed: int) -> Material:
        if source == "text":
            return real(source, data, seed)
        return Material(PAIRS, PAIRS[:8], {"all": PAIRS[:4]}, model_file={"batch_size": 4})

    real = material.prepare
    monkeypatch.setattr(command, "prepare", prepare)

    def write(name: str = "tiny", kind: str = "t5", **changes: Any) -> str:
        file = tmp_path / f"{name}.yaml"
        content = tiny(kind) | {
            name: changes.pop(name) for name in ("model", "gates") if name in changes
        }
        file.write_text(yaml.safe_dump(recipe._merged(content, changes)))
        return str(file)

    return write


def last(curve: list[dict[str, float]], name: str) -> float:
    return [point[name] for point in curve if name in point][-1]


def test_a_training_that_was_cut_off_ends_like_one_that_was_not(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = command.train(write(), tmp_path / "whole", seeds=[3])[0]
    marked = fitting.mark_whole

    def cut_off(checkpoint: Path) -> None:
        """The process ends while the second checkpoint is written."""
        if checkpoint.name == "checkpoint-4":
            (checkpoint / "optimizer.pt").write_bytes(b"half")
            raise KeyboardInterrupt
        marked(checkpoint)

    monkeypatch.setattr(fitting, "mark_whole", cut_off)
    with pytest.raises(KeyboardInterrupt):
        command.train(write(), tmp_path / "cut", seeds=[3])
    monkeypatch.setattr(fitting, "mark_whole", marked)
    seen: list[Path | None] = []
    newest = fitting.newest_checkpoint
    monkeypatch.setattr(
        fitting, "newest_checkpoint", lambda folder: seen.append(newest(folder)) or seen[-1]
    )
    with pytest.raises(OptionError, match=r"recipe\.training\.batch_size 8 instead of 4"):
        command.train(write(training={"batch_size": 4}), tmp_path / "cut", seeds=[3])
    resumed = command.train(write(), tmp_path / "cut", seeds=[3])[0]
    assert [one.name for one in seen if one] == ["checkpoint-2"]
    for name in ("loss", "eval_loss", "eval_all"):
        assert last(resumed.record["curve"], name) == last(whole.record["curve"], name)
    weights = [one.folder / "model.safetensors" for one in (whole, resumed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()

    assert {path.name for path in whole.folder.iterdir()} >= {"config.json", "tokenizer.json"}
    assert not (whole.folder / ".training").exists()
    file = whole.model_file
    assert file == tmp_path / "whole" / "models" / "tiny-seed-3.yaml"
    assert yaml.safe_load(file.read_text())["batch_size"] == 4
    again = command.train(write(), tmp_path / "whole", seeds=[3])[0]
    assert again.reused
    assert again.gates == whole.gates
    with pytest.raises(
        OptionError, match=r"another training lies here, with recipe\.training\.steps"
    ):
        command.train(write(training={"steps": 7}), tmp_path / "whole", seeds=[3])


def test_accumulated_batches_are_one_batch(write: Any, tmp_path: Path) -> None:
    """transformers alone would add up the losses of a T5's batches: twice the gradient."""
    losses = []
    for parts in (1, 2):
        name = write(
            training={"accumulate": parts, "steps": 3, "evaluate_every": 3, "clip": 0,
                      "evaluate_answers": 0},
        )  # fmt: skip
        (trained,) = command.train(
            name, tmp_path / str(parts), settings={"model.config.dropout_rate": 0.0}
        )
        curve = trained.record["curve"]
        losses.append([point["loss"] for point in curve if "loss" in point])
        losses.append([point["grad_norm"] for point in curve if "grad_norm" in point])
    assert losses[0] == pytest.approx(losses[2], rel=1e-4)
    assert losses[1] == pytest.approx(losses[3], rel=1e-3)


def test_a_longer_schedule_is_cut_off_and_lossy_texts_are_counted(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Material(
        PAIRS, PAIRS[:8], {"all": PAIRS[:4]}, vocabulary=["red blue green dog cat"], lossy=True
    )
    monkeypatch.setattr(command, "prepare", lambda *_: made)
    name = write(training={"steps": 4, "schedule_length": 4, "evaluate_answers": 0})
    (trained,) = command.train(name, tmp_path / "out")
    rates = [one["learning_rate"] for one in trained.record["curve"] if "learning_rate" in one]
    assert 0.75 * 0.01 <= rates[-1] < rates[0]
    lost = trained.record["not_kept"]
    # Eleven pairs to train on and one of development have the word, in prompt and answer.
    assert lost["texts"] == 2 * 12
    assert "bird" in lost["such as"][0]
    # Paths in a model file may have changed since.
    moved = replace(made, model_file={"metadata": {"place": "new"}})
    monkeypatch.setattr(command, "prepare", lambda *_: moved)
    (again,) = command.train(name, tmp_path / "out")
    assert again.reused
    assert again.model_file is not None
    assert yaml.safe_load(again.model_file.read_text())["metadata"] == {"place": "new"}
    monkeypatch.setattr(command, "prepare", lambda *_: replace(made, lossy=False))
    with pytest.raises(OptionError, match="does not keep the texts"):
        command.train(name, tmp_path / "refused")
    monkeypatch.setattr(command, "prepare", lambda *_: replace(made, train=[]))
    with pytest.raises(OptionError, match="has no example left"):
        command.train(name, tmp_path / "nothing")


def test_what_several_models_start_from_is_waited_for(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of ``experiment --list`` that run at once; nothing is trained here."""
    name = write("after", first={"words": {"recipe": write("before")}}, model={"start": "{words}"})
    inside, both = Counter[Path](), Barrier(2, timeout=300)

    def train_here(_recipe: Any, folder: Path, *_: Any) -> records.Trained:
        if folder.parent.name == "first":
            inside[folder] += 1
            assert inside[folder] == 1
            time.sleep(0.1)
            inside[folder] -= 1
        return records.Trained(folder, (), {}, None, False)

    def train(out: str) -> None:
        both.wait()
        command.train(name, tmp_path / out, shared=command.Shared(tmp_path / "first"))

    monkeypatch.setattr(command, "train_here", train_here)
    monkeypatch.setattr(command, "write_model_file", lambda *_: None)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(train, ("one", "other")))
    assert len(inside) == 1


def test_a_gate_that_is_missed_is_told_and_reports_leave_the_model_out(
    write: Any, tmp_path: Path
) -> None:
    from lm_eval_ext.results.files import find
    from lm_eval_ext.results.models import read_models
    from lm_eval_ext.runs.model_files import read_model_files

    name = write(kind="gpt2", gates={"all": 1.0}, training={"steps": 1, "evaluate_answers": 0})
    (trained,) = command.train(name, tmp_path / "out")
    assert not trained.learned
    assert "DID NOT LEARN: all 0.0 % of 4 (at least 100 %)" in records.summary(trained)
    file = trained.model_file
    assert file is not None
    (read,) = read_model_files([file])
    assert "all 0.0 % of 4" in yaml.safe_load(read.text)["did_not_learn"]

    for label in ("bad", "good"):
        write_run(tmp_path / "results" / label, label, "made", rows(2, 1))
    (tmp_path / "results" / "bad" / "model.yaml").write_text(read.text)
    assert [one.model for one in find(tmp_path / "results")] == ["good"]
    assert [one.label for one in read_models([tmp_path / "results"])] == ["good"]
    with pytest.raises(OptionError, match="only models that did not learn"):
        find(tmp_path / "results" / "bad")


def test_trainings_that_come_first_and_running_text(write: Any, tmp_path: Path) -> None:
    """Span corruption on a folder of text, then fine-tuning of what came out."""
    rng = random.Random(0)
    lines = (" ".join(rng.choices(WORDS, k=12)) for _ in range(20))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(lines))
    spans = {"tokens": 200, "block": 32, "held_out": 0.3}
    stops = {"patience": 1, "keep": "best", "learning_rate": 1.0, "evaluate_every": 1}
    before = write(
        "before", source="text", data={"folder": str(tmp_path / "text")}, gates={},
        training={"steps": 20, "by_length": True, "spans": spans, "evaluate_answers": 0, **stops},
    )  # fmt: skip
    after = write(
        "after", first={"words": {"recipe": before}}, training={"steps": 2},
        model={"start": "{words}"},
    )  # fmt: skip
    (trained,) = command.train(after, tmp_path / "out")
    start = trained.record["start"]["model.safetensors"]
    first = json.loads((tmp_path / "out" / "first" / "words" / "training.json").read_text())
    from lm_eval_ext.atomic import sha256_of

    assert start == sha256_of(tmp_path / "out" / "first" / "words" / "model.safetensors")
    losses = [point["eval_loss"] for point in first["curve"] if "eval_loss" in point]
    assert losses[-1] >= min(losses)
    assert len(losses) < 20, "it stopped early"
    assert first["key"] == trained.record["key"]["first"]["words"]
    assert trained.record["pretraining_tokens"] == 200
    with pytest.raises(OptionError, match=r"tokens is 1,000,000, and the text has 2\d\d"):
        command.train(before, tmp_path / "more", settings={"training.spans.tokens": "1M"})
    with pytest.raises(DataError, match="no text"):
        command.train(before, tmp_path / "none", settings={"data.folder": str(tmp_path / "no")})


def test_what_cannot_work_is_refused_in_a_line(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def refused(match: str, **changes: Any) -> None:
        settings = changes.pop("settings", {})
        with pytest.raises(LmEvalExtError, match=match) as error:
            command.train(write(**changes), out, settings=settings)
        assert "\n" not in str(error.value)
        assert not (out / "config.json").exists()

    refused("unknown key; nearest is learning_rate", training={"lerning_rate": 1})
    refused("nearest is batch_size", training={"btach_size": 1})
    refused(r"training\.optimizer.*'adamw' or 'muon'", training={"optimizer": "sgd"})
    refused("give steps or epochs", training={"epochs": 2})
    refused("training.watch 'gate' is none of loss, all", training={"watch": "gate"})
    refused("no model_type 'tt5'", settings={"model.config.model_type": "tt5"})
    refused("t5 has no 'd_modle'; nearest is d_model", settings={"model.config.d_modle": 3})
    refused("expected int, got str", settings={"model.config.num_heads": "many"})
    refused("give start, or config", model={"start": "somewhere", "tokenizer": {}})
    refused("pairs has no 'test'; it has all", gates={"test": 1.0})
    refused("the model has 2 positions, and an example", kind="gpt2",
            settings={"model.config.n_positions": 2})  # fmt: skip
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(OptionError, match="holds no training"):
        command.train(write(), tmp_path / "full")


def test_a_full_disk_is_said_and_half_a_checkpoint_is_none(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "mark_whole", _raises(OSError(28, "No space left on device")))
    with pytest.raises(OptionError, match="the disk is full"):
        command.train(write(), tmp_path / "out")
    assert fitting.newest_checkpoint(tmp_path / "out" / ".training" / "checkpoints") is None
    torchs = RuntimeError("PytorchStreamWriter failed writing file data/7: file write failed")
    assert "the disk is full" in str(fitting._full(tmp_path, torchs))
    assert fitting._full(tmp_path, RuntimeError("shapes do not match")) is None


def _raises(error: Exception) -> Any:
    def raise_(_: Path) -> None:
        raise error

    return raise_


def test_answers_that_a_tokenizer_corrupts_are_named() -> None:
    tokenizer = new_tokenizer(NewTokenizer(kind="unigram"), ["a b", "b a"], encoder_decoder=True)
    assert batches.problem_with(tokenizer, [("a b", "b a")]) == ""
    assert "comes back as 'a b'" in batches.problem_with(tokenizer, [("a", "a  b")])
    assert "unknown" in batches.problem_with(tokenizer, [("a c", "a")])


def test_spans_lose_nothing() -> None:
    """Putting the spans back where their sentinels are gives the block, for any block."""
    sentinels = list(range(900, 1000))
    rng = random.Random(1)
    noise = total = 0
    for length in [*range(2, 40), 512]:
        block = [rng.randrange(100) for _ in range(length)]
        row = batches.corrupt(block, Spans(tokens=1), sentinels, 1, rng)
        source, answer = row["input_ids"][:-1], row["labels"][:-1]
        parts: dict[int, list[int]] = {}
        for token in answer:
            if token >= 900:
                parts[token] = []
            else:
                parts[next(reversed(parts))].append(token)
        back = [t for token in source for t in parts.get(token, [token])]
        assert back == block
        assert list(parts) == sentinels[: len(parts)]
        noise += sum(map(len, parts.values()))
        total += length
    assert 0.14 < noise / total < 0.17


def test_a_causal_prompt_has_no_loss() -> None:
    tokenizer = new_tokenizer(NewTokenizer(), ["a b c"], encoder_decoder=False)
    training = Training(steps=1, learning_rate=1, evaluate_every=1, max_target=8)
    ([row], cut) = batches.encode([("a b", "c")], tokenizer, training, encoder_decoder=False)
    vocabulary = tokenizer.get_vocab()
    end = tokenizer.eos_token_id
    assert row["input_ids"] == [vocabulary["a"], vocabulary["b"], vocabulary["c"], end]
    assert row["labels"] == [-100, -100, vocabulary["c"], end]
    assert cut == 0


def test_every_recipe_that_ships_is_legal_and_says_where_its_values_are_from() -> None:
    assert {"cogs_t5_base", "cogs_tiny"} <= set(recipe.shipped())
    for name in recipe.shipped():
        found = read_recipe(name)
        assert len(found.paper) > 40, name
        assert found.departures, name
        assert found.source in material.sources(), name
        for first in found.first.values():
            read_recipe(first.recipe)
    assert "d_model" not in read_recipe("cogs_tiny_causal").model.config


def test_the_command_line(write: Any, tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert "cogs_tiny: " in run(app, ["train", "--list"]).output
    shown = run(app, ["train", write(), "--show", "--set", "training.steps=9"]).output
    assert yaml.safe_load(shown)["training"]["steps"] == 9
    for arguments, said in (
        (["nosuch"], "name a folder"),
        (["cogs_tny", "-o", str(tmp_path / "x")], "nearest name is cogs_tiny"),
        (["cogs_tiny", "-o", str(tmp_path / "x"), "--set", "steps"], "write key=value"),
        (["cogs_tiny", "-o", str(tmp_path / "x"), "--seeds", "a"], "0-4 or 0,2,7"),
    ):
        result = run(app, ["train", *arguments])
        assert isinstance(result.exception, OptionError)
        assert said in str(result.exception)
    assert not (tmp_path / "x").exists()
    assert parse_seeds("0-2, 7") == [0, 1, 2, 7]
