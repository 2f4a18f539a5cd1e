"""Where the demonstration model lies on disk, and how it gets there whole or not at all."""

import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from lm_eval_ext.errors import OptionError

RECORD_FILE = "lm_eval_ext_demo.json"


@dataclass(frozen=True)
class TrainingReport:
    """What a training run came to.

    Attributes:
        steps: Optimizer steps.
        seconds: Wall-clock time of the run, corpus and tokenizer included.
        final_loss: Mean training loss of the last steps, in nats per token.
        held_out_loss: Loss on texts that training did not see, in nats per token.
        parameters: Number of weights.
        reused: True where the folder already held this model and nothing was trained; the
            other numbers are then those of the run that trained it.
    """

    steps: int
    seconds: float
    final_loss: float
    held_out_loss: float
    parameters: int
    reused: bool = False


class Settings(BaseModel):
    """Everything that decides which model comes out; equal settings mean the same model.

    Attributes:
        version: Goes up when the training procedure changes in a way no other field shows.
        seed: Seeds the corpus and the weights.
        steps: Optimizer steps.
        batch_size: Texts per step.
        learning_rate: Peak of the one-cycle schedule.
        vocabulary: Most tokens that the tokenizer may have.
        hidden_size: Width of the residual stream.
        layers: Number of transformer blocks.
        heads: Attention heads per block.
        corpus_sha256: Digest of the corpus that ``seed`` begins and of lieder_mini.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    seed: int
    steps: int
    batch_size: int = 32
    learning_rate: float = 4e-3
    vocabulary: int = 1024
    hidden_size: int = 96
    layers: int = 3
    heads: int = 4
    corpus_sha256: str


class Record(BaseModel):
    """The content of ``lm_eval_ext_demo.json``.

    Attributes:
        settings: What the model was made from.
        report: What training it came to.
        made_with: Versions of the libraries that trained and saved it.
        files: SHA-256 (hex) of every other file of the folder, by name.
    """

    model_config = ConfigDict(extra="forbid")

    settings: Settings
    report: TrainingReport
    made_with: dict[str, str]
    files: dict[str, str]


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _is_complete(out: Path, record: Record) -> bool:
    """Whether every recorded file is there and as it was written."""
    return all(
        (out / name).is_file() and _sha256(out / name) == digest
        for name, digest in record.files.items()
    )


def check_destination(out: Path) -> None:
    """Finds out before training whether a folder can be made at ``out``.

    Raises:
        OptionError: Some part of the path is a file or may not be written.
    """
    nearest = next(path for path in (out.parent, *out.parent.parents) if path.exists())
    if not nearest.is_dir():
        raise OptionError(f"cannot write a model to {out}: {nearest} is not a folder")
    try:
        # Trying is the only sure test: permissions do not tell of every kind of folder.
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.try-"):
            pass
    except OSError as error:
        raise OptionError(f"cannot write a model to {out}: {error.strerror}") from None


def find(out: Path, settings: Settings) -> TrainingReport | None:
    """Looks whether ``out`` already holds the model that ``settings`` describe.

    Args:
        out: The model's folder.
        settings: What the model is to be made from.

    Returns:
        The report of the run that trained it, marked ``reused``; None where ``out`` is free
        (absent or an empty folder).

    Raises:
        OptionError: ``out`` is a file, another model or anything else: it stays as it is.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    remedy = "nothing was changed; name another folder or remove this one first"
    if not out.is_dir():
        raise OptionError(f"{out} exists and is not a folder: {remedy}")
    try:
        record = Record.model_validate_json((out / RECORD_FILE).read_bytes())
    except (OSError, ValidationError):
        raise OptionError(f"{out} exists and is no demonstration model: {remedy}") from None
    if not _is_complete(out, record):
        raise OptionError(f"{out} holds a damaged demonstration model: {remedy}")
    if record.settings != settings:
        made = f"seed {record.settings.seed}, {record.settings.steps} steps"
        raise OptionError(
            f"{out} holds a demonstration model made from other settings or by another "
            f"version ({made}): {remedy}"
        )
    return replace(record.report, reused=True)


def publish(
    out: Path,
    settings: Settings,
    report: TrainingReport,
    made_with: dict[str, str],
    write: Callable[[Path], None],
) -> TrainingReport:
    """Saves a model so that ``out`` holds all of it or does not change.

    The files go into a hidden folder beside ``out`` (a rename works only within one file
    system), which then takes its place.

    Args:
        out: The model's folder; absent or empty.
        settings: What the model was made from.
        report: What training it came to.
        made_with: Versions of the libraries that trained it.
        write: Saves the model and its tokenizer into the folder that it is given.

    Returns:
        ``report``, or the other's where somebody else put the same model there meanwhile.

    Raises:
        OptionError: Something else came to ``out`` meanwhile, or it cannot be written.
    """
    partial = out.with_name(f".{out.name}.partial-{uuid.uuid4().hex}")
    try:
        partial.mkdir(parents=True)
        write(partial)
        files = {file.name: _sha256(file) for file in sorted(partial.iterdir())}
        record = Record(settings=settings, report=report, made_with=made_with, files=files)
        (partial / RECORD_FILE).write_text(record.model_dump_json(indent=2), encoding="utf-8")
        try:
            if out.is_dir():
                out.rmdir()  # empty, or it fails; Windows renames onto no folder at all
            partial.rename(out)
        except OSError:
            found = find(out, settings)
            if found is None:
                raise
            return found
    except OSError as error:
        raise OptionError(f"cannot write a model to {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return report
