"""``lm-eval-ext train``: from a recipe to models that lm-eval can evaluate, with their records."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import OptionError, writing
from lm_eval_ext.log import transformers_bars
from lm_eval_ext.training import batches, fitting
from lm_eval_ext.training.answers import answers_of, processes
from lm_eval_ext.training.fitting import tell
from lm_eval_ext.training.material import Material, prepare
from lm_eval_ext.training.recipe import Recipe, filled, planned, read_recipe
from lm_eval_ext.training.records import (
    FIRST,
    MODELS,
    RECORD,
    WORK,
    Gate,
    Trained,
    check_same,
    digest,
    finished,
    key_of,
    machine,
    pretraining_tokens,
    weights_of,
    write_json,
    write_model_file,
)
from lm_eval_ext.training.starting import copy_tokenizer, load, start_folder

KEY, FACTS = "key.json", "facts.json"
"""In a training's working folder: what is trained; and what is known when the weights are
written."""


def train(
    name: str, out: Path, *, settings: Mapping[str, Any] | None = None, only: str = ""
) -> list[Trained]:
    """Trains a recipe's models, those that are not there yet.

    Under ``accelerate launch``, all processes call it and share each training.

    Args:
        name: The recipe: a file, or the name of one that ships.
        out: The model's folder; with seeds or levels, a folder of folders. Model files lie in
            ``models``, and trainings that come first in ``first``, each once for all that need it.
        settings: Replaces values of the recipe, by key.
        only: A pattern of models' names.

    Raises:
        OptionError: Recipe, model or folder are wrong, or the disk is full.
        DataError: Data are missing.
    """
    models = planned(name, settings, only)
    out = out.expanduser().absolute()
    for one in models:
        fitting.arguments_of(one.recipe.training, out, one.seed)
    known: dict[Path, Trained] = {}
    found = []
    for place, one in enumerate(models, 1):
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
    folders: dict[str, str] = {}
    first = {}
    for name, one in recipe.first.items():
        before = read_recipe(one.extends, filled(one.model_extra, folders))
        place = shared / f"{name}-{digest(key_of(before, seed))}"
        if place not in known:
            known[place] = _train(before, place, seed, shared, known)
        if not known[place].learned:
            raise OptionError(f"{place} comes first and did not learn: {known[place].told()}")
        folders[name], first[name] = str(place), known[place].record["key"]
    material = prepare(recipe.source, filled(recipe.data, folders), seed)
    if lacking := recipe.gates.keys() - material.gates.keys():
        legal = ", ".join(material.gates) or "no gates"
        raise OptionError(f"gates: {recipe.source} has no {lacking.pop()!r}; it has {legal}")
    key = key_of(recipe, seed, examples=material.digest(), first=first)
    with _alone(folder, key) as work, transformers_bars(shown=False):
        if (there := finished(folder)) is not None:
            # Paths in it may be those from before the folder was moved.
            record = {**there.record, "model_file": dict(material.model_file)}
            return replace(there, record=record, reused=True)
        start = recipe.model.model_copy(update={"start": filled(recipe.model.start, folders)})
        with processes().main_process_first():
            begin = start_folder(start, material, work, seed)
        if not (work / FACTS).is_file():
            write_json(work / FACTS, _fit(recipe, material, begin, work, seed))
        facts = json.loads((work / FACTS).read_text(encoding="utf-8"))
        gates = _ask(recipe, material, folder, facts["max_length"])
        record = {
            "recipe": recipe.model_dump(),
            "gates": [asdict(gate) for gate in gates],
            "pretraining_tokens": pretraining_tokens(recipe, start.start),
            "sources": dict(material.facts),
            "start": weights_of(begin),
            "model_file": dict(material.model_file),
            "machine": machine(),
            "key": key,
            **facts,
        }
        write_json(folder / RECORD, record)  # comes last and says that all is there
        return Trained(folder, gates, record)


@contextmanager
def _alone(folder: Path, key: Mapping[str, Any]) -> Iterator[Path]:
    """Yields a training's working folder, as soon as no other command trains in its folder.

    Raises:
        OptionError: Something else is in the folder, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / WORK / "lock")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        there = {path.name for path in folder.iterdir()}
        if there and not there & {RECORD, WORK, FIRST}:
            raise OptionError(f"{folder} is not empty and holds no training; name another folder")
        (folder / WORK).mkdir(exist_ok=True)
        if processes().is_main_process:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                tell(f"{folder}: another process trains here; waiting for it")
                lock.acquire()
    try:
        begun = {one.parents[1] / KEY for one in folder.glob(f"{WORK}/*/checkpoints/checkpoint-*")}
        before = [json.loads(one.read_text(encoding="utf-8")) for one in begun]
        if (done := finished(folder)) is not None:
            before.append(done.record["key"])
        for one in before:
            check_same(folder, one, key)
        work = folder / WORK / digest(key)
        work.mkdir(exist_ok=True)
        write_json(work / KEY, key)
        yield work
        if processes().is_main_process:
            shutil.rmtree(folder / WORK, ignore_errors=True)
    finally:
        lock.release()


def _fit(recipe: Recipe, material: Material, start: Path, work: Path, seed: int) -> dict[str, Any]:
    """Trains, and writes the weights; returns what is known of them."""
    started, training, folder = time.monotonic(), recipe.training, work.parents[1]
    model, tokenizer = load(start)
    both = bool(model.config.is_encoder_decoder)
    # Of a model that only decodes, prompts and answers share the positions.
    facts: dict[str, Any] = {"max_length": training.max_source_length if both else None}
    if not material.train:
        raise OptionError(f"the source {recipe.source} has no example for recipe.data")
    if training.spans:
        texts = [text for _, text in material.train]
        rows, dev = batches.corrupted(texts, tokenizer, training, seed=seed)
    else:
        # A tokenizer that corrupts texts is refused; that of lossy texts is counted.
        gates = (pair for some in material.gates.values() for pair in some)
        problems = batches.problems(tokenizer, [*material.train, *material.dev, *gates])
        if material.lossy:
            found = list(problems)
            facts["not_kept"] = {"texts": len(found), "such as": found[:1]}
        elif problem := material.problem_with(tokenizer) or next(problems, ""):
            raise OptionError(f"{start}: the tokenizer does not keep the texts: {problem}")
        (rows, facts["cut"]), (dev, _) = (
            batches.encode(pairs, tokenizer, training, encoder_decoder=both)
            for pairs in (material.train, material.dev)
        )
        if facts["cut"]:
            tell(
                f"{facts['cut']:,} of {len(rows):,} examples are longer than max_source_length "
                f"{training.max_source_length} or max_target_length "
                f"{training.max_target_length}, and are cut"
            )
    curve: list[dict[str, float]] = []
    if rows:
        model, curve = fitting.fit(
            model, tokenizer, rows=rows, dev=dev, training=training, seed=seed,
            folder=work / "checkpoints",
        )  # fmt: skip
    if processes().is_main_process:
        with writing(folder):
            model.save_pretrained(folder)
            copy_tokenizer(start, folder)
    return {
        **facts,
        "parameters": model.num_parameters(),
        "examples": len(rows),
        "seconds": round(time.monotonic() - started, 1),
        "curve": curve,
    }


def _ask(recipe: Recipe, material: Material, folder: Path, max_length: int | None) -> list[Gate]:
    """Asks the model as it was written, with the arguments of its model file."""
    from transformers import AutoTokenizer

    found: list[Gate] = []
    for name, bar in recipe.gates.items():
        prompts, targets = zip(*material.gates[name], strict=True)
        # An answer may be longer than every right one, which then shows.
        ids = AutoTokenizer.from_pretrained(folder)(list(targets))["input_ids"]
        texts = answers_of(
            folder, prompts, most=max(map(len, ids)) + 8, max_length=max_length,
            batch_size=recipe.training.per_device_train_batch_size,
        )  # fmt: skip
        own = list(map(material.score, texts, targets))
        wrong = [prompt for prompt, one in zip(prompts, own, strict=True) if one < 1]
        found.append(Gate(name, len(own), sum(own) / len(own), bar, wrong[:5]))
    return found
