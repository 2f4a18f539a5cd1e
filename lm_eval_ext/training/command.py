"""``lm-eval-ext train``: from a recipe to a model that lm-eval can evaluate, with its record."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder, atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import transformers_bars
from lm_eval_ext.training import batches, fitting
from lm_eval_ext.training.answers import processes, scores
from lm_eval_ext.training.material import Material, prepare
from lm_eval_ext.training.recipe import Recipe, filled, read_recipe
from lm_eval_ext.training.records import (
    CHECKPOINTS,
    FINAL,
    FIRST,
    MODELS,
    RECORD,
    WORK,
    Gate,
    Trained,
    begin,
    check_same,
    finished,
    key_of,
    machine,
    pretraining_tokens,
    recipe_digest,
    told,
    weights_of,
    write_model_file,
)
from lm_eval_ext.training.starting import copy_tokenizer, load, start_folder

CURVE = "curve.json"
"""Beside the final weights, until the record takes it."""


@dataclass(frozen=True)
class Shared:
    """A folder of trainings that come first, each once for all models that need it.

    ``known`` are those that this process has trained or checked.
    """

    folder: Path
    known: dict[Path, Trained] = field(default_factory=dict)


def train(
    name: str,
    out: Path,
    *,
    seeds: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    launcher: str = "",
    shared: Shared | None = None,
) -> list[Trained]:
    """Trains a recipe's models, those that are not there yet.

    Args:
        name: The recipe: a file, or the name of one that ships.
        out: The model's folder; with seeds, a folder of ``seed-0`` and so on.
        seeds: Of each model; without any, that of the recipe.
        settings: Replaces values of the recipe, by key.
        launcher: Instead of the recipe's.
        shared: Where trainings that come first are looked for and put, instead of in the model's
            folder.

    Raises:
        OptionError: Recipe, model or folder are wrong, or the disk is full.
        DataError: Data are missing.
    """
    recipe = read_recipe(name, settings)
    if launcher:
        recipe = recipe.model_copy(update={"launcher": launcher})
    out = out.expanduser().absolute()
    stem = Path(name).stem
    found = []
    for seed in seeds or (recipe.seed,):
        folder = out / f"seed-{seed}" if seeds else out
        trained = _train(recipe, folder, seed, shared)
        file = out / MODELS / f"{stem}{f'-seed-{seed}' if seeds else ''}.yaml"
        write_model_file(file, recipe, trained, seed if seeds else None)
        found.append(replace(trained, model_file=file))
    return found


def _train(recipe: Recipe, folder: Path, seed: int, shared: Shared | None = None) -> Trained:
    """Trains what comes first, then this; by the launcher, if there is one."""
    _check_folder(folder)
    folders = {"seed": str(seed)}
    for name, first in recipe.first.items():
        before = read_recipe(first.recipe, filled(first.set, folders))
        before = before.model_copy(update={"launcher": recipe.launcher})
        if shared is None:
            trained = _train(before, folder / FIRST / name, seed)
        else:
            place = shared.folder / f"{name}-{recipe_digest(before, seed)}"
            if place not in shared.known:
                with _turn(place):
                    shared.known[place] = _train(before, place, seed, shared)
            trained = shared.known[place]
        if not trained.learned:
            raise OptionError(f"{trained.folder} comes first and did not learn: {told(trained)}")
        folders[name] = str(trained.folder)
    if not recipe.launcher:
        return train_here(recipe, folder, seed, folders)
    plan = folder / WORK / "plan.json"
    plan.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(plan) as file:
        file.write(json.dumps([recipe.model_dump(), str(folder), seed, folders]))
    command = [*shlex.split(recipe.launcher), "-m", __package__, str(plan)]
    environment = dict(os.environ)
    binaries = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join([binaries, environment.get("PATH", os.defpath)])
    try:
        status = subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        raise OptionError(f"launcher {command[0]!r}: {error.strerror}") from None
    if status:
        raise OptionError(f"{folder}: the training ended with status {status}; see above")
    return finished(folder) or _lost(folder)


def _lost(folder: Path) -> Trained:
    raise OptionError(f"{folder}: the launcher ended, and there is no {RECORD}")


def _check_folder(folder: Path) -> None:
    """Refuses a folder with something else in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror}") from None
    if there and not there & {RECORD, WORK, FIRST}:
        raise OptionError(f"{folder} is not empty and holds no training; name another folder")


def train_here(recipe: Recipe, folder: Path, seed: int, folders: Mapping[str, str]) -> Trained:
    """Trains in this process, or in all that a launcher has started; each calls it.

    Args:
        recipe: What to train.
        folder: Where; it exists.
        seed: Of weights, order and dropout.
        folders: What the recipe's names in braces stand for.

    Raises:
        OptionError: As :func:`train`.
        DataError: As :func:`train`.
    """
    state = processes()
    material = prepare(recipe.source, filled(recipe.data, folders), seed)
    if unknown := [name for name in recipe.gates if name not in material.gates]:
        legal = ", ".join(material.gates) or "no gates"
        raise OptionError(
            f"gates: the source {recipe.source} has no {unknown[0]!r}; it has {legal}"
        )
    first = {name: Path(folders[name]) for name in recipe.first}
    key = key_of(recipe, seed, material, first)
    if (there := finished(folder)) is not None:
        check_same(folder / RECORD, there.record["key"], key)
        # Paths in it may be those from before the folder was moved.
        record = {**there.record, "model_file": dict(material.model_file)}
        return replace(there, record=record, reused=True)
    work = folder / WORK
    work.mkdir(parents=True, exist_ok=True)
    with _alone(work, first=state.is_main_process), transformers_bars(shown=False):
        if state.is_main_process:
            begin(work, key)
        with state.main_process_first():
            source = filled(recipe.model.start, folders)
            model = recipe.model.model_copy(update={"start": source})
            start = start_folder(model, material, work, seed)
        final = work / FINAL
        if not final.is_dir():
            _fit(recipe, material, start, work, seed)
        state.wait_for_everyone()
        gates = _gates(recipe, material, final)
        if state.is_main_process:
            facts = {
                "pretraining_tokens": pretraining_tokens(recipe, source),
                "sources": dict(material.facts),
                "start": weights_of(start),
                "model_file": dict(material.model_file),
                "machine": machine(),
                "key": key,
            }
            _finish(recipe, folder, facts, gates)
        state.wait_for_everyone()
    if state.is_main_process:
        shutil.rmtree(work, ignore_errors=True)
    return finished(folder) or _lost(folder)


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Waits while another command trains what this one needs first."""
    from filelock import FileLock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {folder.parent}: {error.strerror}") from None
    with FileLock(f"{folder}.lock"):
        yield


@contextmanager
def _alone(work: Path, *, first: bool) -> Any:
    """Only one training at a time works in a folder."""
    from filelock import FileLock, Timeout

    if not first:
        yield
        return
    lock = FileLock(work / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OptionError(f"{work.parent}: another process trains here; wait for it") from None
    try:
        yield
    finally:
        lock.release()


def _fit(recipe: Recipe, material: Material, start: Path, work: Path, seed: int) -> None:
    """Trains, and writes the weights with the curve into ``work/final``."""
    started = time.monotonic()
    training = recipe.training
    model, tokenizer = load(start)
    facts: dict[str, Any] = {}
    if training.spans:
        documents = [text for _, text in material.train]
        examples = training.batch_size * (training.steps or 0)
        rows, dev = batches.corrupted(
            documents, tokenizer, training.spans, seed=seed, examples=examples
        )
    else:
        if not material.train:
            raise OptionError(f"the source {recipe.source} has no example left for recipe.data")
        facts |= _check_tokenizer(start, tokenizer, material)
        kind = {"encoder_decoder": bool(model.config.is_encoder_decoder)}
        rows, facts["cut"] = batches.encode(material.train, tokenizer, training, **kind)
        dev, _ = batches.encode(material.dev, tokenizer, training, **kind)
        _check_lengths(start, model, [*rows, *dev])
    curve: list[dict[str, float]] = []
    if rows:
        asked = {
            name: material.gates[name][: training.evaluate_answers]
            for name in recipe.gates
            if training.evaluate_answers
        }

        def ask(now: Any) -> dict[str, float]:
            found = {}
            for name, pairs in asked.items():
                own = scores(now, tokenizer, pairs, material, batch_size=training.batch_size)
                found[name] = sum(own) / len(own)
            return found

        model, curve = fitting.fit(
            model, tokenizer, rows=rows, dev=dev, training=training, ask=ask,
            folder=work / CHECKPOINTS, seed=seed,
        )  # fmt: skip
    if not processes().is_main_process:
        return
    facts |= {
        "parameters": model.num_parameters(),
        "examples": len(rows),
        "seconds": round(time.monotonic() - started, 1),
    }
    with atomic_folder(work / FINAL) as part:
        model.save_pretrained(part)
        copy_tokenizer(start, part)
        record = json.dumps({"facts": facts, "curve": curve})
        (part / CURVE).write_text(record, encoding="utf-8")


def _check_tokenizer(folder: Path, tokenizer: Any, material: Material) -> dict[str, Any]:
    """Refuses a tokenizer that corrupts texts; of lossy ones, returns how many, and one of them."""
    pairs = [*material.train, *material.dev, *(p for some in material.gates.values() for p in some)]
    if material.lossy:
        found = list(batches.problems(tokenizer, pairs))
        return {"not_kept": {"texts": len(found), "such as": found[:1]}}
    problem = material.problem_with(tokenizer) or batches.problem_with(tokenizer, pairs)
    if problem:
        raise OptionError(f"{folder}: the tokenizer does not keep the texts: {problem}")
    return {}


def _check_lengths(folder: Path, model: Any, rows: Sequence[batches.Row]) -> None:
    """Refuses a model that has fewer positions than the examples have tokens."""
    positions = getattr(model.config, "max_position_embeddings", None)
    longest = max((len(ids) for row in rows for ids in row.values()), default=0)
    if positions and longest > positions:
        raise OptionError(
            f"{folder}: the model has {positions} positions, and an example {longest} tokens; "
            "lower training.max_source and max_target, or take another model"
        )


def _gates(recipe: Recipe, material: Material, final: Path) -> tuple[Gate, ...]:
    """Asks the model as it was written and loaded again."""
    if not recipe.gates:
        return ()
    model, tokenizer = load(final)
    if not material.lossy:
        _check_tokenizer(final, tokenizer, material)
    model.to(processes().device)
    found = []
    for name, bar in recipe.gates.items():
        pairs = material.gates[name]
        size = recipe.training.batch_size
        own = scores(model, tokenizer, pairs, material, batch_size=size)
        wrong = [source for (source, _), one in zip(pairs, own, strict=True) if one < 1]
        found.append(Gate(name, len(pairs), sum(own) / max(1, len(own)), bar, tuple(wrong[:5])))
    return tuple(found)


def _finish(recipe: Recipe, folder: Path, facts: Mapping[str, Any], gates: Sequence[Gate]) -> None:
    """Moves the model into its folder; the record comes last and says that all is there."""
    final = folder / WORK / FINAL
    kept = json.loads((final / CURVE).read_text(encoding="utf-8"))
    record = {
        "recipe": recipe.model_dump(),
        "learned": all(gate.passed for gate in gates),
        "gates": [asdict(gate) for gate in gates],
        **kept["facts"],
        **facts,
        "curve": kept["curve"],
    }
    try:
        for file in final.iterdir():
            if file.name != CURVE:
                shutil.copyfile(file, folder / file.name)
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror}") from None
    with atomic_text(folder / RECORD) as out:
        out.write(json.dumps(record, indent=1, ensure_ascii=False))
