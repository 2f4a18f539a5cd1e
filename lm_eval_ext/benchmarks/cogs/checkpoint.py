"""Weights on disk: loading a model, and growing its embeddings inside its safetensors files.

The files are edited and not saved anew from the model, so that every other tensor keeps its
bytes, its type and its place.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.cogs.embeddings import Matrix, grow
from lm_eval_ext.benchmarks.cogs.roundtrip import one_line
from lm_eval_ext.errors import OptionError

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

WEIGHT_FILES = (
    "*.safetensors", "*.safetensors.index.json", "pytorch_model*", "tf_model*", "flax_model*",
    "rust_model*", "*.gguf", "*.onnx",
)  # fmt: skip
"""Not copied as they are: without the novel tokens they would contradict the new vocabulary."""


@contextmanager
def quiet_unless_terminal() -> Iterator[None]:
    """Keeps transformers' progress bars out of files; on a terminal they stay."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def load_model(folder: Path) -> tuple[Any, set[str]]:
    """Loads a language model on the CPU in its own type; nothing is downloaded.

    Returns:
        The model, and the names of the parameters that no file has or that do not fit.

    Raises:
        OptionError: If there is none, or it is an adapter, quantised or made of several models.
    """
    config_file = folder / CONFIG
    if (folder / "adapter_config.json").is_file():
        raise OptionError(f"{folder} is an adapter; merge it into its model first")
    if not config_file.is_file():
        raise OptionError(f"{folder} has no {CONFIG}: it holds no model in the Hugging Face format")
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    try:
        if "quantization_config" in json.loads(config_file.read_text(encoding="utf-8")):
            raise OptionError(f"{folder}: the model is quantised; start from its full weights")
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model, found = kind.from_pretrained(
            folder, dtype="auto", local_files_only=True, output_loading_info=True
        )
    except OptionError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a broken file leads transformers to
        raise OptionError(f"{folder}: no model can be loaded ({one_line(error)})") from None
    if not hasattr(config, "vocab_size"):
        raise OptionError(f"{folder}: a {config.model_type} model has no vocabulary of its own")
    return model, {str(name) for name in (*found["missing_keys"], *found["mismatched_keys"])}


def write_weights(
    folder: Path, source: Path, model: Any, matrices: Sequence[Matrix], ids: Sequence[int]
) -> None:
    """Writes the weights of ``source`` with the novel tokens' rows into another folder.

    Raises:
        OptionError: If the files have the embeddings under names that the model does not have.
    """
    if not (source / WEIGHTS).is_file() and not (source / INDEX).is_file():
        with tempfile.TemporaryDirectory(dir=folder) as converted:
            model.save_pretrained(converted)
            write_weights(folder, Path(converted), model, matrices, ids)
        return
    index = json.loads((source / INDEX).read_bytes()) if (source / INDEX).is_file() else None
    names = sorted(set(index["weight_map"].values())) if index else [WEIGHTS]
    grown: set[int] = set()
    added_elements = added_bytes = 0
    for file_name in names:
        tensors, metadata = _read(source / file_name)
        places = {name: place for name in tensors for place in _places(name, matrices)}
        for name, place in places.items():
            old = tensors[name]
            tensors[name] = grow(old, ids, matrices[place].rows)
            elements = tensors[name].numel() - old.numel()
            added_elements += elements
            added_bytes += elements * old.element_size()
        grown |= set(places.values())
        if places:
            from safetensors.torch import save_file

            save_file(tensors, folder / file_name, metadata=metadata)
        else:
            shutil.copyfile(source / file_name, folder / file_name)
    if len(grown) < len(matrices):
        raise OptionError(f"{source}: the weights have no {matrices[0].names[0]} that could grow")
    if index:
        for key, added in (("total_size", added_bytes), ("total_parameters", added_elements)):
            if key in index.get("metadata", {}):
                index["metadata"][key] += added
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def write_vocabulary_size(folder: Path, size: int) -> None:
    """Sets one key of ``config.json``; where it is right already the file stays as it is."""
    file = folder / CONFIG
    config = json.loads(file.read_text(encoding="utf-8"))
    if config.get("vocab_size") != size:
        text = json.dumps(config | {"vocab_size": size}, ensure_ascii=False, indent=2)
        file.write_text(f"{text}\n", encoding="utf-8")


def _read(file: Path) -> tuple[dict[str, Any], dict[str, str] | None]:
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()  # noqa: SIM118


def _places(name: str, matrices: Sequence[Matrix]) -> list[int]:
    """Which matrix a tensor is; older files leave out the model's first name (GPT-2)."""
    return [
        place
        for place, matrix in enumerate(matrices)
        if any(own == name or own.endswith(f".{name}") for own in matrix.names)
    ]
