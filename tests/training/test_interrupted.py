"""Trainings that end in the middle: kill, SIGTERM, Ctrl-C, a full disk; and how they go on."""

import os
import shutil
import signal
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.tiny_training import WriteRecipe, evaluation_losses, have_same_weights

from lm_eval_ext.errors import OptionError
from lm_eval_ext.training import command, monitor, progress, recipe
from lm_eval_ext.training.recipe import Material, read_recipe

END_SIGNALS = pytest.mark.parametrize(
    "end_signal", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"]
)


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


def kill_this_process(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train_until(train: Callable[[], object], last_step: int, end_signal: signal.Signals) -> None:
    """Train, and send this process a signal when it says that a step is done.

    The process must be one that ends: nothing is put back.
    """
    tell = progress.tell

    def tell_and_end(line: str) -> None:
        tell(line)
        if line.startswith(f"step {last_step:,} of"):
            os.kill(os.getpid(), end_signal)

    patch = pytest.MonkeyPatch()
    patch.setattr(progress, "tell", tell_and_end)
    patch.setattr(monitor, "LOG_S", -1.0)  # a line for each step
    train()


def interrupt(
    train: Callable[[], object],
    last_steps: Sequence[int],
    end_signal: signal.Signals = signal.SIGKILL,
) -> None:
    """Train in processes that get a signal after these steps, each where the last one ended."""
    expected = 128 + end_signal
    if end_signal == signal.SIGKILL:
        expected = -end_signal  # which no process survives to choose its status
    for step in last_steps:
        status = in_a_process(partial(train_until, train, step, end_signal))
        assert status == expected, f"step {step}"


def checkpoint_in(folder: Path) -> Path:
    """Return the only checkpoint of the training in a folder."""
    (checkpoint,) = folder.glob("tiny/.training/checkpoints/*")
    return checkpoint


@pytest.mark.parametrize("sampling", ["group_by_length", "random"])
def test_a_training_that_was_killed_in_any_pass_ends_like_one_that_was_not(
    sampling: str,
    write_recipe: WriteRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """36 examples are 5 steps a pass; killed inside of passes, and at the end of one."""
    name = write_recipe(
        training={"max_steps": 19, "train_sampling_strategy": sampling, "eval_steps": 7}
    )
    (uninterrupted,) = command.train(name, tmp_path / "uninterrupted")
    monkeypatch.setattr(monitor, "CHECKPOINT_S", -1.0)  # a checkpoint after each step
    interrupt(lambda: command.train(name, tmp_path / "killed"), [3, 6, 8, 14])
    capfd.readouterr()
    (resumed,) = command.train(name, tmp_path / "killed")
    output = capfd.readouterr().err
    assert "missing keys" not in output, "a warning of transformers"
    assert "mtime" not in output, "a warning of transformers"
    assert have_same_weights(uninterrupted.folder, resumed.folder)


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
        vocabulary = list(material.vocabulary)
        if not vocabulary:
            for pair in material.train:
                vocabulary.extend(pair)
        examples = material.train[:example_count]
        return material._replace(train=examples, dev=[], asked=[], vocabulary=vocabulary)

    monkeypatch.setattr(command, "prepare", prepare_few)
    monkeypatch.setattr(monitor, "CHECKPOINT_S", -1.0)  # a checkpoint after each step
    settings: dict[str, Any] = {"training.max_steps": 13, "gates": {}}
    if "pretrained" in name:
        settings["first.pretrained.training.max_steps"] = 2

    def train(folder: str) -> command.Trained:
        return command.train(name, tmp_path / folder, settings=settings)[0]

    interrupt(lambda: train("killed"), [2, 7, 11])
    assert have_same_weights(train("uninterrupted").folder, train("killed").folder)


def set_free_space(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    """Make the disk look as if so many bytes were free."""
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(free_bytes))


def test_a_training_is_not_begun_on_a_full_disk(
    write_recipe: WriteRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says how much is free."""
    set_free_space(monkeypatch, 0)
    with pytest.raises(OptionError, match="and 0 MB are free"):
        command.train(write_recipe(), tmp_path / "out")


def test_a_checkpoint_that_is_there_needs_no_more_space(
    write_recipe: WriteRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM leaves one; a training goes on if there is room for what is still to be written."""
    name = write_recipe(training={"eval_steps": 100})
    (uninterrupted,) = command.train(name, tmp_path / "uninterrupted")
    set_free_space(monkeypatch, 10**9)
    interrupt(lambda: command.train(name, tmp_path / "out"), [3], signal.SIGTERM)
    checkpoint = checkpoint_in(tmp_path / "out")
    assert checkpoint.name == "checkpoint-4", "the step that was under way"
    checkpoint_bytes = sum(file.stat().st_size for file in checkpoint.iterdir())
    (weights,) = tmp_path.glob("out/tiny/.training/new/model.safetensors")
    set_free_space(monkeypatch, 10 * weights.stat().st_size - checkpoint_bytes // 2)
    (resumed,) = command.train(name, tmp_path / "out")
    assert have_same_weights(uninterrupted.folder, resumed.folder)


def test_a_disk_that_fills_up_is_named(
    write_recipe: WriteRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's own error, for a checkpoint that it cannot write, says nothing of the disk."""

    def fail_to_write(*_: Any) -> None:
        set_free_space(monkeypatch, 0)
        raise RuntimeError("PytorchStreamWriter failed writing file data/7: file write failed")

    set_free_space(monkeypatch, 10**9)
    monkeypatch.setattr(monitor, "atomic_path", fail_to_write)
    with pytest.raises(OptionError, match="0 MB are free; make room, and the same command continu"):
        command.train(write_recipe(training={"eval_steps": 100}), tmp_path / "out")


def train_until_evaluation(name: str, folder: Path, end_signal: signal.Signals) -> None:
    """Train in a process that gets a signal in its first evaluation."""
    evaluate = monitor.TrainingMonitor.on_prediction_step

    def evaluate_after_signal(
        watch: Any, arguments: Any, state: Any, control: Any, **options: Any
    ) -> None:
        os.kill(os.getpid(), end_signal)
        evaluate(watch, arguments, state, control, **options)

    def train() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(monitor.TrainingMonitor, "on_prediction_step", evaluate_after_signal)
        command.train(name, folder)

    assert in_a_process(train) == 128 + end_signal


@END_SIGNALS
def test_a_signal_in_an_evaluation_ends_it_and_changes_nothing(
    write_recipe: WriteRecipe,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    end_signal: signal.Signals,
) -> None:
    """The step before the evaluation is saved; it and the evaluation are repeated."""
    name = write_recipe(training={"eval_steps": 4})
    (uninterrupted,) = command.train(name, tmp_path / "uninterrupted")
    train_until_evaluation(name, tmp_path / "stopped", end_signal)
    line = "stopped at the evaluation after step 4; the same command continues at the checkpoint of"
    assert f"{line} step 3" in capfd.readouterr().err
    assert checkpoint_in(tmp_path / "stopped").name == "checkpoint-3"
    (resumed,) = command.train(name, tmp_path / "stopped")
    assert have_same_weights(uninterrupted.folder, resumed.folder)
    losses = evaluation_losses(resumed.record)
    assert losses == evaluation_losses(uninterrupted.record)
    assert len(losses) == 2, "after step 4 and at the end"


@pytest.mark.parametrize("max_steps", [4, 5], ids=["within a pass", "at the end of a pass"])
def test_a_signal_in_the_last_evaluation_repeats_no_step(
    write_recipe: WriteRecipe, tmp_path: Path, capfd: pytest.CaptureFixture[str], max_steps: int
) -> None:
    """36 examples are 5 steps a pass; the last step is saved before it is evaluated."""
    name = write_recipe(
        training={
            "max_steps": max_steps,
            "eval_steps": max_steps,
            "lr_scheduler_type": "constant",  # a further step would change the weights
        }
    )
    (uninterrupted,) = command.train(name, tmp_path / "uninterrupted")
    train_until_evaluation(name, tmp_path / "stopped", signal.SIGTERM)
    line = f"stopped at the evaluation after step {max_steps}; the same command continues at the"
    assert f"{line} checkpoint of step {max_steps}" in capfd.readouterr().err
    assert checkpoint_in(tmp_path / "stopped").name == f"checkpoint-{max_steps}"
    (resumed,) = command.train(name, tmp_path / "stopped")
    assert f"working on step {max_steps + 1}" not in capfd.readouterr().err
    assert have_same_weights(uninterrupted.folder, resumed.folder)
    losses = evaluation_losses(resumed.record)
    assert losses == evaluation_losses(uninterrupted.record)
    assert len(losses) == 1


def test_a_training_that_is_killed_after_its_last_checkpoint_takes_no_further_step(
    write_recipe: WriteRecipe, tmp_path: Path
) -> None:
    """The Trainer would take one more if the last step did not end a pass."""
    name = write_recipe(training={"max_steps": 6, "lr_scheduler_type": "constant"})
    (uninterrupted,) = command.train(name, tmp_path / "uninterrupted")

    def train() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(command, "version", kill_this_process)
        command.train(name, tmp_path / "killed")

    assert in_a_process(train) == -signal.SIGKILL
    (resumed,) = command.train(name, tmp_path / "killed")
    assert have_same_weights(uninterrupted.folder, resumed.folder)
    assert evaluation_losses(resumed.record) == evaluation_losses(uninterrupted.record)
    assert len(evaluation_losses(resumed.record)) == 3


EARLY_STOPPING = {
    "max_steps": 20,
    "eval_steps": 1,
    "early_stopping_patience": 1,
    # No loss is lower than the first, on any machine: this rate is too small to change a weight.
    "learning_rate": 1e-30,
    "embedding_learning_rate": None,
}


@pytest.mark.parametrize("keeps_best", [False, True], ids=["last weights", "best weights"])
def test_a_training_that_is_killed_after_early_stopping_takes_no_further_step(
    write_recipe: WriteRecipe,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    keeps_best: bool,
) -> None:
    """It stopped after step 2, and was killed before it wrote the weights."""
    name = write_recipe(training={**EARLY_STOPPING, "load_best_model_at_end": keeps_best})
    (uninterrupted,) = command.train(name, tmp_path / "uninterrupted")

    def train() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(command, "version", kill_this_process)
        command.train(name, tmp_path / "killed")

    assert in_a_process(train) == -signal.SIGKILL
    capfd.readouterr()
    (resumed,) = command.train(name, tmp_path / "killed")
    assert "working on step" not in capfd.readouterr().err
    assert have_same_weights(uninterrupted.folder, resumed.folder)
    losses = evaluation_losses(resumed.record)
    assert losses == evaluation_losses(uninterrupted.record)
    assert len(losses) == 2


def test_a_signal_after_early_stopping_does_not_say_that_the_training_continues(
    write_recipe: WriteRecipe, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The weights are written, and the process ends."""
    name = write_recipe(training=EARLY_STOPPING)
    save = monitor.TrainingMonitor.on_save

    def save_and_signal(watch: Any, arguments: Any, state: Any, *rest: Any, **options: Any) -> None:
        save(watch, arguments, state, *rest, **options)
        if state.global_step == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    def train() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(monitor.TrainingMonitor, "on_save", save_and_signal)
        command.train(name, tmp_path / "out")

    assert in_a_process(train) == 128 + signal.SIGTERM
    assert "the same command continues" not in capfd.readouterr().err
    (finished,) = command.train(name, tmp_path / "out")
    assert len(evaluation_losses(finished.record)) == 2


def test_a_training_that_keeps_the_best_weights_saves_the_step_before_its_last_evaluation(
    write_recipe: WriteRecipe, tmp_path: Path
) -> None:
    """The Trainer chooses after it; there is a checkpoint even if no step before was evaluated."""
    best = {"load_best_model_at_end": True, "save_steps": 5}
    name = write_recipe(training={"eval_steps": 5, "max_steps": 5, **best})

    def train() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(monitor.TrainingMonitor, "on_prediction_step", kill_this_process)
        command.train(name, tmp_path / "out")

    assert in_a_process(train) == -signal.SIGKILL
    assert checkpoint_in(tmp_path / "out").name == "checkpoint-4"


@END_SIGNALS
def test_a_signal_leaves_a_checkpoint_of_the_step_under_way(
    write_recipe: WriteRecipe,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    end_signal: signal.Signals,
) -> None:
    """The process says where it stopped."""
    name = write_recipe(training={"eval_steps": 100})
    interrupt(lambda: command.train(name, tmp_path / "out"), [3], end_signal)
    assert "stopped at step 4; the same command continues there" in capfd.readouterr().err
    checkpoint = checkpoint_in(tmp_path / "out")
    assert checkpoint.name == "checkpoint-4"
    assert (checkpoint / monitor.COMPLETE).exists()


def train_seed_3(write_recipe: WriteRecipe, folder: Path, **training: Any) -> command.Trained:
    """Train a model with this seed, with changes of the recipe's training."""
    name = write_recipe(training=training)
    return command.train(name, folder, settings={"seeds": [3]})[0]


def cut_off_second_checkpoint(write_recipe: WriteRecipe, folder: Path) -> None:
    """Begin a training in a process that is killed while it completes checkpoint 4."""
    atomic_path = monitor.atomic_path  # type: ignore[attr-defined]

    def end_at_step_4(file: Path) -> Any:
        if file.parent.name == "checkpoint-4":
            os.kill(os.getpid(), signal.SIGKILL)
        return atomic_path(file)

    def train() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(monitor, "atomic_path", end_at_step_4)
        train_seed_3(write_recipe, folder)

    assert in_a_process(train) == -signal.SIGKILL


def test_a_checkpoint_that_was_cut_off_is_none(write_recipe: WriteRecipe, tmp_path: Path) -> None:
    """The training goes on at the one before it."""
    folder = tmp_path / "killed"
    cut_off_second_checkpoint(write_recipe, folder)
    assert (folder / "tiny-seed-3/.training/checkpoints/checkpoint-4").exists()
    uninterrupted = train_seed_3(write_recipe, tmp_path / "uninterrupted")
    resumed = train_seed_3(write_recipe, folder)
    assert have_same_weights(uninterrupted.folder, resumed.folder)
    assert not (resumed.folder / ".training").exists()


def test_another_recipe_does_not_continue_a_training(
    write_recipe: WriteRecipe, tmp_path: Path
) -> None:
    """The error says what differs: a key of the recipe, or the number of processes."""
    cut_off_second_checkpoint(write_recipe, tmp_path)
    with pytest.raises(OptionError, match=r"lies here, with .*; name another folder"):
        train_seed_3(write_recipe, tmp_path, per_device_train_batch_size=4)
    record = tmp_path / "tiny-seed-3" / "training.json"
    record.write_text(record.read_text().replace('"processes": 1', '"processes": 2'))
    with pytest.raises(OptionError, match='"processes": 2 instead of "processes": 1'):
        train_seed_3(write_recipe, tmp_path)


def test_a_training_that_is_done_is_not_done_again(
    write_recipe: WriteRecipe, tmp_path: Path
) -> None:
    """The same recipe finds its model, and another one is refused."""
    trained = train_seed_3(write_recipe, tmp_path)
    assert not (trained.folder / ".training").exists()
    assert trained.model_file == tmp_path / "models" / "tiny-seed-3.yaml"
    assert train_seed_3(write_recipe, tmp_path).record == trained.record
    with pytest.raises(OptionError, match=r"another training lies here, with .*max_steps"):
        train_seed_3(write_recipe, tmp_path, max_steps=7)


def test_a_folder_with_other_files_is_refused(write_recipe: WriteRecipe, tmp_path: Path) -> None:
    """Nothing that is no training is overwritten."""
    (tmp_path / "full" / "tiny").mkdir(parents=True)
    (tmp_path / "full" / "tiny" / "notes.txt").touch()
    with pytest.raises(OptionError, match="holds no training"):
        command.train(write_recipe(), tmp_path / "full")
