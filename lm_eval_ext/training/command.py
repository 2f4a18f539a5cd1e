"""``lm-eval-ext train``: from a recipe to models that lm-eval can evaluate, with their records."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder, atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import transformers_bars
from lm_eval_ext.training import batches, fitting
from lm_eval_ext.training.answers import answers_of, processes
from lm_eval_ext.training.fitting import tell
from lm_eval_ext.training.material import Material, prepare
from lm_eval_ext.training.recipe import Recipe, filled, planned, read_recipe
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
    weights_of,
    write_model_file,
)
from lm_eval_ext.training.starting import copy_tokenizer, load, start_folder

FACTS = "facts.json"
"""Beside the final weights, until the record takes it."""


def train(
    name: str,
    out: Path,
    *,
    seeds: str = "",
    settings: Mapping[str, Any] | None = None,
    only: str = "",
) -> list[Trained]:
    """Trains a recipe's models, those that are not there yet.

    Under ``accelerate launch``, all processes call it and share each training.

    Args:
        name: The recipe: a file, or the name of one that ships.
        out: The model's folder; with seeds or levels, a folder of folders. Model files lie in
            ``models``, and trainings that come first in ``first``, each once for all that need it.
        seeds: Such as ``0-4``; without any, the recipe's.
        settings: Replaces values of the recipe, by key.
        only: A pattern of models' names.

    Raises:
        OptionError: Recipe, model or folder are wrong, or the disk is full.
        DataError: Data are missing.
    """
    models = planned(name, settings, seeds, only)
    out = out.expanduser().absolute()
    for one in models:
        fitting.arguments_of(one.recipe.training, out, one.seed)
    known: dict[Path, Trained] = {}
    found = []
    for place, one in enumerate(models, 1):
        if len(models) > 1:
            tell(f"[{place}/{len(models)}] {one.title}")
        trained = _train(one.recipe, out / one.folder, one.seed, out / FIRST, known)
        file = out / MODELS / f"{one.name}.yaml"
        if processes().is_main_process:
            write_model_file(file, one, trained)
        found.append(replace(trained, model_file=file))
    return found


def _train(
    recipe: Recipe, folder: Path, seed: int, shared: Path, known: dict[Path, Trained]
) -> Trained:
    """Trains what comes first, then this; ``known`` are those of this call."""
    folders = {"seed": str(seed)}
    for name, first in recipe.first.items():
        before = read_recipe(first.recipe, filled(first.set, folders))
        place = shared / f"{name}-{recipe_digest(before, seed)}"
        if place not in known:
            known[place] = _train(before, place, seed, shared, known)
        if not known[place].learned:
            raise OptionError(f"{place} comes first and did not learn: {known[place].told()}")
        folders[name] = str(place)
    _check_folder(folder)
    material = prepare(recipe.source, filled(recipe.data, folders), seed)
    if unknown := [name for name in recipe.gates if name not in material.gates]:
        legal = ", ".join(material.gates) or "no gates"
        raise OptionError(
            f"gates: the source {recipe.source} has no {unknown[0]!r}; it has {legal}"
        )
    key = key_of(recipe, seed, material, {name: Path(folders[name]) for name in recipe.first})
    with _alone(folder / WORK), transformers_bars(shown=False):
        if (there := finished(folder)) is not None:
            check_same(folder / RECORD, there.record["key"], key)
            # Paths in it may be those from before the folder was moved.
            record = {**there.record, "model_file": dict(material.model_file)}
            found = replace(there, record=record, reused=True)
        else:
            start = filled(recipe.model.start, folders)
            recipe_ = recipe.model_copy(
                update={"model": recipe.model.model_copy(update={"start": start})}
            )
            found = _train_here(recipe_, material, folder, seed, key)
    if processes().is_main_process:
        shutil.rmtree(folder / WORK, ignore_errors=True)
    return found


def _check_folder(folder: Path) -> None:
    """Refuses a folder with something else in it."""
    try:
        (folder / WORK).parent.mkdir(parents=True, exist_ok=True)
        there = {path.name for path in folder.iterdir()}
        if there and not there & {RECORD, WORK, FIRST}:
            raise OptionError(f"{folder} is not empty and holds no training; name another folder")
        (folder / WORK).mkdir(exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror}") from None


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Waits while another command trains in this folder."""
    from filelock import FileLock, Timeout

    lock = FileLock(work / "lock")
    if processes().is_main_process:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell(f"{work.parent}: another process trains here; waiting for it")
            lock.acquire()
            work.mkdir(exist_ok=True)
    processes().wait_for_everyone()
    try:
        yield
        processes().wait_for_everyone()
    finally:
        lock.release()


def _train_here(
    recipe: Recipe, material: Material, folder: Path, seed: int, key: Mapping[str, Any]
) -> Trained:
    work, main = folder / WORK, processes().is_main_process
    if main:
        begin(work, key)
    with processes().main_process_first():
        start = start_folder(recipe.model, material, work, seed)
    final = work / FINAL
    if not final.is_dir():
        _fit(recipe, material, start, work, seed)
    processes().wait_for_everyone()
    facts = json.loads((final / FACTS).read_text(encoding="utf-8"))
    gates = _gates(recipe, material, final, facts["max_length"])
    if main:
        record = {
            "recipe": recipe.model_dump(),
            "learned": all(gate.passed for gate in gates),
            "gates": [asdict(gate) for gate in gates],
            "pretraining_tokens": pretraining_tokens(recipe, recipe.model.start),
            "sources": dict(material.facts),
            "start": weights_of(start),
            "model_file": dict(material.model_file),
            "machine": machine(),
            "key": key,
            **facts,
        }
        try:
            for file in final.iterdir():
                if file.name != FACTS:
                    shutil.copyfile(file, folder / file.name)
        except OSError as error:
            raise OptionError(f"cannot write {folder}: {error.strerror}") from None
        # The record comes last and says that all is there.
        with atomic_text(folder / RECORD) as out:
            out.write(json.dumps(record, indent=1, ensure_ascii=False))
    processes().wait_for_everyone()
    found = finished(folder)
    assert found is not None
    return found


def _fit(recipe: Recipe, material: Material, start: Path, work: Path, seed: int) -> None:
    """Trains, and writes the weights with what is known of them into ``work/final``."""
    started = time.monotonic()
    training = recipe.training
    model, tokenizer = load(start)
    both = bool(model.config.is_encoder_decoder)
    # Of a model that only decodes, prompts and answers share the positions.
    facts: dict[str, Any] = {"max_length": training.max_source_length if both else None}
    if training.spans:
        documents = [text for _, text in material.train]
        examples = training.batch * (training.max_steps or 0)
        rows, dev = batches.corrupted(
            documents, tokenizer, training.spans, seed=seed, examples=examples
        )
    else:
        if not material.train:
            raise OptionError(f"the source {recipe.source} has no example left for recipe.data")
        facts |= _check_tokenizer(start, tokenizer, material)
        rows, facts["cut"] = batches.encode(
            material.train, tokenizer, training, encoder_decoder=both
        )
        dev, _ = batches.encode(material.dev, tokenizer, training, encoder_decoder=both)
        _check_lengths(start, model, [*rows, *dev])
        if facts["cut"]:
            tell(
                f"{facts['cut']:,} of {len(rows):,} examples are longer than max_source_length "
                f"{training.max_source_length} or max_target_length {training.max_target_length}, "
                "and are cut"
            )
    curve: list[dict[str, float]] = []
    if rows:
        (work / CHECKPOINTS).mkdir(exist_ok=True)
        model, curve = fitting.fit(
            model, tokenizer, rows=rows, dev=dev, training=training, folder=work / CHECKPOINTS,
            seed=seed,
        )  # fmt: skip
    if not processes().is_main_process:
        return
    facts |= {
        "parameters": model.num_parameters(),
        "examples": len(rows),
        "seconds": round(time.monotonic() - started, 1),
        "curve": curve,
    }
    with atomic_folder(work / FINAL) as part:
        model.save_pretrained(part)
        copy_tokenizer(start, part)
        (part / FACTS).write_text(json.dumps(facts), encoding="utf-8")


def _check_tokenizer(folder: Path, tokenizer: Any, material: Material) -> dict[str, Any]:
    """Refuses a tokenizer that corrupts texts; of lossy ones, returns how many, and one of them."""
    pairs = [*material.train, *material.dev, *(p for some in material.gates.values() for p in some)]
    problems = batches.problems(tokenizer, pairs)
    if material.lossy:
        found = list(problems)
        return {"not_kept": {"texts": len(found), "such as": found[:1]}}
    if problem := material.problem_with(tokenizer) or next(problems, ""):
        raise OptionError(f"{folder}: the tokenizer does not keep the texts: {problem}")
    return {}


def _check_lengths(folder: Path, model: Any, rows: Sequence[batches.Row]) -> None:
    """Refuses a model that has fewer positions than the examples have tokens."""
    positions = getattr(model.config, "max_position_embeddings", None)
    longest = max((len(ids) for row in rows for ids in row.values()), default=0)
    if positions and longest > positions:
        raise OptionError(
            f"{folder}: the model has {positions} positions, and an example {longest} tokens; "
            "lower max_source_length and max_target_length, or take another model"
        )


def _gates(
    recipe: Recipe, material: Material, final: Path, max_length: int | None
) -> tuple[Gate, ...]:
    """Asks the model as it was written and loaded again, with the arguments of its model file."""
    if not recipe.gates:
        return ()
    _, tokenizer = load(final)
    if not material.lossy:
        _check_tokenizer(final, tokenizer, material)
    found = []
    for name, bar in recipe.gates.items():
        pairs = material.gates[name]
        targets = tokenizer([target for _, target in pairs])["input_ids"]
        texts = answers_of(
            # An answer may be longer than every right one, which then shows.
            final, [source for source, _ in pairs], most=max(map(len, targets), default=0) + 8,
            batch_size=recipe.training.per_device_train_batch_size, max_length=max_length,
        )  # fmt: skip
        own = [material.score(text, target) for text, (_, target) in zip(texts, pairs, strict=True)]
        wrong = [source for (source, _), one in zip(pairs, own, strict=True) if one < 1]
        found.append(Gate(name, len(pairs), sum(own) / max(1, len(own)), bar, wrong[:5]))
    return tuple(found)
