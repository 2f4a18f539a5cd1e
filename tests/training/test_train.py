"""Training of tiny models: optimizers, tokenizers, gates, and trainings that build on others."""

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml
from support.commands import until
from support.results_files import answered_rows, write_run
from support.tiny_training import (
    CONFIGS,
    MATERIAL,
    PAIRS,
    WORDS,
    WriteRecipe,
    evaluation_losses,
    train_command,
)
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.training import command, monitor, muon, progress, text
from lm_eval_ext.training.recipe import Material, plan_models


def test_a_line_says_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A step of a large model, or an evaluation, says that it goes on, as long as it does."""
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "_POLL_S", 0.01)
    with progress.Activity("loading the model") as activity:
        until(lambda: "loading the model (0 s)" in capfd.readouterr().err, "a line about loading")
        activity.change("working on step 3 of 6")
        until(
            lambda: "working on step 3 of 6 (0 s)" in capfd.readouterr().err, "a line about step 3"
        )
    capfd.readouterr()
    time.sleep(0.05)
    assert not capfd.readouterr().err


@pytest.mark.parametrize("model_type", CONFIGS)
def test_every_weight_is_trained_once_and_at_its_rate(model_type: str) -> None:
    """Muon trains matrices; AdamW trains embeddings, norms and biases, without decay."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    config = AutoConfig.for_model(model_type, vocab_size=12, **CONFIGS[model_type])
    if model_type == "t5":
        model = AutoModelForSeq2SeqLM.from_config(config)
    else:
        model = AutoModelForCausalLM.from_config(config)
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
    by_adamw = re.compile(r"shared|lm_head|wte|wpe|embed_tokens|relative|bias|norm|ln_")
    for name, weight in weights.items():
        expected = (0.1, 0.3)
        if by_adamw.search(name):
            expected = (0.02, 0.0)
        assert rates[id(weight)] == expected, name


class Optimizer(NamedTuple):
    """A recipe's optimizer and its learning rates."""

    name: str
    learning_rate: float
    embedding_learning_rate: float | None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Optimizer("adamw_torch_fused", 5e-5, None)),
        ({"training.learning_rate": 1e-3}, Optimizer("adamw_torch_fused", 1e-3, None)),
        ({"training.optim": "muon"}, Optimizer("muon", 0.01, 0.02)),
    ],
    ids=["replaced", "the user's rate", "the user's optimizer"],
)
def test_an_optimizer_for_a_new_model_does_not_train_an_existing_one(
    write_recipe: WriteRecipe, tmp_path: Path, settings: dict[str, Any], expected: Optimizer
) -> None:
    """Muon's rate for a tiny model would destroy what an existing model has learned."""
    from_folder = settings | {"model.start": str(tmp_path)}
    new_model = write_recipe()
    of_pretrained = write_recipe(
        "pretrained", first={"words": {"extends": new_model}}, model={"start": "{words}"}
    )
    for recipe_file, model in ((new_model, "tiny"), (of_pretrained, "pretrained")):
        training = plan_models(recipe_file, from_folder)[model].training
        planned = Optimizer(
            training.optim, training.learning_rate, training.embedding_learning_rate
        )
        assert planned == expected, model


def test_a_line_says_that_another_optimizer_is_used(
    write_recipe: WriteRecipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, and recorded, where a training starts from an existing model."""
    recipe_file = write_recipe(training={"max_steps": 2})
    (new_model,) = command.train(recipe_file, tmp_path / "new")
    assert "optimizer" not in capsys.readouterr().err
    out = tmp_path / "out"
    start = ["--start", str(new_model.folder)]
    result = train_command(recipe_file, "-o", str(out), *start, "--set", "tasks=''")
    assert result.exit_code == 0, result.output
    line = "the recipe's optimizer is for its new model; the model that training starts from"
    assert line in result.stderr
    record = json.loads((out / "tiny" / "training.json").read_text())
    assert record["start"] == str(new_model.folder)
    assert record["recipe"]["training"]["optim"] == "adamw_torch_fused"


def test_a_trial_evaluates_the_first_examples_of_the_development_set(
    write_recipe: WriteRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as --dev-limit says; the record has it, so that nothing else continues the trial."""
    evaluated: list[int] = []
    evaluate: Any = monitor.TrainingMonitor.on_prediction_step

    def count_examples(watch: Any, *arguments: Any, eval_dataloader: Any, **options: Any) -> None:
        evaluated.append(len(eval_dataloader.dataset))
        evaluate(watch, *arguments, eval_dataloader=eval_dataloader, **options)

    monkeypatch.setattr(monitor.TrainingMonitor, "on_prediction_step", count_examples)
    recipe_file = write_recipe(training={"max_steps": 1, "eval_steps": 1})
    command.train(recipe_file, tmp_path / "whole")
    result = train_command(recipe_file, "-o", str(tmp_path / "trial"), "--dev-limit", "3")
    assert result.exit_code == 0, result.output
    assert evaluated == [8, 3]
    record = json.loads((tmp_path / "trial" / "tiny" / "training.json").read_text())
    assert record["key"]["recipe"]["training"]["dev_limit"] == 3
    with pytest.raises(OptionError, match='another training lies here, with "dev_limit": 3'):
        command.train(recipe_file, tmp_path / "trial")


def test_records_that_were_written_without_a_limit_still_count(write_recipe: WriteRecipe) -> None:
    """The key of a training of the whole development set has no limit."""
    (recipe,) = plan_models(write_recipe()).values()
    recipe_keys = command.training_key(recipe)["recipe"]
    assert isinstance(recipe_keys, dict)
    assert "dev_limit" not in recipe_keys["training"]


@pytest.mark.parametrize(
    ("tasks", "trial_task"),
    [
        pytest.param("cogs_mini", "cogs_mini_id", id="a group"),
        pytest.param("cogs_mini_gen,cogs_mini_id", "cogs_mini_gen", id="tasks"),
    ],
)
def test_the_commands_for_the_evaluation_can_be_pasted(
    tasks: str, trial_task: str, write_recipe: WriteRecipe, tmp_path: Path
) -> None:
    """The first one is short: a few documents of a task like what was trained on."""
    recipe_file = write_recipe(tasks=tasks, training={"max_steps": 1})
    result = train_command(recipe_file, "-o", str(tmp_path / "my models"))
    assert result.exit_code == 0, result.output
    *_, trial_line, evaluation_line = result.stdout.splitlines()
    trial = shlex.split(trial_line.removeprefix("try 4 documents with: "))
    evaluation = shlex.split(evaluation_line.removeprefix("evaluate with: "))
    models = str(tmp_path / "my models" / "models")
    assert trial[:6] == ["lm-eval-ext", "run", "--models", models, "--tasks", trial_task]
    assert trial[6:] == ["--limit", "4", "--output", "trial_results"]
    assert evaluation[4:] == ["--tasks", tasks, "--output", "results"]
    for words in (trial, evaluation):
        planned = CliRunner().invoke(app, [*words[1:], "--dry-run"])
        assert planned.exit_code == 0, planned.output
        assert "1 model to evaluate" in planned.output


def losses_and_gradients(
    write_recipe: WriteRecipe, folder: Path, accumulated_batches: int
) -> list[float]:
    """Train three steps of eight examples; return the loss and the gradient's norm of each."""
    recipe_file = write_recipe(
        training={
            "gradient_accumulation_steps": accumulated_batches,
            "per_device_train_batch_size": 8 // accumulated_batches,
            "max_steps": 3,
            "eval_steps": 3,
            "max_grad_norm": 0,
            "logging_steps": 1,
        },
    )
    settings = {"model.config.dropout_rate": 0.0}
    (trained,) = command.train(recipe_file, folder, settings=settings)
    values = []
    for point in trained.record["curve"]:
        if "loss" in point:
            values += [point["loss"], point["grad_norm"]]
    return values


def test_accumulated_batches_are_one_batch(write_recipe: WriteRecipe, tmp_path: Path) -> None:
    """transformers alone would add up the losses of a T5's batches: twice the gradient."""
    of_one_batch = losses_and_gradients(write_recipe, tmp_path / "one", 1)
    of_two_batches = losses_and_gradients(write_recipe, tmp_path / "two", 2)
    assert len(of_one_batch) == 6
    assert of_one_batch == pytest.approx(of_two_batches, rel=1e-3)


WITHOUT_BIRD = ["red blue green dog cat"]
"""The vocabulary of a tokenizer that does not keep all texts."""


def train_without_bird(
    write_recipe: WriteRecipe,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    model_file: Mapping[str, Any] | None = None,
) -> command.Trained:
    """Train two steps with a tokenizer that lacks a word, which is allowed here."""
    material = MATERIAL._replace(vocabulary=WITHOUT_BIRD, lossy=True)
    if model_file is not None:
        material = material._replace(model_file=model_file)
    monkeypatch.setattr(command, "prepare", lambda *_: material)
    return command.train(write_recipe(training={"max_steps": 2}), folder)[0]


def test_lossy_texts_are_counted(
    write_recipe: WriteRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The record and a line have the number of texts with a word that the tokenizer lacks."""
    trained = train_without_bird(write_recipe, tmp_path, monkeypatch)
    lost = 0
    for prompt, answer in (*MATERIAL.train, *MATERIAL.dev, *MATERIAL.gates["all"]):
        lost += ("bird" in prompt) + ("bird" in answer)
    assert lost > 10
    assert trained.record["not_kept"]["texts"] == lost
    assert f"not keep {lost} of " in capsys.readouterr().err


def test_new_paths_in_a_model_file_need_no_training(
    write_recipe: WriteRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record stays as it is, but for the keys of the model file."""
    record = train_without_bird(write_recipe, tmp_path, monkeypatch).record
    model_file = {"metadata": {"place": "new"}}
    trained = train_without_bird(write_recipe, tmp_path, monkeypatch, model_file)
    assert trained.record == {**record, "model_file": model_file}
    assert trained.model_file is not None
    assert yaml.safe_load(trained.model_file.read_text()).items() >= model_file.items()


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (PAIRS, r"does not keep the texts: the \w+ .*bird"),
        ([("red", "red  blue")], "the answer 'red  blue' comes back as 'red blue'"),
        ([], "has no example"),
    ],
    ids=["unknown token", "two spaces", "nothing"],
)
def test_texts_that_are_not_kept_are_refused(
    write_recipe: WriteRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    train: list[tuple[str, str]],
    message: str,
) -> None:
    """A model could not learn an answer that its tokenizer cannot write."""
    material = MATERIAL._replace(vocabulary=WITHOUT_BIRD, train=train)
    monkeypatch.setattr(command, "prepare", lambda *_: material)
    with pytest.raises(OptionError, match=message):
        command.train(write_recipe(training={"max_steps": 2}), tmp_path)


@pytest.fixture
def failed_training(write_recipe: WriteRecipe, tmp_path: Path) -> Path:
    """Train a model that misses its gate; return its model file."""
    recipe_file = write_recipe(model_type="gpt2", gates={"all": 1.0}, training={"max_steps": 1})
    result = train_command(recipe_file, "-o", str(tmp_path / "out"))
    assert isinstance(result.exception, LmEvalExtError)
    assert "1 of 1 models did not learn" in str(result.exception)
    assert "DID NOT LEARN: all 0.0 % of 4 (at least 100 %)" in result.stdout
    assert "evaluate with" not in result.stdout
    return tmp_path / "out" / "models" / "tiny.yaml"


def test_reports_leave_out_a_model_that_missed_its_gate(
    failed_training: Path, tmp_path: Path
) -> None:
    """Its results are refused where there are no others, and the error says what it reached."""
    from lm_eval_ext.results.files import read_results

    results = tmp_path / "results"
    for label in ("bad", "good"):
        write_run(results / label, label, "made", answered_rows(2, 1))
    shutil.copyfile(failed_training, results / "bad" / "model.yaml")
    assert [file.model for file in read_results(results)] == ["good"]
    with pytest.raises(LmEvalExtError, match=r"did not learn: all 0\.0 % of 4"):
        read_results(results / "bad")


@pytest.mark.parametrize("model_type", ["t5", "gpt2"])
def test_gates_ask_what_lm_eval_will_ask_and_each_step_is_said(
    model_type: str,
    write_recipe: WriteRecipe,
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
    recipe_file = write_recipe(
        model_type=model_type, training={"max_source_length": 8, "eval_steps": 100}
    )
    (trained,) = command.train(recipe_file, tmp_path / "out")
    output = capsys.readouterr().err
    assert "6 of 6 examples are longer than max_source_length 8" in output
    assert re.search(r"^step 1 of 6, loss \d\.\d{3}, \d+\.\d minutes left$", output, re.M)
    assert trained.model_file is not None
    if model_type == "t5":
        longest = yaml.safe_load(trained.model_file.read_text())["model_args"]["max_length"]
    else:
        longest = CONFIGS["gpt2"]["n_positions"] - 16
    tokenizer = AutoTokenizer.from_pretrained(trained.folder)
    expected = [tokenizer(prompt)["input_ids"][-longest:] for prompt, _ in pairs]
    assert sorted(prompts_seen) == sorted(expected)


@pytest.fixture
def varied_recipe(write_recipe: WriteRecipe) -> str:
    """Write a recipe of two levels of two things and two seeds, with a training that comes first.

    One of the levels changes the training that comes first.
    """
    before = write_recipe("before", gates={}, training={"max_steps": 2})
    return write_recipe(
        "after",
        first={"before": {"extends": before}},
        model={"start": "{before}"},
        seeds=[0, 1],
        training={"max_steps": 1},
        vary={
            "rate": {"low": {"training.learning_rate": 0.001}, "high, 1": {}},
            "length": {"short": {"first.before.training.max_steps": 1}, "long": {}},
        },
    )


def test_each_level_and_seed_is_a_model(varied_recipe: str) -> None:
    """Names and titles say which it is."""
    models = plan_models(varied_recipe)
    assert list(models) == [
        "after-low-short-seed-0",
        "after-low-short-seed-1",
        "after-low-long-seed-0",
        "after-low-long-seed-1",
        "after-high-1-short-seed-0",
        "after-high-1-short-seed-1",
        "after-high-1-long-seed-0",
        "after-high-1-long-seed-1",
    ]
    title = "Words the other way round, high, 1, long, seed 0"
    assert models["after-high-1-long-seed-0"].title == title


def test_levels_share_the_training_that_comes_first(varied_recipe: str, tmp_path: Path) -> None:
    """Four models of a seed start from two models; a dry run lists what is done and what is not."""
    trained_models = command.train(varied_recipe, tmp_path, settings={"seeds": [1]})
    assert {trained.record["recipe"]["seed"] for trained in trained_models} == {1}
    first_folders = list((tmp_path / "first").glob("before-*"))
    starts = {trained.record["start"] for trained in trained_models}
    assert starts == {str(folder) for folder in first_folders}
    weights = {(folder / "model.safetensors").read_bytes() for folder in first_folders}
    assert len(weights) == 2
    output = train_command(varied_recipe, "-o", str(tmp_path), "--dry-run").stdout
    assert output.count("not trained yet") == 4
    assert output.count("; learned: all ") == 4
    of_seed_1 = {name for name in plan_models(varied_recipe) if name.endswith("-seed-1")}
    assert {file.stem for file in (tmp_path / "models").iterdir()} == of_seed_1


@pytest.fixture
def running_text(tmp_path: Path) -> Path:
    """Write a folder of running text: twenty paragraphs of random words."""
    rng = random.Random(0)
    paragraphs = [" ".join(rng.choices(WORDS, k=12)) for _ in range(20)]
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "a.txt").write_text("\n\n".join(paragraphs))
    return folder


@pytest.fixture
def pretraining(write_recipe: WriteRecipe, running_text: Path) -> str:
    """Write a recipe of span corruption that stops at the first loss which is not lower.

    No loss is, on any machine: the rate is too small to change a weight.
    """
    return write_recipe(
        "before",
        source=text.__name__,
        data={"folder": str(running_text)},
        gates={},
        training={
            "max_steps": 20,
            "train_sampling_strategy": "group_by_length",
            "spans": {"tokens": 200, "block": 32, "held_out": 0.3},
            "eval_steps": 1,
            "early_stopping_patience": 1,
            "load_best_model_at_end": True,
            "learning_rate": 1e-30,
            "embedding_learning_rate": None,
        },
    )


def test_a_training_builds_on_one_with_running_text(
    write_recipe: WriteRecipe, tmp_path: Path, pretraining: str
) -> None:
    """Span corruption on a folder of text, then fine-tuning of what came out."""
    after = write_recipe(
        "after", first={"words": {"extends": pretraining}}, model={"start": "{words}"}
    )
    record = command.train(after, tmp_path / "out")[0].record
    (folder,) = (tmp_path / "out" / "first").glob("words-*")
    pretraining_record = json.loads((folder / "training.json").read_text())
    assert record["start"] == str(folder)
    key = record["key"]
    assert isinstance(key, dict)
    first_trainings = key["first"]
    assert isinstance(first_trainings, dict)
    assert first_trainings["words"] == pretraining_record["key"]
    losses = evaluation_losses(pretraining_record)
    assert len(losses) == 2, "it stopped at the first loss that is not lower"
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training.spans.tokens": "1M"}, r"1,000,000, and the text has 2\d\d"),
        ({"data.folder": "none"}, "not point to a directory"),
    ],
    ids=["too few tokens", "no folder"],
)
def test_running_text_that_is_too_short_or_absent_is_refused(
    tmp_path: Path, pretraining: str, settings: dict[str, Any], message: str
) -> None:
    """The error says how much text there is, or that there is none."""
    with pytest.raises(LmEvalExtError, match=message):
        command.train(pretraining, tmp_path / "out", settings=settings)


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_share_a_training(tmp_path: Path) -> None:
    """By accelerate and gloo, on the CPU; each has half of a batch, and the gates are shared."""
    programs = Path(sys.executable).parent
    train = [str(programs / "lm-eval-ext"), "train", "diner_tiny"]
    for setting in ("gates.dev=0.0", "training.max_steps=20", "training.eval_steps=10"):
        train += ["--set", setting]
    launch = [str(programs / "accelerate"), "launch", "--multi_gpu", "--num_processes", "2"]
    losses = {}
    for process_count, words in ((1, train), (2, [*launch, *train])):
        folder = tmp_path / str(process_count)
        subprocess.run([*words, "-o", str(folder)], check=True, timeout=500)
        record = json.loads((folder / "diner_tiny" / "training.json").read_text())
        assert record["processes"] == process_count
        assert [gate["examples"] for gate in record["gates"]] == [200, 8]
        losses[process_count] = evaluation_losses(record)
    assert len(losses[1]) == 2
    assert losses[2] == pytest.approx(losses[1], abs=0.01)


def test_a_line_is_printed_before_the_heavy_libraries_are_loaded(tmp_path: Path) -> None:
    """Loading torch takes 20 seconds on a slow disk, in which a blank terminal looks dead."""
    stand_in = tmp_path / "torch"
    stand_in.mkdir()
    (stand_in / "__init__.py").write_text("raise SystemExit('torch is being loaded')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    script = str(Path(sys.executable).with_name("lm-eval-ext"))
    done = subprocess.run(
        [script, "train", "cogs_tiny", "-o", str(tmp_path / "out")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines() == [
        "loading the libraries (torch and transformers)",
        "torch is being loaded",
    ]
