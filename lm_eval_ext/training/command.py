"""``lm-eval-ext train``: from a recipe to models that lm-eval can evaluate, with their records."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
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
    write_model_file,
)
from lm_eval_ext.training.starting import copy_tokenizer, load, start_folder

FACTS = "facts.json"
"""In a training's working folder: what is known when the weights are written."""


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
    folders, first = {"seed": str(seed)}, {}
    for name, one in recipe.first.items():
        before = read_recipe(one.recipe, filled(one.set, folders))
        place = shared / f"{name}-{digest(key_of(before, seed))}"
        if place not in known:
            known[place] = _train(before, place, seed, shared, known)
        if not known[place].learned:
            raise OptionError(f"{place} comes first and did not learn: {known[place].told()}")
        folders[name], first[name] = str(place), known[place].record["key"]
    material = prepare(recipe.source, filled(recipe.data, folders), seed)
    for name in recipe.gates:
        if name not in material.gates:
            legal = ", ".join(material.gates) or "no gates"
            raise OptionError(f"gates: the source {recipe.source} has no {name!r}; it has {legal}")
    key = key_of(recipe, seed, examples=material.digest(), first=first)
    with _alone(folder), transformers_bars(shown=False):
        if (there := finished(folder)) is not None:
            check_same(folder / RECORD, there.record["key"], key)
            # Paths in it may be those from before the folder was moved.
            record = {**there.record, "model_file": dict(material.model_file)}
            found = replace(there, record=record, reused=True)
        else:
            start = recipe.model.model_copy(update=filled({"start": recipe.model.start}, folders))
            recipe = recipe.model_copy(update={"model": start})
            found = _Job(recipe, material, folder, seed, key).run()
    if processes().is_main_process:
        shutil.rmtree(folder / WORK, ignore_errors=True)
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits while another command trains in this folder; refuses one with something else in it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / WORK / "lock")
    try:
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
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror}") from None
    processes().wait_for_everyone()
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True)
class _Job:
    """A training in this process, or in all that a launcher has started."""

    recipe: Recipe
    material: Material
    folder: Path
    seed: int
    key: Mapping[str, Any]

    def run(self) -> Trained:
        recipe, material, state = self.recipe, self.material, processes()
        work = self.folder / WORK / digest(self.key)
        for one in self.folder.glob(f"{WORK}/*/checkpoints/checkpoint-*"):
            if work not in one.parents:
                raise OptionError(
                    f"{self.folder}: another training was interrupted here; name another folder, "
                    f"or remove {one.parents[1]}"
                )
        with state.main_process_first():
            work.mkdir(parents=True, exist_ok=True)
            start = start_folder(recipe.model, material, work, self.seed)
        if not (work / FACTS).is_file():
            facts = self.fit(start, work / "checkpoints")
            if state.is_main_process:
                with atomic_text(work / FACTS) as out:
                    out.write(json.dumps(facts))
        state.wait_for_everyone()
        facts = json.loads((work / FACTS).read_text(encoding="utf-8"))
        gates = self.gates(facts["max_length"])
        record = {
            "recipe": recipe.model_dump(),
            "gates": [asdict(gate) for gate in gates],
            "pretraining_tokens": pretraining_tokens(recipe, recipe.model.start),
            "sources": dict(material.facts),
            "start": weights_of(start),
            "model_file": dict(material.model_file),
            "machine": machine(),
            "key": self.key,
            **facts,
        }
        if state.is_main_process:  # the record comes last and says that all is there
            with atomic_text(self.folder / RECORD) as out:
                out.write(json.dumps(record, indent=1, ensure_ascii=False))
        state.wait_for_everyone()
        return Trained(self.folder, gates, record)

    def fit(self, start: Path, checkpoints: Path) -> dict[str, Any]:
        """Trains, and writes the weights; returns what is known of them."""
        started = time.monotonic()
        training, material = self.recipe.training, self.material
        model, tokenizer = load(start)
        both = bool(model.config.is_encoder_decoder)
        # Of a model that only decodes, prompts and answers share the positions.
        facts: dict[str, Any] = {"max_length": training.max_source_length if both else None}
        if not material.train:
            raise OptionError(f"the source {self.recipe.source} has no example for recipe.data")
        if training.spans:
            texts = [text for _, text in material.train]
            rows, dev = batches.corrupted(texts, tokenizer, training, seed=self.seed)
        else:
            facts |= self.check_tokenizer(start, tokenizer)
            (rows, cut), (dev, _) = (
                batches.encode(pairs, tokenizer, training, encoder_decoder=both)
                for pairs in (material.train, material.dev)
            )
            facts["cut"] = cut
            _check_lengths(start, model, [*rows, *dev])
            if cut:
                tell(
                    f"{cut:,} of {len(rows):,} examples are longer than max_source_length "
                    f"{training.max_source_length} or max_target_length "
                    f"{training.max_target_length}, and are cut"
                )
        curve: list[dict[str, float]] = []
        if rows:
            model, curve = fitting.fit(
                model, tokenizer, rows=rows, dev=dev, training=training, folder=checkpoints,
                seed=self.seed,
            )  # fmt: skip
        if processes().is_main_process:
            try:
                model.save_pretrained(self.folder)
                copy_tokenizer(start, self.folder)
            except OSError as error:
                raise OptionError(f"cannot write {self.folder}: {error}") from None
        return {
            **facts,
            "parameters": model.num_parameters(),
            "examples": len(rows),
            "seconds": round(time.monotonic() - started, 1),
            "curve": curve,
        }

    def check_tokenizer(self, folder: Path, tokenizer: Any) -> dict[str, Any]:
        """Refuses a tokenizer that corrupts texts; counts lossy texts instead."""
        own = self.material
        pairs = [*own.train, *own.dev, *(pair for some in own.gates.values() for pair in some)]
        problems = batches.problems(tokenizer, pairs)
        if own.lossy:
            found = list(problems)
            return {"not_kept": {"texts": len(found), "such as": found[:1]}}
        if problem := own.problem_with(tokenizer) or next(problems, ""):
            raise OptionError(f"{folder}: the tokenizer does not keep the texts: {problem}")
        return {}

    def gates(self, max_length: int | None) -> list[Gate]:
        """Asks the model as it was written, with the arguments of its model file."""
        recipe, found = self.recipe, []
        if recipe.gates:
            _, tokenizer = load(self.folder)
            if not self.material.lossy:
                self.check_tokenizer(self.folder, tokenizer)
        for name, bar in recipe.gates.items():
            prompts, targets = zip(*self.material.gates[name], strict=True)
            # An answer may be longer than every right one, which then shows.
            most = max(map(len, tokenizer(list(targets))["input_ids"])) + 8
            texts = answers_of(
                self.folder, prompts, most=most, max_length=max_length,
                batch_size=recipe.training.per_device_train_batch_size,
            )  # fmt: skip
            own = list(map(self.material.score, texts, targets))
            wrong = [prompt for prompt, one in zip(prompts, own, strict=True) if one < 1]
            found.append(Gate(name, len(own), sum(own) / len(own), bar, wrong[:5]))
        return found


def _check_lengths(folder: Path, model: Any, rows: Sequence[batches.Row]) -> None:
    """Refuses a model that has fewer positions than the examples have tokens."""
    positions = getattr(model.config, "max_position_embeddings", None)
    longest = max(len(ids) for row in rows for ids in row.values())
    if positions and longest > positions:
        raise OptionError(
            f"{folder}: the model has {positions} positions, and an example {longest} tokens; "
            "lower max_source_length and max_target_length, or take another model"
        )
