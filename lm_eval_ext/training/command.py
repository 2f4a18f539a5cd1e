"""``lm-eval-ext train``: from a recipe to models that lm-eval can evaluate, with their records."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from lm_eval_ext.atomic import atomic_text, sha256_of_json
from lm_eval_ext.errors import OptionError, writing
from lm_eval_ext.results.files import FAILED_TRAINING
from lm_eval_ext.text import one_line
from lm_eval_ext.training import fitting
from lm_eval_ext.training.fitting import tell
from lm_eval_ext.training.recipe import (
    Material,
    Recipe,
    filled,
    planned,
    prepare,
)
from lm_eval_ext.training.starting import answers_of, load, processes, start_folder

RECORD = "training.json"
WORK, FIRST, MODELS = ".training", "first", "models"
_WORDS_ONLY = {"title", "paper", "departures", "tasks", "model_file", "vary", "seeds"}
"""Keys of a recipe that change no weight."""

LIBRARIES = ("lm-eval-ext", "lm_eval", "accelerate", "tokenizers", "torch", "transformers")
"""Whose versions are in the record."""


class Trained(NamedTuple):
    """A finished training.

    Attributes:
        folder: The model's.
        record: The content of ``training.json``. Each of its ``gates`` has the ``name`` of a set of
            examples, how many ``examples`` it has, the mean ``score`` of the answers (0 to 1), and
            the ``bar``, the least score that passes.
        model_file: For ``lm-eval-ext run --models``; None for a training that others need first.
    """

    folder: Path
    record: Mapping[str, Any]
    model_file: Path | None = None

    @property
    def learned(self) -> bool:
        """Whether every gate is passed."""
        return all(gate["score"] >= gate["bar"] for gate in self.record["gates"])

    def told(self) -> str:
        """The gates and what they reached."""
        return ", ".join(
            f"{gate['name']} {100 * gate['score']:.1f} % of {gate['examples']:,} "
            f"(at least {100 * gate['bar']:g} %)"
            for gate in self.record["gates"]
        )

    def summary(self) -> str:
        """A line about it."""
        state = "learned: " if self.learned else "DID NOT LEARN: "
        told = state + self.told() if self.record["gates"] else "no gates"
        return f"{self.folder}: trained in {self.record['seconds']:.0f} s; {told}"


def plan(name: str, settings: Mapping[str, Any] | None) -> dict[str, Recipe]:
    """The models of a recipe, as :func:`planned`, with the keys of ``training`` checked, too."""
    models = planned(name, settings)
    for recipe in models.values():
        for one in (*recipe.before().values(), recipe):
            fitting.arguments_of(one, Path())
    return models


def train(name: str, out: Path, *, settings: Mapping[str, Any] | None = None) -> list[Trained]:
    """Trains a recipe's models, those that are not there yet.

    Under ``accelerate launch``, all processes call it and share each training.

    Args:
        name: The recipe: a file, or the name of one that ships.
        out: Gets a folder for each model. Model files lie in ``models``, and trainings that come
            first in ``first``, each once for all that need it.
        settings: Replaces values of the recipe, by key.

    Raises:
        OptionError: Recipe, model or folder are wrong, or the disk is full.
        DataError: Data are missing.
    """
    models = plan(name, settings)
    out = out.expanduser().absolute()
    known: dict[Path, Trained] = {}
    found = []
    for place, (model, recipe) in enumerate(models.items(), 1):
        tell(f"[{place}/{len(models)}] {recipe.title}")
        trained = _train(recipe, out / model, out / FIRST, known)
        file = out / MODELS / f"{model}.yaml"
        write_model_file(file, recipe, trained)
        found.append(trained._replace(model_file=file))
    return found


def _train(recipe: Recipe, folder: Path, shared: Path, known: dict[Path, Trained]) -> Trained:
    """Trains what comes first, then this; ``known`` are those of this call."""
    folders = {}
    first = {}
    for name, before in recipe.before().items():
        place = shared / f"{name}-{sha256_of_json(key_of(before))[:12]}"
        if place not in known:
            known[place] = _train(before, place, shared, known)
        if not known[place].learned:
            raise OptionError(f"{place} comes first and did not learn: {known[place].told()}")
        folders[name], first[name] = str(place), known[place].record["key"]
    material = prepare(recipe.source, filled(recipe.data, folders), recipe.seed)
    key = key_of(recipe, examples=material.digest(), first=first)
    from transformers.utils import logging

    logging.disable_progress_bar()
    # It warns of tied weights that a checkpoint has once, and of file systems.
    logging.set_verbosity_error()
    begun = {"key": key, "processes": processes().num_processes}
    with _alone(folder) as work:
        record = record_of(folder) or begun
        check_same(folder, record["key"], key)
        if "curve" not in record:
            check_same(folder, record, begun)
            start = filled(recipe.model.start, folders)
            record = _fit(recipe, start, material, work, begun)
        if "gates" not in record:
            record["gates"] = _ask(recipe, material, folder, record["arguments"])
        record["model_file"] = material.model_file  # paths in it may have changed
        _write(folder, record)
    return Trained(folder, record)


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """Yields a training's working folder, as soon as no other command trains in its folder.

    Raises:
        OptionError: Something else is in the folder, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    lock, work = FileLock(folder.with_name(f".{folder.name}.lock")), folder / WORK
    with writing(folder):
        there = {path.name for path in folder.glob("*")}
        if there and not there & {RECORD, WORK}:
            raise OptionError(f"{folder} is not empty and holds no training; name another folder")
        if processes().is_main_process:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                tell(f"{folder}: another process trains here; waiting for it")
                lock.acquire()
            if not record_of(folder):  # what is there may be by another recipe
                shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True, exist_ok=True)
    processes().wait_for_everyone()
    try:
        yield work
        if processes().is_main_process:
            shutil.rmtree(work)
    finally:
        lock.release()


def _fit(
    recipe: Recipe, start: str, material: Material, work: Path, begun: Mapping[str, Any]
) -> dict[str, Any]:
    """Trains, and writes the weights; returns the record, which still lacks the gates."""
    started, training, folder = time.monotonic(), recipe.training, work.parent
    with processes().main_process_first():
        begin = start_folder(recipe.model, start, material, work, recipe.seed)
    model, tokenizer = load(begin)
    both = model.config.is_encoder_decoder
    # Of a model that only decodes, prompts and answers share the positions.
    facts: dict[str, Any] = {
        "arguments": {"max_length": training.max_source_length} if both else {}
    }
    if not material.train:
        raise OptionError(f"the source {recipe.source} has no example for recipe.data")
    if training.spans:
        rows, dev = fitting.corrupted(
            (text for _, text in material.train),
            tokenizer,
            training.spans,
            training.batch * (training.max_steps or 1),
            recipe.seed,
        )
    else:
        # A tokenizer that corrupts texts is refused; that of lossy texts is counted.
        gates = (pair for some in material.gates.values() for pair in some)
        texts = [*material.train, *material.dev, *gates, *material.asked]
        lost = list(fitting.problems(tokenizer, texts))
        if lost and not material.lossy:
            raise OptionError(f"{begin}: the tokenizer does not keep the texts: {lost[0]}")
        facts["not_kept"] = {"texts": len(lost), "such as": lost[:1]}
        if lost:
            tell(f"the tokenizer does not keep {len(lost):,} of {len(texts):,} texts: {lost[0]}")
        (rows, facts["cut"]), (dev, _) = (
            fitting.encode(pairs, tokenizer, training, encoder_decoder=both)
            for pairs in (material.train, material.dev)
        )
        if facts["cut"]:
            tell(
                f"{facts['cut']:,} of {len(rows):,} examples are longer than max_source_length "
                f"{training.max_source_length} or max_target_length "
                f"{training.max_target_length}, and are cut"
            )
    _write(folder, begun)  # the checkpoints are of this training
    curve = fitting.fit(model, tokenizer, rows, dev, recipe, folder=work / "checkpoints")
    if processes().is_main_process:
        with writing(folder):
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    record = {
        "recipe": recipe.model_dump(),
        "sources": dict(material.facts),
        "start": str(begin),
        "versions": {name: version(name) for name in LIBRARIES},
        "device": str(processes().device),
        **begun,
        **facts,
        "parameters": model.num_parameters(),
        "seconds": round(time.monotonic() - started, 1),
        "curve": curve,
    }
    _write(folder, record)
    return record


def _ask(
    recipe: Recipe, material: Material, folder: Path, arguments: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Asks the model as it was written, with the arguments of its model file."""
    found = []
    for name, bar in recipe.gates.items():
        prompts, targets = zip(*material.gates[name], strict=True)
        texts = answers_of(
            folder, prompts, most=material.max_gen_toks,
            batch_size=recipe.training.per_device_train_batch_size, **arguments,
        )  # fmt: skip
        score = fmean(map(material.score, texts, targets))
        found.append({"name": name, "examples": len(prompts), "score": score, "bar": bar})
    return found


def key_of(recipe: Recipe, **more: Any) -> dict[str, Any]:
    """All that decides about the weights."""
    return {"recipe": recipe.model_dump(exclude=_WORDS_ONLY), **more}


def check_same(folder: Path, *keys: Mapping[str, Any]) -> None:
    """Refuses to take for done what another recipe trained, and says what differs first."""
    lines = (json.dumps(key, indent=0, ensure_ascii=False).splitlines() for key in keys)
    for was, is_ in zip(*lines, strict=False):
        if was != is_:
            raise OptionError(
                f"{folder}: another training lies here, with {one_line(was, limit=80)} instead of "
                f"{one_line(is_, limit=80)}; name another folder, or remove this one"
            )


def _write(folder: Path, record: Mapping[str, Any]) -> None:
    """Writes a record, once for all processes."""
    if processes().is_main_process:
        with atomic_text(folder / RECORD) as out:
            json.dump(record, out, indent=1, ensure_ascii=False)
    processes().wait_for_everyone()


def record_of(folder: Path) -> dict[str, Any]:
    """The record of a training, with ``gates`` if it is finished; empty before its first step."""
    file = folder / RECORD
    return json.loads(file.read_bytes()) if file.is_file() else {}


def write_model_file(file: Path, recipe: Recipe, trained: Trained) -> None:
    """A model file for ``lm-eval-ext run``."""
    import yaml

    record = trained.record
    content: dict[str, Any] = {
        "model": "hf",
        "model_args": {"pretrained": str(trained.folder), **record["arguments"]},
        "display_name": recipe.title,
        "size": record["parameters"],
        "batch_size": recipe.training.per_device_train_batch_size,
        **record["model_file"],
        **recipe.model_file,
    }
    if not trained.learned:
        content[FAILED_TRAINING] = trained.told()
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(file) as out:
        yaml.safe_dump(content, out, allow_unicode=True, sort_keys=False)
