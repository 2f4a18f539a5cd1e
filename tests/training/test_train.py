"""Training by recipe: schema, resuming, gates, tokenizers, records. Everything is tiny."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.results_files import rows, write_run
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.training import batches, command, fitting, material, recipe
from lm_eval_ext.training.material import Material
from lm_eval_ext.training.recipe import NewTokenizer, Training, planned, read_recipe
from lm_eval_ext.training.starting import new_tokenizer

WORDS = ("red", "blue", "green", "dog", "cat", "bird")
PAIRS = [(" ".join([a] * n), f"{b} {a}") for n, a in enumerate(WORDS, 1) for b in WORDS]


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
            "max_steps": 6, "per_device_train_batch_size": 8, "optim": "muon",
            "learning_rate": 0.01, "embedding_learning_rate": 0.02, "eval_steps": 2,
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
        content = tiny(kind)
        content["training"] |= changes.pop("training", {})
        file.write_text(yaml.safe_dump(content | changes, sort_keys=False))
        return str(file)

    return write


def in_a_process(work: Callable[[], object]) -> int:
    """Does something in a forked process; returns its exit status, or minus the signal."""
    child = os.fork()
    if child == 0:
        status: Any = 1
        try:
            work()
            status = 0
        except SystemExit as error:
            status = error.code
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(train: Callable[[], object], steps: list[int], number: int = signal.SIGKILL) -> None:
    """Trains in processes that get a signal after these steps, each where the last one ended."""
    tell = fitting.tell
    for step in steps:

        def stop(line: str, step: int = step) -> None:
            tell(line)
            if line.startswith(f"step {step:,} of"):
                os.kill(os.getpid(), number)

        def work(stop: Any = stop) -> None:
            fitting.tell, fitting.TOLD_S = stop, -1.0
            train()

        assert in_a_process(work) == {signal.SIGKILL: -9, signal.SIGTERM: 128 + 15}[number]


def same_weights(*folders: Path) -> None:
    contents = {(folder / "model.safetensors").read_bytes() for folder in folders}
    assert len(contents) == 1


@pytest.mark.parametrize("sampling", ["group_by_length", "random"])
def test_a_training_that_was_killed_in_any_pass_ends_like_one_that_was_not(
    sampling: str, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """36 examples are 5 steps a pass; killed inside of passes, and at the end of one."""
    name = write(training={"max_steps": 19, "train_sampling_strategy": sampling, "eval_steps": 7})
    whole = command.train(name, tmp_path / "whole")[0]
    monkeypatch.setattr(fitting, "SAVED_S", 0.0)  # a checkpoint after each step, by time
    killed(lambda: command.train(name, tmp_path / "cut"), [3, 6, 8, 14])
    resumed = command.train(name, tmp_path / "cut")[0]
    same_weights(whole.folder, resumed.folder)
    losses = [
        [point["eval_loss"] for point in one.record["curve"] if "eval_loss" in point]
        for one in (whole, resumed)
    ]
    assert losses[0] == losses[1]


def test_sigterm_leaves_a_checkpoint(write: Any, tmp_path: Path) -> None:
    name = write(training={"eval_steps": 100})
    killed(lambda: command.train(name, tmp_path / "cut"), [3], signal.SIGTERM)
    (kept,) = tmp_path.glob("cut/.training/*/checkpoints/*")
    assert kept.name == "checkpoint-4", "the step that was under way"
    same_weights(
        command.train(name, tmp_path / "whole")[0].folder,
        command.train(name, tmp_path / "cut")[0].folder,
    )


TINY = {"cogs_tiny": 24, "cogs_tiny_causal": 24, "cogs_tiny_pretrained": 24, "diner_tiny": 16,
        "tkqa_tiny": 16}  # fmt: skip
"""Recipes with their batches."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_tiny_recipes_resume_in_every_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the recipe's model and optimizer, and four steps a pass."""
    real = material.prepare

    def few(source: str, data: Any, seed: int) -> Material:
        made = real(source, data, seed)
        if "sentences" in data:
            return made
        vocabulary = made.vocabulary or [text for pair in made.train for text in pair]
        return replace(made, train=made.train[: 4 * TINY[name]], dev=[], vocabulary=vocabulary)

    monkeypatch.setattr(command, "prepare", few)
    monkeypatch.setattr(fitting, "SAVED_S", 0.0)
    settings: dict[str, Any] = {"training.max_steps": 13, "gates": {}}
    if "pretrained" in name:
        settings["first.pretrained.set.training.max_steps"] = 2
    whole, cut = (
        lambda out=out: command.train(name, tmp_path / out, settings=settings)
        for out in ("whole", "cut")
    )
    killed(cut, [2, 7, 11])
    same_weights(whole()[0].folder, cut()[0].folder)


def test_a_checkpoint_that_was_cut_off_is_none_and_another_recipe_is_refused(
    write: Any, tmp_path: Path
) -> None:
    def cut_off(checkpoint: Path, order: Any) -> None:
        """The process ends while the second checkpoint is written."""
        if checkpoint.name == "checkpoint-4":
            os.kill(os.getpid(), signal.SIGKILL)
        marked(checkpoint, order)

    def work() -> None:
        fitting.mark_whole = cut_off
        command.train(write(), tmp_path / "cut", seeds="3")

    marked = fitting.mark_whole
    assert in_a_process(work) == -signal.SIGKILL
    (kept,) = tmp_path.glob("cut/seed-3/.training/*/checkpoints")
    assert {one.name for one in kept.iterdir()} == {"checkpoint-2", "checkpoint-4"}
    other = {"per_device_train_batch_size": 4}
    with pytest.raises(
        OptionError, match=r"another training lies here, .*batch_size 8 instead of 4"
    ):
        command.train(write(training=other), tmp_path / "cut", seeds="3")
    resumed = command.train(write(), tmp_path / "cut", seeds="3")[0]
    whole = command.train(write(), tmp_path / "whole", seeds="3")[0]
    same_weights(resumed.folder, whole.folder)

    assert {path.name for path in whole.folder.iterdir()} >= {"config.json", "tokenizer.json"}
    assert not (whole.folder / ".training").exists()
    file = whole.model_file
    assert file == tmp_path / "whole" / "models" / "tiny-seed-3.yaml"
    assert yaml.safe_load(file.read_text())["batch_size"] == 4
    again = command.train(write(), tmp_path / "whole", seeds="3")[0]
    assert again.reused
    assert again.gates == whole.gates
    with pytest.raises(
        OptionError, match=r"another training lies here, with recipe\.training\.max_steps"
    ):
        command.train(write(training={"max_steps": 7}), tmp_path / "whole", seeds="3")


def test_progress_is_told_at_once(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.train(write(training={"eval_steps": 100}), tmp_path / "out")
    assert re.match(r"step 1 of 6, loss \d\.\d{3}, \d+\.\d minutes left\n", capsys.readouterr().err)


def test_free_space_is_counted_with_what_checkpoints_hold(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(bytes_: int) -> None:
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(bytes_))

    name = write(training={"eval_steps": 100})
    free(0)
    with pytest.raises(OptionError, match="and 0 MB are free"):
        command.train(name, tmp_path / "out")
    free(10**9)
    killed(lambda: command.train(name, tmp_path / "out"), [3], signal.SIGTERM)
    held = sum(one.stat().st_size for one in tmp_path.glob("out/.training/*/checkpoints/*/*"))
    weights = next(tmp_path.glob("out/.training/*/new/model.safetensors")).stat().st_size
    free(10 * weights - held // 2)
    command.train(name, tmp_path / "out")


def test_accumulated_batches_are_one_batch(write: Any, tmp_path: Path) -> None:
    """transformers alone would add up the losses of a T5's batches: twice the gradient."""
    losses = []
    for parts in (1, 2):
        name = write(
            training={"gradient_accumulation_steps": parts, "max_steps": 3, "eval_steps": 3,
                      "per_device_train_batch_size": 8 // parts, "max_grad_norm": 0,
                      "logging_steps": 1},
        )  # fmt: skip
        (trained,) = command.train(
            name, tmp_path / str(parts), settings={"model.config.dropout_rate": 0.0}
        )
        curve = trained.record["curve"]
        losses.append([point["loss"] for point in curve if "loss" in point])
        losses.append([point["grad_norm"] for point in curve if "grad_norm" in point])
    assert losses[0] == pytest.approx(losses[2], rel=1e-4)
    assert losses[1] == pytest.approx(losses[3], rel=1e-3)


def test_lossy_texts_are_counted(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Material(
        PAIRS, PAIRS[:8], {"all": PAIRS[:4]}, vocabulary=["red blue green dog cat"], lossy=True
    )
    monkeypatch.setattr(command, "prepare", lambda *_: made)
    name = write(training={"max_steps": 2})
    (trained,) = command.train(name, tmp_path / "out")
    lost = trained.record["not_kept"]
    words = [part for pair in (*PAIRS, *PAIRS[:8], *PAIRS[:4]) for part in pair]
    assert lost["texts"] == sum("bird" in text for text in words) > 10
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
    with pytest.raises(OptionError, match="has no example"):
        command.train(name, tmp_path / "nothing")


def test_a_gate_that_is_missed_is_told_and_reports_leave_the_model_out(
    write: Any, tmp_path: Path
) -> None:
    from lm_eval_ext.results.files import find
    from lm_eval_ext.results.models import read_models
    from lm_eval_ext.runs.model_files import read_model_files

    name = write(kind="gpt2", gates={"all": 1.0}, training={"max_steps": 1})
    result = CliRunner().invoke(app, ["train", name, "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, LmEvalExtError)
    assert "1 of 1 models did not learn" in str(result.exception)
    assert "DID NOT LEARN: all 0.0 % of 4 (at least 100 %)" in result.stdout
    assert "evaluate with" not in result.stdout
    file = tmp_path / "out" / "models" / "tiny.yaml"
    (read,) = read_model_files([file])
    assert "all 0.0 % of 4" in yaml.safe_load(read.text)["did_not_learn"]

    for label in ("bad", "good"):
        write_run(tmp_path / "results" / label, label, "made", rows(2, 1))
    (tmp_path / "results" / "bad" / "model.yaml").write_text(read.text)
    assert [one.model for one in find(tmp_path / "results")] == ["good"]
    assert [one.label for one in read_models([tmp_path / "results"])] == ["good"]
    with pytest.raises(OptionError, match="only models that did not learn"):
        find(tmp_path / "results" / "bad")


def test_gates_ask_what_lm_eval_will_ask(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prompts that are longer than the training saw are cut on the left, and that is told."""
    from lm_eval.models.huggingface import HFLM

    seen: list[list[int]] = []
    asked = HFLM._model_generate

    def generate(self: Any, context: Any, **kwargs: Any) -> Any:
        seen.extend(context.tolist())
        return asked(self, context, **kwargs)

    monkeypatch.setattr(HFLM, "_model_generate", generate)
    long = [(f"{' '.join(['red'] * 9)} {word} cat", word) for word in WORDS]
    made = Material(long, long[:2], {"all": long})
    monkeypatch.setattr(command, "prepare", lambda *_: made)
    name = write(training={"max_steps": 1, "max_source_length": 8})
    (trained,) = command.train(name, tmp_path / "out")
    assert "6 of 6 examples are longer than max_source_length 8" in capsys.readouterr().err
    arguments = yaml.safe_load(trained.model_file.read_text())["model_args"]  # type: ignore[union-attr]
    model = HFLM(**arguments, device="cpu")
    gate, seen = sorted(seen), []
    assert {len(ids) for ids in gate} == {8}
    from lm_eval.api.instance import Instance

    requests = [
        Instance("generate_until", {}, (prompt, {"until": [], "max_gen_toks": 3}), place)
        for place, (prompt, _) in enumerate(long)
    ]
    monkeypatch.setattr(
        HFLM, "_model_generate", lambda self, context, **k: seen.extend(context.tolist()) or context
    )
    model.generate_until(requests, disable_tqdm=True)
    assert sorted(seen) == gate


def test_levels_and_seeds_are_trained_once_and_compared_by_seed(write: Any, tmp_path: Path) -> None:
    before = write("before", gates={})
    name = write(
        "after", first={"start": {"recipe": before}}, model={"start": "{start}"}, seeds="0-1",
        training={"max_steps": 1},
        vary={"rate": {"low": {"training.learning_rate": 0.001}, "high, 1": {}},
              "length": {"short": {"first.start.set.training.max_steps": 1}, "long": {}}},
    )  # fmt: skip
    out = tmp_path / "out"
    models = planned(name)
    assert [one.name for one in models[:4]] == [
        "low-short-seed-0", "low-long-seed-0", "high-1-short-seed-0", "high-1-long-seed-0",
    ]  # fmt: skip
    assert models[1].title == "low, long, seed 0"
    with pytest.raises(OptionError, match="no such model; there are low-short-seed-0, "):
        planned(name, only="mid*")
    assert len(planned(name, seeds="4", only="low-*")) == 2
    dry = ["train", name, "-o", str(out), "--dry-run"]
    assert CliRunner().invoke(app, dry).stdout.count(": not trained yet\n") == 8
    done = command.train(name, out)
    assert len(done) == len({one.record["key"]["recipe"]["training"]["learning_rate"] * 10
                             + one.record["key"]["seed"] for one in done}) * 2  # fmt: skip
    assert len(list((out / "first").glob("start-*"))) == 4, "two lengths, two seeds"
    said = CliRunner().invoke(app, dry).stdout
    assert "trained yet" not in said
    assert "low-short-seed-1: " in said
    (again,) = command.train(name, out, seeds="1", only="low-long*")
    assert again.reused
    assert len(list((out / "models").iterdir())) == 8, "a single seed changes no other"

    for place, one in enumerate(done):
        assert one.model_file is not None
        folder = tmp_path / "results" / one.model_file.stem
        write_run(folder, one.model_file.stem, "made", rows(10, place + 1))
        shutil.copyfile(one.model_file, folder / "model.yaml")
    table = CliRunner().invoke(
        app, ["compare", str(tmp_path / "results"), "--by-seed", "--format", "csv"]
    )
    assert table.exception is None
    assert "low, long" in table.stdout
    means = {line.split(",task")[0]: line for line in table.stdout.splitlines()[1:]}
    # Seeds 0 and 1 of a condition have 1 and 5 right of ten, 2 and 6, and so on.
    assert sorted(float(line.split(",")[-4]) for line in means.values()) == pytest.approx(
        [0.3, 0.4, 0.5, 0.6]
    )


def test_trainings_that_come_first_and_running_text(write: Any, tmp_path: Path) -> None:
    """Span corruption on a folder of text, then fine-tuning of what came out."""
    rng = random.Random(0)
    lines = (" ".join(rng.choices(WORDS, k=12)) for _ in range(20))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(lines))
    spans = {"tokens": 200, "block": 32, "held_out": 0.3}
    stops = {"early_stopping_patience": 1, "load_best_model_at_end": True, "learning_rate": 1.0,
             "eval_steps": 1}  # fmt: skip
    before = write(
        "before", source="text", data={"folder": str(tmp_path / "text")}, gates={},
        training={"max_steps": 20, "train_sampling_strategy": "group_by_length", "spans": spans,
                  **stops},
    )  # fmt: skip
    after = write(
        "after", first={"words": {"recipe": before}}, training={"max_steps": 2},
        model={"start": "{words}"},
    )  # fmt: skip
    (trained,) = command.train(after, tmp_path / "out")
    start = trained.record["start"]["model.safetensors"]
    (folder,) = (tmp_path / "out" / "first").glob("words-*")
    first = json.loads((folder / "training.json").read_text())
    from lm_eval_ext.atomic import sha256_of

    assert start == sha256_of(folder / "model.safetensors")
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

    refused("unknown key; did you mean learning_rate", training={"lerning_rate": 1})
    refused("did you mean max_grad_norm", training={"max_gard_norm": 1})
    refused(r"training\.weight_decay: .*valid number", training={"weight_decay": "much"})
    refused(r"training.*sgdd", training={"optim": "sgdd"})
    refused("with spans, give max_steps", training={"max_steps": None, "spans": {"tokens": "1M"}})
    refused(r"gates\.all.*less than or equal to 1", gates={"all": 1.5})
    refused("model identifier: tt5", settings={"model.config.model_type": "tt5"})
    refused("t5 has no 'd_modle'; did you mean d_model", settings={"model.config.d_modle": 3})
    refused("expected int, got str", settings={"model.config.num_heads": "many"})
    refused("give start, or config", model={"start": "somewhere", "tokenizer": {}})
    refused("pairs has no 'test'; it has all", gates={"test": 1.0})
    refused("the model has 2 positions, and an example", kind="gpt2",
            settings={"model.config.n_positions": 2})  # fmt: skip
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(OptionError, match="holds no training"):
        command.train(write(), tmp_path / "full")


def test_a_full_disk_is_said(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")

    def full(*_: Any) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0))
        raise RuntimeError("PytorchStreamWriter failed writing file data/7: file write failed")

    whole = fitting.mark_whole
    monkeypatch.setattr(fitting, "mark_whole", full)
    with pytest.raises(OptionError, match="0 MB are free; make room, and the same command continu"):
        command.train(write(), tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr(fitting, "mark_whole", whole)


def test_answers_that_a_tokenizer_corrupts_are_named() -> None:
    tokenizer = new_tokenizer(NewTokenizer(kind="unigram"), ["a b", "b a"], encoder_decoder=True)
    assert list(batches.problems(tokenizer, [("a b", "b a")])) == []
    assert "comes back as 'a b'" in next(batches.problems(tokenizer, [("a", "a  b")]))
    assert "unknown" in next(batches.problems(tokenizer, [("a c", "a")]))


def test_spans_lose_nothing() -> None:
    """Putting the spans back where their sentinels are gives the block, for any block."""
    rng = random.Random(1)
    blocks = [[rng.randrange(100) for _ in range(length)] for length in [*range(2, 40), 512]]
    noise = 0
    for block, row in zip(blocks, batches.Corrupted(blocks, range(900, 1000), 1, 0), strict=True):
        source, answer = row["input_ids"][:-1], row["labels"][:-1]
        parts: dict[int, list[int]] = {}
        for token in answer:
            if token >= 900:
                parts[token] = []
            else:
                parts[next(reversed(parts))].append(token)
        back = [t for token in source for t in parts.get(token, [token])]
        assert back == block
        assert list(parts) == list(range(900, 900 + len(parts)))
        noise += sum(map(len, parts.values()))
    assert 0.14 < noise / sum(map(len, blocks)) < 0.17


def test_a_causal_prompt_has_no_loss() -> None:
    tokenizer = new_tokenizer(NewTokenizer(), ["a b c"], encoder_decoder=False)
    training = Training(max_steps=1, learning_rate=1, eval_steps=1, max_target_length=8)
    ([row], cut) = batches.encode([("a b", "c")], tokenizer, training, encoder_decoder=False)
    vocabulary = tokenizer.get_vocab()
    end = tokenizer.eos_token_id
    assert row["input_ids"] == [vocabulary["a"], vocabulary["b"], vocabulary["c"], end]
    assert row["labels"] == [-100, -100, vocabulary["c"], end]
    assert cut == 0


def test_every_recipe_that_ships_is_legal_and_says_where_its_values_are_from() -> None:
    assert {"cogs_t5_base", "cogs_tiny"} <= set(recipe.shipped())
    for name in recipe.shipped():
        found = planned(name)[0].recipe
        assert len(found.paper) > 40, name
        assert found.departures, name
        assert found.source in material.sources(), name
        for first in found.first.values():
            read_recipe(first.recipe)
    assert "d_model" not in read_recipe("cogs_tiny_causal").model.config


def test_the_command_line(write: Any, tmp_path: Path) -> None:
    run = CliRunner().invoke
    listed = run(app, ["train", "--list"]).output
    assert "cogs_tiny: " in listed
    assert "{" not in listed
    for arguments, said in (
        (["nosuch"], "no recipe nosuch"),
        (["cogs_tny", "-o", str(tmp_path / "x")], "did you mean cogs_tiny"),
        (["cogs_tiny", "-o", str(tmp_path / "x"), "--set", "steps"], "write key=value"),
        (["cogs_tiny", "-o", str(tmp_path / "x"), "--seeds", "a"], "0-4 or 0,2,7"),
    ):
        result = run(app, ["train", *arguments])
        assert isinstance(result.exception, OptionError)
        assert said in str(result.exception)
    assert not (tmp_path / "x").exists()
    assert [one.seed for one in planned("cogs_tiny", seeds="0-2, 7")] == [0, 1, 2, 7]
    set_ = recipe.parse_settings(["training.max_steps=9", "first.a.set.training.spans.tokens=3M"])
    changed = read_recipe(write(first={"a": {"recipe": "demo"}}), set_)
    assert changed.training.max_steps == 9
    assert changed.first["a"].set == {"training.spans.tokens": "3M"}


@pytest.mark.usefixtures("small_index")
def test_tasks_are_looked_at_before_anything_is_trained(write: Any, tmp_path: Path) -> None:
    call = ["train", write(tasks="cogs_mini_gem"), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, call)
    assert isinstance(result.exception, OptionError)
    assert "cogs_mini_gem" in str(result.exception)
    assert not (tmp_path / "out").exists()
    result = CliRunner().invoke(app, [*call[:-2], "--set", "tasks=cogs_mini_gen", *call[-2:]])
    assert result.exception is None
    assert "--tasks cogs_mini_gen --output results" in result.stdout


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_share_a_training(tmp_path: Path) -> None:
    """By accelerate and gloo, on the CPU; each has half of a batch, and the gates are shared."""
    binaries = Path(sys.executable).parent
    sets = ["training.max_steps=20", "training.eval_steps=10", "gates.dev=0.0"]
    words = [str(binaries / "lm-eval-ext"), "train", "diner_tiny",
             *(word for one in sets for word in ("--set", one)), "-o"]  # fmt: skip
    launch = [str(binaries / "accelerate"), "launch", "--multi_gpu", "--num_processes", "2"]
    losses = {}
    for count, asked in ((1, words), (2, [*launch, *words])):
        folder = tmp_path / str(count)
        subprocess.run([*asked, str(folder)], check=True, timeout=500)
        record = json.loads((folder / "training.json").read_text())
        assert record["machine"]["processes"] == count
        assert [gate["examples"] for gate in record["gates"]] == [200, 8]
        losses[count] = [one["eval_loss"] for one in record["curve"] if "eval_loss" in one]
    assert len(losses[1]) == 2
    assert losses[2] == pytest.approx(losses[1], abs=0.01)


@pytest.mark.slow
def test_the_small_experiment_from_texts_to_the_table(tmp_path: Path) -> None:
    """Everything is real but the process of ``run``; there are few steps, texts and documents."""
    from support.logged import evaluate

    few = {"max_steps": 2, "per_device_train_batch_size": 4, "warmup_steps": 0}
    before = {"training.spans.tokens": 1500, "data.sentences": 500}
    settings: dict[str, Any] = {f"training.{key}": value for key, value in few.items()}
    settings |= {f"first.pretrained.set.training.{key}": value for key, value in few.items()}
    settings |= {f"first.pretrained.set.{key}": value for key, value in before.items()}
    done = command.train(
        "cogs_small", tmp_path / "out", seeds="4-5", only="[wC]*-3M-tokens-seed-*",
        settings={**settings, "gates": {}},
    )  # fmt: skip
    assert len(done) == 4
    assert len(list((tmp_path / "out" / "first").iterdir())) == 2, "one for each seed"
    for one in done:
        assert one.model_file is not None
        folder = tmp_path / "results" / one.model_file.stem
        model = yaml.safe_load(one.model_file.read_text())
        assert model["pretraining_tokens"] == 1500
        evaluate(
            folder, "hf", ["cogs_mini_testlex", "cogs_mini_gen"], limit=2, device="cpu",
            model_args=model["model_args"], metadata=model["metadata"],
            gen_kwargs="max_gen_toks=2",
        )  # fmt: skip
        shutil.copyfile(one.model_file, folder / "model.yaml")
    table = CliRunner().invoke(
        app,
        ["compare", str(tmp_path / "results"), "--by-seed", "--tasks", "cogs_mini_gen",
         "--metric", "exact_match/lexical"],
    )  # fmt: skip
    assert table.exception is None
    for name in ("words, 3M tokens", "CVCV short, 3M tokens"):
        assert name in table.stdout
