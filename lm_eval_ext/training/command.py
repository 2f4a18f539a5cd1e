"""``lm-eval-ext train``: from a recipe to models that lm-eval can evaluate, with their records."""

import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from lm_eval_ext.atomic import atomic_text, sha256_of_json
from lm_eval_ext.errors import OptionError, writing
from lm_eval_ext.results.files import FAILED_TRAINING
from lm_eval_ext.text import one_line
from lm_eval_ext.training import fitting
from lm_eval_ext.training.progress import Activity, tell, tell_before_loading
from lm_eval_ext.training.recipe import (
    Material,
    Recipe,
    Settings,
    fill_options,
    optimizer_settings,
    plan_models,
    prepare,
)
from lm_eval_ext.training.starting import generate_answers, load, processes, start_folder
from lm_eval_ext.training.token_ids import (
    EncodedExample,
    corrupt_text,
    encode_pairs,
    tokenizer_problems,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RECORD = "training.json"
WORK, FIRST, MODELS = ".training", "first", "models"
_NO_WEIGHT_KEYS = {"title", "paper", "departures", "tasks", "model_file", "vary", "seeds"}
"""Keys of a recipe that change no weight."""

LIBRARIES = ("lm-eval-ext", "lm_eval", "accelerate", "tokenizers", "torch", "transformers")
"""The libraries whose versions are in the record."""


class GateResult(TypedDict):
    """The answers to a set of examples.

    Attributes:
        name: The set's name.
        examples: How many it has.
        score: The mean score of the answers, from 0 to 1.
        bar: The least score that passes.
    """

    name: str
    examples: int
    score: float
    bar: float


NotKept = TypedDict("NotKept", {"texts": int, "such as": list[str]})
"""How many texts a tokenizer does not keep, and the first of them."""


class Record(TypedDict, total=False):
    """The content of ``training.json``; it has ``curve`` after the training, then ``gates``.

    Attributes:
        key: All that decides about the weights.
        processes: The number of processes that share the training.
        recipe: The recipe with all its values.
        sources: The origin of the examples.
        start: The folder of the model that training started from.
        versions: Of the libraries.
        device: The kind of processor.
        arguments: Arguments of lm-eval's ``hf`` model that the model needs.
        not_kept: The texts that the tokenizer does not keep.
        cut: How many examples were cut.
        parameters: The number of weights.
        seconds: The time that it took.
        curve: A record for each point at which a loss was computed.
        gates: The answers to the sets of examples.
        model_file: Further keys of the model file.
    """

    key: dict[str, object]
    processes: int
    recipe: dict[str, object]
    sources: dict[str, object]
    start: str
    versions: dict[str, str]
    device: str
    arguments: dict[str, int]
    not_kept: NotKept
    cut: int
    parameters: int
    seconds: float
    curve: list[dict[str, float]]
    gates: list[GateResult]
    model_file: Mapping[str, object]


class Trained(NamedTuple):
    """A finished training.

    Attributes:
        folder: The model's.
        record: The content of ``training.json``.
        model_file: For ``lm-eval-ext run --models``; None for a training that others need first.
    """

    folder: Path
    record: Record
    model_file: Path | None = None

    @property
    def has_learned(self) -> bool:
        """Whether every gate is passed."""
        return all(gate["score"] >= gate["bar"] for gate in self.record["gates"])

    def gates_text(self) -> str:
        """Return the gates and what they reached."""
        return ", ".join(
            f"{gate['name']} {100 * gate['score']:.1f} % of {gate['examples']:,} "
            f"(at least {100 * gate['bar']:g} %)"
            for gate in self.record["gates"]
        )

    def summary(self) -> str:
        """Return a line about the training."""
        if not self.record["gates"]:
            outcome = "no gates"
        elif self.has_learned:
            outcome = f"learned: {self.gates_text()}"
        else:
            outcome = f"DID NOT LEARN: {self.gates_text()}"
        return f"{self.folder}: trained in {self.record['seconds']:.0f} s; {outcome}"


def plan(name: str, settings: Settings | None) -> dict[str, Recipe]:
    """Return the models of a recipe, with the keys of ``training`` checked, too.

    Raises:
        OptionError: The recipe or a setting is wrong.
    """
    models = plan_models(name, settings)
    if "torch" not in sys.modules:
        tell_before_loading("loading the libraries (torch and transformers)")
    for recipe in models.values():
        for training_recipe in (*recipe.first_recipes().values(), recipe):
            fitting.training_arguments(training_recipe, Path())
    return models


def train(name: str, out: Path, *, settings: Settings | None = None) -> list[Trained]:
    """Train a recipe's models, those that are not there yet.

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
    if optimizer_settings(name, settings or {}):
        rate = next(iter(models.values())).training.learning_rate
        tell(
            "the recipe's optimizer is for its new model; the model that training starts from is "
            f"trained by AdamW with a learning rate of {rate:g} (--set training.optim=... "
            "and --set training.learning_rate=... choose others)"
        )
    out = out.expanduser().absolute()
    finished: dict[Path, Trained] = {}
    trained_models = []
    for number, (model, recipe) in enumerate(models.items(), 1):
        tell(f"[{number}/{len(models)}] {recipe.title}")
        trained = _train(recipe, out / model, out / FIRST, finished)
        file = out / MODELS / f"{model}.yaml"
        write_model_file(file, recipe, trained)
        trained_models.append(trained._replace(model_file=file))
    return trained_models


def _train(
    recipe: Recipe, folder: Path, first_folder: Path, finished: dict[Path, Trained]
) -> Trained:
    """Train a recipe, after the trainings that come first.

    Args:
        recipe: The recipe.
        folder: The model's.
        first_folder: For the trainings that come first.
        finished: The trainings of this call that came first; it gets those that this one needs.
    """
    folders = {}
    first_keys = {}
    for name, first_recipe in recipe.first_recipes().items():
        digest = sha256_of_json(training_key(first_recipe))[:12]
        trained_folder = first_folder / f"{name}-{digest}"
        if trained_folder not in finished:
            finished[trained_folder] = _train(first_recipe, trained_folder, first_folder, finished)
        trained = finished[trained_folder]
        if not trained.has_learned:
            raise OptionError(
                f"{trained_folder} comes first and did not learn: {trained.gates_text()}"
            )
        folders[name] = str(trained_folder)
        first_keys[name] = trained.record["key"]
    with Activity("preparing the examples"):
        material = prepare(recipe.source, fill_options(recipe.data, folders), recipe.seed)
        key = training_key(recipe, examples=material.digest(), first=first_keys)
    from transformers.utils import logging

    logging.disable_progress_bar()
    # It warns of tied weights that a checkpoint has once, and of file systems.
    logging.set_verbosity_error()
    begun: Record = {"key": key, "processes": processes().num_processes}
    with _lock_folder(folder) as work:
        record = record_of(folder) or begun
        check_same(folder, record["key"], key)
        if "curve" not in record:
            check_same(folder, record, begun)
            start = fill_options(recipe.model.start, folders)
            record = _train_model(recipe, start, material, work, begun)
        if "gates" not in record:
            record["gates"] = _score_gates(recipe, material, folder, record["arguments"])
        record["model_file"] = material.model_file  # paths in it may have changed
        _write_record(folder, record)
    return Trained(folder, record)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[Path]:
    """Yield a training's working folder, as soon as no other command trains in its folder.

    Raises:
        OptionError: Something else is in the folder, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    work = folder / WORK
    with writing(folder):
        names = {path.name for path in folder.glob("*")}
        if names and RECORD not in names and WORK not in names:
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


def _train_model(
    recipe: Recipe, start: str, material: Material, work: Path, begun: Record
) -> Record:
    """Train a model and write its weights.

    Args:
        recipe: The recipe.
        start: The folder or name of an existing model; "" for a new one.
        material: The examples.
        work: The working folder, which is in the model's.
        begun: The first keys of the record.

    Returns:
        The record, which still lacks the gates.

    Raises:
        SystemExit: SIGTERM or SIGINT came; the same command continues.
    """
    started_at = time.monotonic()
    folder = work.parent
    if not material.train:
        raise OptionError(f"the source {recipe.source} has no example for recipe.data")
    with Activity("loading the model"), processes().main_process_first():
        model_folder = start_folder(recipe.model, start, material, work, recipe.seed)
        model, tokenizer = load(model_folder)
    is_encoder_decoder = model.config.is_encoder_decoder
    arguments = {}
    if is_encoder_decoder:
        # In a model that only decodes, prompts and answers share the positions.
        arguments["max_length"] = recipe.training.max_source_length
    facts: Record = {"arguments": arguments}
    with Activity("encoding the examples"):
        examples, dev_examples = _encode_material(
            recipe, material, tokenizer, facts,
            model_folder=model_folder, is_encoder_decoder=is_encoder_decoder,
        )  # fmt: skip
    _write_record(folder, begun)  # the checkpoints are of this training
    fit = fitting.fit(model, tokenizer, examples, dev_examples, recipe, folder=work / "checkpoints")
    if processes().is_main_process:
        with writing(folder):
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    record: Record = {
        "recipe": recipe.model_dump(),
        "sources": dict(material.facts),
        "start": str(model_folder),
        "versions": {library: version(library) for library in LIBRARIES},
        "device": str(processes().device),
        **begun,
        **facts,
        "parameters": model.num_parameters(),
        "seconds": round(time.monotonic() - started_at, 1),
        "curve": fit.curve,
    }
    _write_record(folder, record)
    if fit.signal is not None:
        tell("stopped after the last step; the same command asks the gates")
        raise SystemExit(128 + fit.signal)
    return record


def _encode_material(
    recipe: Recipe,
    material: Material,
    tokenizer: "PreTrainedTokenizerBase",
    facts: Record,
    *,
    model_folder: Path,
    is_encoder_decoder: bool,
) -> tuple[Sequence[EncodedExample], Sequence[EncodedExample]]:
    """Return the examples to train on and those of the development set, as token ids.

    Args:
        recipe: The recipe.
        material: The examples as texts.
        tokenizer: The model's.
        facts: Gets the numbers of texts that are not kept and of examples that are cut.
        model_folder: The folder that the model is from.
        is_encoder_decoder: Whether the model is one.

    Raises:
        OptionError: The tokenizer does not keep the texts, or there are too few.
    """
    training = recipe.training
    if training.spans:
        return corrupt_text(
            (text for _, text in material.train),
            tokenizer,
            training.spans,
            training.batch * (training.max_steps or 1),
            recipe.seed,
            dev_limit=training.dev_limit,
        )
    problems = _tokenizer_problems(material, tokenizer, model_folder)
    facts["not_kept"] = {"texts": len(problems), "such as": problems[:1]}
    examples, facts["cut"] = encode_pairs(
        material.train, tokenizer, training, is_encoder_decoder=is_encoder_decoder
    )
    dev_examples, _ = encode_pairs(
        material.dev[: training.dev_limit],
        tokenizer,
        training,
        is_encoder_decoder=is_encoder_decoder,
    )
    if facts["cut"]:
        tell(
            f"{facts['cut']:,} of {len(examples):,} examples are longer than max_source_length "
            f"{training.max_source_length} or max_target_length {training.max_target_length}, "
            "and are cut"
        )
    return examples, dev_examples


def _tokenizer_problems(
    material: Material, tokenizer: "PreTrainedTokenizerBase", model_folder: Path
) -> list[str]:
    """Return which texts a tokenizer changes.

    Raises:
        OptionError: It changes one, and the material is not lossy.
    """
    pairs = [*material.train, *material.dev]
    for gate_pairs in material.gates.values():
        pairs += gate_pairs
    pairs += material.asked
    problems = list(tokenizer_problems(tokenizer, pairs))
    if problems and not material.lossy:
        raise OptionError(f"{model_folder}: the tokenizer does not keep the texts: {problems[0]}")
    if problems:
        tell(
            f"the tokenizer does not keep {len(problems):,} of {len(pairs):,} texts: {problems[0]}"
        )
    return problems


def _score_gates(
    recipe: Recipe, material: Material, folder: Path, model_args: Mapping[str, int]
) -> list[GateResult]:
    """Ask the model as it was written, with the arguments of its model file."""
    gates: list[GateResult] = []
    for name, bar in recipe.gates.items():
        prompts, targets = zip(*material.gates[name], strict=True)
        with Activity(f"answering the {len(prompts):,} examples of the gate {name}"):
            answers = generate_answers(
                folder, prompts, max_gen_toks=material.max_gen_toks,
                batch_size=recipe.training.per_device_train_batch_size, **model_args,
            )  # fmt: skip
        score = fmean(map(material.score, answers, targets))
        gates.append({"name": name, "examples": len(prompts), "score": score, "bar": bar})
    return gates


def training_key(recipe: Recipe, **inputs: object) -> dict[str, object]:
    """Return all that decides about the weights: the recipe, and digests of its inputs."""
    recipe_keys = recipe.model_dump(exclude=_NO_WEIGHT_KEYS)
    # Records that were written before this key existed lack it, and are of the whole set.
    if recipe.training.dev_limit is None:
        del recipe_keys["training"]["dev_limit"]
    return {"recipe": recipe_keys, **inputs}


def check_same(
    folder: Path, previous_keys: Mapping[str, object], current_keys: Mapping[str, object]
) -> None:
    """Refuse to take for done what another recipe trained.

    Args:
        folder: The model's, for the error.
        previous_keys: The keys of the training that is there.
        current_keys: The keys of this one.

    Raises:
        OptionError: They differ; the line has the first difference.
    """
    lines_before, lines_now = (
        json.dumps(keys, indent=0, ensure_ascii=False).splitlines()
        for keys in (previous_keys, current_keys)
    )
    for line_before, line_now in zip(lines_before, lines_now, strict=False):
        if line_before != line_now:
            raise OptionError(
                f"{folder}: another training lies here, with {one_line(line_before, limit=80)} "
                f"instead of {one_line(line_now, limit=80)}; name another folder, or remove this "
                "one"
            )


def _write_record(folder: Path, record: Record) -> None:
    """Write a record, once for all processes."""
    if processes().is_main_process:
        with atomic_text(folder / RECORD) as file:
            json.dump(record, file, indent=1, ensure_ascii=False)
    processes().wait_for_everyone()


def record_of(folder: Path) -> Record:
    """Return the record of a training, with ``gates`` if it is finished; {} before its start."""
    file = folder / RECORD
    if not file.is_file():
        return {}
    record: Record = json.loads(file.read_bytes())
    return record


def write_model_file(file: Path, recipe: Recipe, trained: Trained) -> None:
    """Write a model file for ``lm-eval-ext run``."""
    import yaml

    record = trained.record
    content: dict[str, object] = {
        "model": "hf",
        "model_args": {"pretrained": str(trained.folder), **record["arguments"]},
        "display_name": recipe.title,
        "size": record["parameters"],
        "batch_size": recipe.training.per_device_train_batch_size,
        **record["model_file"],
        **recipe.model_file,
    }
    if not trained.has_learned:
        content[FAILED_TRAINING] = trained.gates_text()
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(file) as out:
        yaml.safe_dump(content, out, allow_unicode=True, sort_keys=False)
