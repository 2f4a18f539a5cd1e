"""Training by recipe: schema, resuming, gates, tokenizers, records. All models are tiny."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from support.commands import until
from support.results_files import rows, write_run
from support.tasks import load_task
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.reading import Strict
from lm_eval_ext.training import command, monitor, muon, progress, recipe, text, token_ids
from lm_eval_ext.training.recipe import Material, NewTokenizer, Training, plan_models, read_recipe
from lm_eval_ext.training.starting import new_tokenizer

WORDS = ("red", "blue", "green", "dog", "cat", "bird")
PAIRS = [
    (" ".join([word] * count), f"{other} {word}")
    for count, word in enumerate(WORDS, 1)
    for other in WORDS
]
MATERIAL = Material(
    PAIRS, PAIRS[:8], {"all": PAIRS[:4]}, model_file={"batch_size": 4}, max_gen_toks=16
)

CONFIGS: dict[str, dict[str, Any]] = {
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2,
           "dropout_rate": 0.1},
    "gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
    "llama": {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
              "num_attention_heads": 2, "tie_word_embeddings": False},
}  # fmt: skip


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that writes a recipe which trains on PAIRS, and returns its path."""
    source: Any = SimpleNamespace(
        Options=Strict, GATES=("all",), prepare=lambda options, seed: MATERIAL
    )
    monkeypatch.setitem(sys.modules, "pairs", source)

    def write(name: str = "tiny", kind: str = "t5", **changes: Any) -> str:
        training = {
            "max_steps": 6, "per_device_train_batch_size": 8, "optim": "muon",
            "learning_rate": 0.01, "embedding_learning_rate": 0.02, "eval_steps": 2,
        } | changes.pop("training", {})  # fmt: skip
        config = {"model_type": kind, **CONFIGS[kind]}
        content = {
            "title": "Words the other way round", "paper": "none", "departures": [],
            "source": "pairs", "training": training, "gates": {"all": 0.0},
            "model": {"config": config, "tokenizer": {"kind": "words"}},
        }  # fmt: skip
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(content | changes, sort_keys=False))
        return str(file)

    return write


def in_a_process(work: Callable[[], object]) -> int:
    """Do something in a forked process; return its exit status, or minus the signal."""
    child = os.fork()
    if child == 0:
        status: Any = 1
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            work()
            status = 0
        except SystemExit as error:
            status = error.code
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(train: Callable[[], object], steps: list[int], number: int = signal.SIGKILL) -> None:
    """Train in processes that get a signal after these steps, each where the last one ended."""
    tell = progress.tell
    for step in steps:

        def stop(line: str, step: int = step) -> None:
            tell(line)
            if line.startswith(f"step {step:,} of"):
                os.kill(os.getpid(), number)

        def work(stop: Any = stop) -> None:
            progress.tell, monitor.LOG_S = stop, -1.0
            train()

        expected = -number if number == signal.SIGKILL else 128 + number
        assert in_a_process(work) == expected


def same_weights(*folders: Path) -> None:
    assert len({(folder / "model.safetensors").read_bytes() for folder in folders}) == 1


@pytest.mark.parametrize("sampling", ["group_by_length", "random"])
def test_a_training_that_was_killed_in_any_pass_ends_like_one_that_was_not(
    sampling: str,
    write: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """36 examples are 5 steps a pass; killed inside of passes, and at the end of one."""
    name = write(training={"max_steps": 19, "train_sampling_strategy": sampling, "eval_steps": 7})
    (whole,) = command.train(name, tmp_path / "whole")
    monkeypatch.setattr(monitor, "CHECKPOINT_S", -1.0)  # a checkpoint after each step
    killed(lambda: command.train(name, tmp_path / "cut"), [3, 6, 8, 14])
    capfd.readouterr()
    (resumed,) = command.train(name, tmp_path / "cut")
    output = capfd.readouterr().err
    assert "missing keys" not in output and "mtime" not in output, "transformers' warnings"
    same_weights(whole.folder, resumed.folder)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["cogs_tiny", "cogs_tiny_causal", "cogs_tiny_pretrained", "diner_tiny", "tkqa_tiny"]
)
def test_tiny_recipes_resume_in_every_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the recipe's model and optimizer, and four steps a pass."""
    prepare = recipe.prepare
    example_count = 4 * read_recipe(name).training.batch

    def prepare_few(source: str, data: Any, seed: int) -> Material:
        material = prepare(source, data, seed)
        if "sentences" in data:
            return material
        vocabulary = material.vocabulary
        if not vocabulary:
            vocabulary = [text for pair in material.train for text in pair]
        few = material.train[:example_count]
        return material._replace(train=few, dev=[], asked=[], vocabulary=vocabulary)

    monkeypatch.setattr(command, "prepare", prepare_few)
    monkeypatch.setattr(monitor, "CHECKPOINT_S", -1.0)  # a checkpoint after each step
    settings: dict[str, Any] = {"training.max_steps": 13, "gates": {}}
    if "pretrained" in name:
        settings["first.pretrained.training.max_steps"] = 2

    def train(out: str) -> command.Trained:
        return command.train(name, tmp_path / out, settings=settings)[0]

    killed(lambda: train("cut"), [2, 7, 11])
    same_weights(train("whole").folder, train("cut").folder)


def test_sigterm_leaves_a_checkpoint_and_a_full_disk_is_said(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(bytes_: int) -> None:
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(bytes_))

    name = write(training={"eval_steps": 100})
    (whole,) = command.train(name, tmp_path / "whole")
    free(0)
    with pytest.raises(OptionError, match="and 0 MB are free"):
        command.train(name, tmp_path / "cut")
    free(10**9)
    killed(lambda: command.train(name, tmp_path / "cut"), [3], signal.SIGTERM)
    (kept,) = tmp_path.glob("cut/tiny/.training/checkpoints/*")
    assert kept.name == "checkpoint-4", "the step that was under way"
    checkpoint_bytes = sum(file.stat().st_size for file in kept.iterdir())
    weights = next(tmp_path.glob("cut/tiny/.training/new/model.safetensors")).stat().st_size
    free(10 * weights - checkpoint_bytes // 2)
    same_weights(whole.folder, command.train(name, tmp_path / "cut")[0].folder)

    def full(*_: Any) -> None:
        free(0)
        raise RuntimeError("PytorchStreamWriter failed writing file data/7: file write failed")

    monkeypatch.setattr(monitor, "atomic_path", full)
    with pytest.raises(OptionError, match="0 MB are free; make room, and the same command continu"):
        command.train(name, tmp_path / "full")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_in_an_evaluation_ends_it_and_changes_nothing(
    write: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    """The step before the evaluation is saved; it and the evaluation are repeated."""
    name = write(training={"eval_steps": 4})
    (whole,) = command.train(name, tmp_path / "whole")
    evaluate = monitor.TrainingMonitor.on_prediction_step

    def interrupted(watch: Any, arguments: Any, state: Any, control: Any, **more: Any) -> None:
        os.kill(os.getpid(), number)
        evaluate(watch, arguments, state, control, **more)

    def train() -> None:
        monitor.TrainingMonitor.on_prediction_step = interrupted  # type: ignore[method-assign]
        command.train(name, tmp_path / "cut")

    assert in_a_process(train) == 128 + number
    assert "stopped at the evaluation after step 4; the same command" in capfd.readouterr().err
    (checkpoint,) = tmp_path.glob("cut/tiny/.training/checkpoints/*")
    assert checkpoint.name == "checkpoint-3"
    (resumed,) = command.train(name, tmp_path / "cut")
    same_weights(whole.folder, resumed.folder)
    losses = [
        [point["eval_loss"] for point in trained.record["curve"] if "eval_loss" in point]
        for trained in (whole, resumed)
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 2, "after step 4 and at the end"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_leaves_a_checkpoint_of_the_step_under_way(
    write: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    name = write(training={"eval_steps": 100})
    killed(lambda: command.train(name, tmp_path / "cut"), [3], number)
    assert "stopped at step 4; the same command continues there" in capfd.readouterr().err
    assert [*tmp_path.glob("cut/tiny/.training/checkpoints/checkpoint-4/order.pt")]


def test_something_that_takes_long_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A step of a large model, or an evaluation, says that it goes on."""
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "_POLL_S", 0.01)
    with progress.Activity("loading the model") as activity:
        until(lambda: "loading the model (0 s)" in capfd.readouterr().err, "no line")
        activity.change("working on step 3 of 6")
        until(lambda: "working on step 3 of 6 (0 s)" in capfd.readouterr().err, "no other line")
    capfd.readouterr()
    time.sleep(0.05)
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, ("adamw_torch_fused", 5e-5, None), id="replaced"),
        pytest.param(
            {"training.learning_rate": 1e-3}, ("adamw_torch_fused", 1e-3, None), id="own rate"
        ),
        pytest.param({"training.optim": "muon"}, ("muon", 0.01, 0.02), id="own optimizer"),
    ],
)
def test_an_optimizer_for_a_new_model_does_not_train_an_existing_one(
    write: Any, tmp_path: Path, settings: dict[str, Any], expected: tuple[object, ...]
) -> None:
    """Muon's rate for a tiny model would destroy what an existing model has learned."""
    started = settings | {"model.start": str(tmp_path)}
    new = write()
    pretrained = write("second", first={"words": {"extends": new}}, model={"start": "{words}"})
    for name, model in ((new, "tiny"), (pretrained, "second")):
        training = plan_models(name, started)[model].training
        rates = (training.learning_rate, training.embedding_learning_rate)
        assert (training.optim, *rates) == expected, model


def test_another_optimizer_is_told(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(training={"max_steps": 2})
    (first,) = command.train(name, tmp_path / "first")
    assert "optimizer" not in capsys.readouterr().err
    out = tmp_path / "out"
    result = CliRunner().invoke(
        app, ["train", name, "-o", str(out), "--start", str(first.folder), "--set", "tasks=''"]
    )
    assert result.exit_code == 0, result.output
    line = "the recipe's optimizer is for its new model; the model that training starts from"
    assert line in result.stderr
    record = json.loads((out / "tiny" / "training.json").read_text())
    assert record["start"] == str(first.folder)
    assert record["recipe"]["training"]["optim"] == "adamw_torch_fused"


def test_a_checkpoint_that_was_cut_off_is_none_and_another_recipe_is_refused(
    write: Any, tmp_path: Path
) -> None:
    def train(out: str, **training: Any) -> Any:
        settings = {"seeds": [3]}
        return command.train(write(training=training), tmp_path / out, settings=settings)[0]

    def cut_off(file: Path) -> Any:
        """The process ends while the second checkpoint is written."""
        if file.parent.name == "checkpoint-4":
            os.kill(os.getpid(), signal.SIGKILL)
        return marked(file)

    def work() -> None:
        monitor.atomic_path = cut_off  # type: ignore[attr-defined]
        train("cut")

    marked = monitor.atomic_path  # type: ignore[attr-defined]
    assert in_a_process(work) == -signal.SIGKILL
    assert [*tmp_path.glob("cut/tiny-seed-3/.training/checkpoints/checkpoint-4")]
    with pytest.raises(OptionError, match=r"lies here, with .*; name another folder"):
        train("cut", per_device_train_batch_size=4)
    record = tmp_path / "cut" / "tiny-seed-3" / "training.json"
    begun = record.read_text()
    record.write_text(begun.replace('"processes": 1', '"processes": 2'))
    with pytest.raises(OptionError, match='"processes": 2 instead of "processes": 1'):
        train("cut")
    record.write_text(begun)
    whole = train("whole")
    same_weights(whole.folder, train("cut").folder)
    assert not (whole.folder / ".training").exists()
    assert whole.model_file == tmp_path / "whole" / "models" / "tiny-seed-3.yaml"
    assert train("whole").record == whole.record, "it is not trained again"
    with pytest.raises(OptionError, match=r"another training lies here, with .*max_steps"):
        train("whole", max_steps=7)


def test_accumulated_batches_are_one_batch(write: Any, tmp_path: Path) -> None:
    """transformers alone would add up the losses of a T5's batches: twice the gradient."""

    def curve(batches: int) -> list[float]:
        name = write(
            training={"gradient_accumulation_steps": batches, "max_steps": 3, "eval_steps": 3,
                      "per_device_train_batch_size": 8 // batches, "max_grad_norm": 0,
                      "logging_steps": 1},
        )  # fmt: skip
        settings = {"model.config.dropout_rate": 0.0}
        (trained,) = command.train(name, tmp_path / str(batches), settings=settings)
        values = []
        for point in trained.record["curve"]:
            if "loss" in point:
                values += [point["loss"], point["grad_norm"]]
        return values

    one_batch = curve(1)
    assert len(one_batch) == 6
    assert one_batch == pytest.approx(curve(2), rel=1e-3)


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_weight_is_trained_once_and_at_its_rate(kind: str) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    model_class = AutoModelForSeq2SeqLM if kind == "t5" else AutoModelForCausalLM
    model = model_class.from_config(AutoConfig.for_model(kind, vocab_size=12, **CONFIGS[kind]))
    arguments = SimpleNamespace(
        learning_rate=0.1, weight_decay=0.3, adam_beta1=0.9, adam_beta2=0.98, adam_epsilon=1e-8
    )
    groups = muon.muon_optimizer(model, arguments, 0.02).param_groups
    rates = {}
    for group in groups:
        for weight in group["params"]:
            rates[id(weight)] = (group["lr"], group["weight_decay"])
    weights = dict(model.named_parameters())
    assert len(rates) == len(weights) == sum(len(group["params"]) for group in groups)
    adamw = re.compile(r"shared|lm_head|wte|wpe|embed_tokens|relative|bias|norm|ln_")
    for name, weight in weights.items():
        assert rates[id(weight)] == ((0.02, 0.0) if adamw.search(name) else (0.1, 0.3)), name


def train_material(
    write: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> command.Trained:
    """Train two steps with a tokenizer that lacks the word bird."""
    material = MATERIAL._replace(vocabulary=["red blue green dog cat"], lossy=True, **changes)
    monkeypatch.setattr(command, "prepare", lambda *_: material)
    return command.train(write(training={"max_steps": 2}), folder)[0]


def test_lossy_texts_are_counted(
    write: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained = train_material(write, tmp_path, monkeypatch)
    texts = [text for pair in (*PAIRS, *PAIRS[:8], *PAIRS[:4]) for text in pair]
    lost = sum("bird" in text for text in texts)
    assert trained.record["not_kept"]["texts"] == lost > 10
    assert f"not keep {lost} of " in capsys.readouterr().err


def test_new_paths_in_a_model_file_need_no_training(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = train_material(write, tmp_path, monkeypatch).record
    model_file = {"metadata": {"place": "new"}}
    trained = train_material(write, tmp_path, monkeypatch, model_file=model_file)
    assert trained.record == {**before, "model_file": model_file}, "it is not trained again"
    assert trained.model_file is not None
    assert yaml.safe_load(trained.model_file.read_text()).items() >= model_file.items()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({}, r"does not keep the texts: the \w+ .*bird", id="unknown token"),
        pytest.param(
            {"train": [("red", "red  blue")]},
            "the answer 'red  blue' comes back as 'red blue'",
            id="two spaces",
        ),
        pytest.param({"train": []}, "has no example", id="nothing"),
    ],
)
def test_texts_that_are_not_kept_are_refused(
    write: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    message: str,
) -> None:
    material = MATERIAL._replace(vocabulary=["red blue green dog cat"], **changes)
    monkeypatch.setattr(command, "prepare", lambda *_: material)
    with pytest.raises(OptionError, match=message):
        command.train(write(training={"max_steps": 2}), tmp_path)


def test_a_gate_that_is_missed_is_told_and_reports_leave_the_model_out(
    write: Any, tmp_path: Path
) -> None:
    from lm_eval_ext.results.files import read_results

    name = write(kind="gpt2", gates={"all": 1.0}, training={"max_steps": 1})
    result = CliRunner().invoke(app, ["train", name, "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, LmEvalExtError)
    assert "1 of 1 models did not learn" in str(result.exception)
    assert "DID NOT LEARN: all 0.0 % of 4 (at least 100 %)" in result.stdout
    assert "evaluate with" not in result.stdout
    for label in ("bad", "good"):
        write_run(tmp_path / "results" / label, label, "made", rows(2, 1))
    file = tmp_path / "out" / "models" / "tiny.yaml"
    shutil.copyfile(file, tmp_path / "results" / "bad" / "model.yaml")
    assert [file.model for file in read_results(tmp_path / "results")] == ["good"]
    with pytest.raises(LmEvalExtError, match=r"did not learn: all 0\.0 % of 4"):
        read_results(tmp_path / "results" / "bad")


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_gates_ask_what_lm_eval_will_ask_and_progress_is_told_at_once(
    kind: str,
    write: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Prompts are cut on the left: to what was trained, or so that the longest answer has room."""
    from lm_eval.models.huggingface import HFLM
    from transformers import AutoTokenizer

    prompts_seen: list[list[int]] = []
    model_generate = HFLM._model_generate

    def generate(self: Any, context: Any, **kwargs: Any) -> Any:
        prompts_seen.extend(context.tolist())
        return model_generate(self, context, **kwargs)

    monkeypatch.setattr(HFLM, "_model_generate", generate)
    pairs = [(f"{'red ' * 60}{word} cat", word) for word in WORDS]
    material = Material(pairs, pairs[:2], {"all": pairs}, max_gen_toks=16)
    monkeypatch.setattr(command, "prepare", lambda *_: material)
    name = write(kind=kind, training={"max_source_length": 8, "eval_steps": 100})
    (trained,) = command.train(name, tmp_path / "out")
    output = capsys.readouterr().err
    assert "6 of 6 examples are longer than max_source_length 8" in output
    assert re.search(r"^step 1 of 6, loss \d\.\d{3}, \d+\.\d minutes left$", output, re.M)
    model = yaml.safe_load(trained.model_file.read_text())["model_args"]
    cut = model["max_length"] if kind == "t5" else CONFIGS[kind]["n_positions"] - 16
    tokenizer = AutoTokenizer.from_pretrained(trained.folder)
    expected = [tokenizer(prompt)["input_ids"][-cut:] for prompt, _ in pairs]
    assert sorted(prompts_seen) == sorted(expected)


def test_levels_and_seeds_are_trained_once(write: Any, tmp_path: Path) -> None:
    before = write("before", gates={}, training={"max_steps": 2})
    name = write(
        "after", first={"before": {"extends": before}}, model={"start": "{before}"}, seeds=[0, 1],
        training={"max_steps": 1},
        vary={"rate": {"low": {"training.learning_rate": 0.001}, "high, 1": {}},
              "length": {"short": {"first.before.training.max_steps": 1}, "long": {}}},
    )  # fmt: skip
    out = tmp_path / "out"
    models = plan_models(name)
    assert [*models][:4] == [
        "after-low-short-seed-0", "after-low-short-seed-1",
        "after-low-long-seed-0", "after-low-long-seed-1",
    ]  # fmt: skip
    assert models["after-high-1-long-seed-0"].title == (
        "Words the other way round, high, 1, long, seed 0"
    )
    trained_models = command.train(name, out, settings={"seeds": [1]})
    assert {trained.record["recipe"]["seed"] for trained in trained_models} == {1}
    first_folders = list((out / "first").glob("before-*"))
    starts = {trained.record["start"] for trained in trained_models}
    assert starts == {str(folder) for folder in first_folders}
    weights = {(folder / "model.safetensors").read_bytes() for folder in first_folders}
    assert len(weights) == 2
    output = CliRunner().invoke(app, ["train", name, "-o", str(out), "--dry-run"]).stdout
    assert output.count("not trained yet") == 4
    assert output.count("; learned: all ") == 4
    assert {file.stem for file in (out / "models").iterdir()} == {*[*models][1::2]}


def test_trainings_that_come_first_and_running_text(write: Any, tmp_path: Path) -> None:
    """Span corruption on a folder of text, then fine-tuning of what came out."""
    rng = random.Random(0)
    (tmp_path / "text").mkdir()
    lines = "\n\n".join(" ".join(rng.choices(WORDS, k=12)) for _ in range(20))
    (tmp_path / "text" / "a.txt").write_text(lines)
    before = write(
        "before", source=text.__name__, data={"folder": str(tmp_path / "text")}, gates={},
        training={"max_steps": 20, "train_sampling_strategy": "group_by_length",
                  "spans": {"tokens": 200, "block": 32, "held_out": 0.3}, "eval_steps": 1,
                  "early_stopping_patience": 1, "load_best_model_at_end": True,
                  # No loss is lower than the first, on any machine.
                  "learning_rate": 1e-30, "embedding_learning_rate": None},
    )  # fmt: skip
    after = write("after", first={"words": {"extends": before}}, model={"start": "{words}"})
    record = command.train(after, tmp_path / "out")[0].record
    (folder,) = (tmp_path / "out" / "first").glob("words-*")
    first = json.loads((folder / "training.json").read_text())
    assert record["start"] == str(folder)
    assert record["key"]["first"]["words"] == first["key"]
    losses = [point["eval_loss"] for point in first["curve"] if "eval_loss" in point]
    assert losses[1:] == losses[:1], "it stopped at the first loss that is not lower"
    with pytest.raises(LmEvalExtError, match=r"1,000,000, and the text has 2\d\d"):
        command.train(before, tmp_path / "no", settings={"training.spans.tokens": "1M"})
    with pytest.raises(LmEvalExtError, match="not point to a directory"):
        command.train(before, tmp_path / "no", settings={"data.folder": str(tmp_path / "none")})


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("unknown key; did you mean learning_rate", {"training.lerning_rate": 1}),
    ("did you mean max_source_length", {"training.max_sorce_length": 9}),
    (r"optim: unknown key[^?]*$", {"optim": "muon"}),
    (r"training: weight_decay: .*valid number", {"training.weight_decay": "much"}),
    (r"training.*sgdd", {"training.optim": "sgdd"}),
    (r"spans.tokens: .*valid number", {"training.spans.tokens": "many"}),
    (r"gates\.all.*less than or equal to 1", {"gates.all": 1.5}),
    (r"seeds\.0: .*valid integer", {"seeds": ["a"]}),
    ("model identifier: tt5", {"model.config.model_type": "tt5"}),
    ("model: start: no such folder /nope", {"model": {"start": "/nope"}}),
    ("t5 has no 'd_modle'; did you mean d_model", {"model.config.d_modle": 3}),
    ("model: start: no such folder no/such/folder", {"model": {"start": "no/such/folder"}}),
    ("give start, or config", {"model": {"start": "somewhere", "tokenizer": {}}}),
    ("pairs has no 'test'; it has all", {"gates.test": 1.0}),
    ("source: no module .*nosuch", {"source": "lm_eval_ext.nosuch"}),
]


@pytest.mark.parametrize(
    ("message", "settings"), [pytest.param(*case, id=str(case[1])) for case in REFUSED]
)
def test_what_cannot_work_is_refused_in_a_line(
    write: Any, tmp_path: Path, message: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(LmEvalExtError, match=message) as error:
        command.train(write(), tmp_path / "out", settings=settings)
    assert "\n" not in str(error.value)
    assert not [*tmp_path.glob("out/*/*.json")]


def test_a_folder_with_other_files_is_refused(write: Any, tmp_path: Path) -> None:
    (tmp_path / "full" / "tiny").mkdir(parents=True)
    (tmp_path / "full" / "tiny" / "notes.txt").touch()
    with pytest.raises(OptionError, match="holds no training"):
        command.train(write(), tmp_path / "full")


def test_spans_lose_nothing() -> None:
    """Putting the spans back where their sentinels are gives the block, for any block."""
    rng = random.Random(1)
    blocks = [[rng.randrange(100) for _ in range(length)] for length in [*range(2, 40), 512]]
    noise = 0
    for block, row in zip(
        blocks, token_ids.CorruptedBlocks(blocks, range(900, 1000), 1, 0), strict=True
    ):
        source, answer = row["input_ids"][:-1], row["labels"][:-1]
        places = [place for place, token in enumerate(answer) if token >= 900]
        assert [answer[place] for place in places] == [*range(900, 900 + len(places))]
        spans = {
            answer[start]: answer[start + 1 : end]
            for start, end in pairwise([*places, len(answer)])
        }
        assert [t for token in source for t in spans.get(token, [token])] == block
        noise += len(answer) - len(places)
    assert 0.14 < noise / sum(map(len, blocks)) < 0.17


def test_a_causal_prompt_has_no_loss_and_a_long_one_loses_its_start() -> None:
    tokenizer = new_tokenizer(NewTokenizer(), Material([("a b", "c")]), is_encoder_decoder=False)
    training = Training(learning_rate=1, eval_steps=1, max_source_length=8)
    pairs = [("a b", "c"), ("a a b b b b b b b", "c")]
    rows, cut = token_ids.encode_pairs(pairs, tokenizer, training, is_encoder_decoder=False)
    a, b, c = (tokenizer.get_vocab()[word] for word in "abc")
    end = tokenizer.eos_token_id
    assert rows[0] == {"input_ids": [a, b, c, end], "labels": [-100, -100, c, end]}
    assert rows[1]["input_ids"] == [a, *[b] * 7, c, end]
    assert cut == 1


def test_gates_leave_the_room_that_the_tasks_leave() -> None:
    for name, task in (("cogs_tiny", "cogs_mini_id"), ("diner_tiny", "diner_mini_name"),
                       ("tkqa_tiny", "conceptual_mini")):  # fmt: skip
        found = read_recipe(name)
        made = recipe.prepare(found.source, found.data, 0)
        assert made.max_gen_toks == load_task(task).config.generation_kwargs["max_gen_toks"]


USERS = {
    "cogs_pretraining": {"data.folder": "."},
    "cogs_pretraining_size": {"first.pretrained.data.folder": "."},
    "diner_pretraining": {"data.recipes": "recipes.json"},
    "diner_t5_own_pretraining": {"first.pretrained.data.recipes": "recipes.json"},
    "tkqa": {"data.train": "train.json", "data.dev": "dev.json"},
}
"""What users must name."""


def test_every_recipe_that_ships_is_legal_and_says_where_its_values_are_from() -> None:
    assert {"cogs_t5_base", "cogs_tiny"} <= set(recipe.shipped())
    for name in recipe.shipped():
        found = next(iter(plan_models(name, USERS.get(name)).values()))
        assert found.departures and len(found.paper) > 40, name
        assert callable(import_module(found.source).prepare), name
    assert "d_model" not in read_recipe("cogs_tiny_causal").model.config


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch"], "no recipe nosuch"),
        (["cogs_tny"], "did you mean cogs_tiny"),
        (["cogs_tiny", "--set", "steps"], "write key=value"),
        (["cogs_tiny", "--seeds", "0-4"], "--seeds 0-4: write whole numbers with commas"),
        (["cogs_tiny", "--start", "/no/folder"], "start: no such folder /no/folder"),
        (["cogs_tiny_pretrained", "--dry-run", "--set", "gates.foo=1"], "it has exposure, d"),
        (["cogs_tiny_pretrained", "--set", "first.pretrained.gates.foo=1"], "has no 'foo'"),
        (["cogs_tiny_pretrained", "--set", "first.pretrained.data.rar=1"], "data.*mean rare"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_line_refuses_before_anything_is_trained(
    tmp_path: Path, words: list[str], message: str
) -> None:
    result = CliRunner().invoke(app, ["train", *words, "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, OptionError)
    assert re.search(message, str(result.exception))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        pytest.param({"tasks": "cogs_mini_gem"}, [], "cogs_mini_gem", id="an unknown task"),
        pytest.param(
            {},
            ["--dry-run", "--set", "training.lerning_rate=1"],
            "did you mean learning",
            id="an unknown key",
        ),
        pytest.param(
            {"vary": {"a": {"b": {}, "c": {"data.d": 1}}}},
            [],
            "data of pairs: d: unknown key",
            id="an unknown option in a level",
        ),
    ],
)
def test_the_command_line_refuses_a_recipe_before_anything_is_trained(
    write: Any, tmp_path: Path, changes: dict[str, Any], words: list[str], message: str
) -> None:
    out = ["-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["train", write(**changes), *words, *out])
    assert isinstance(result.exception, OptionError)
    assert re.search(message, str(result.exception))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small_index")
def test_the_command_line_says_how_to_evaluate(write: Any, tmp_path: Path) -> None:
    assert "cogs_tiny: COGS mini, a tiny T5" in CliRunner().invoke(app, ["train", "--list"]).output
    schedule = "training.lr_scheduler_type=polynomial"  # which asks Muon for its rate
    words = ["train", write(), "-o", str(tmp_path / "out"), "--seeds", "5,6"]
    for setting in ("tasks=cogs_mini_gen", "training.max_steps=1", "gates={}", schedule):
        words += ["--set", setting]
    result = CliRunner().invoke(app, words)
    assert "--tasks cogs_mini_gen --output results" in result.stdout
    assert re.search(r"tiny-seed-6: trained in \d+ s; no gates\n", result.stdout)


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_share_a_training(tmp_path: Path) -> None:
    """By accelerate and gloo, on the CPU; each has half of a batch, and the gates are shared."""
    binaries = Path(sys.executable).parent
    words = [str(binaries / "lm-eval-ext"), "train", "diner_tiny", "--set", "gates.dev=0.0",
             "--set", "training.max_steps=20", "--set", "training.eval_steps=10", "-o"]  # fmt: skip
    launch = [str(binaries / "accelerate"), "launch", "--multi_gpu", "--num_processes", "2"]
    losses = {}
    for count, asked in ((1, words), (2, [*launch, *words])):
        folder = tmp_path / str(count)
        subprocess.run([*asked, str(folder)], check=True, timeout=500)
        record = json.loads((folder / "diner_tiny" / "training.json").read_text())
        assert record["processes"] == count
        assert [gate["examples"] for gate in record["gates"]] == [200, 8]
        losses[count] = [one["eval_loss"] for one in record["curve"] if "eval_loss" in one]
    assert len(losses[1]) == 2
    assert losses[2] == pytest.approx(losses[1], abs=0.01)
