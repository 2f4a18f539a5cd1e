"""A model's weights: loading them, and adding rows for novel tokens to its embeddings.

The initial embeddings are those of the paper's section 4.1. Safetensors files are edited instead
of saved again from the model, so that every other tensor keeps its bytes, type and position.
"""

import json
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.cogs.tokenizer_files import summary
from lm_eval_ext.errors import OptionError

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

WEIGHT_FILES = (
    "*.safetensors", "*.safetensors.index.json", "pytorch_model*", "tf_model*", "flax_model*",
    "rust_model*", "*.gguf", "*.onnx",
)  # fmt: skip
"""Not copied: they lack the novel tokens, so they would not fit the new vocabulary."""


RANDOM, AVERAGE, UNUSED = "random", "average", "unused"

INITS: Mapping[str, str] = {
    RANDOM: "drawn from the distribution of the model's own initial weights",
    AVERAGE: "the mean of all embeddings, plus noise",
    UNUSED: "rows of the embedding matrix without a token",
}

NOISE = 1e-5
"""The covariance of the noise of ``average``, as a multiple of the embeddings' covariance.

The paper adds noise "as suggested by Hewitt (2021)" without a number; this one is Hewitt's.
Without noise the model could not distinguish the 21 tokens."""

BLOCK = 4096
"""Rows converted to double precision at a time; affects memory only."""


def load_model(folder: Path) -> tuple[Any, set[str]]:
    """Loads a language model on the CPU, in its own type, from local files only.

    Returns:
        The model, and the names of parameters that are missing from the files or do not fit.

    Raises:
        OptionError: There is no model, or it is an adapter, quantised or composed of models.
    """
    config_file = folder / CONFIG
    if (folder / "adapter_config.json").is_file():
        raise OptionError(f"{folder} is an adapter; merge it into its base model first")
    if not config_file.is_file():
        raise OptionError(f"{folder} has no {CONFIG}: it is not a model in the Hugging Face format")
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    try:
        if "quantization_config" in json.loads(config_file.read_text(encoding="utf-8")):
            raise OptionError(f"{folder}: the model is quantised; use its full weights")
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model, found = kind.from_pretrained(
            folder, dtype="auto", local_files_only=True, output_loading_info=True
        )
    except OptionError:
        raise
    except Exception as error:  # noqa: BLE001 - transformers raises many types for broken files
        raise OptionError(f"{folder}: no model can be loaded ({summary(error)})") from None
    if not hasattr(config, "vocab_size"):
        raise OptionError(f"{folder}: a {config.model_type} model has no vocabulary")
    return model, {str(name) for name in (*found["missing_keys"], *found["mismatched_keys"])}


def check_init(init: str, seed: int) -> None:
    """Reports an invalid name or seed before anything is loaded.

    Raises:
        OptionError: ``init`` is not in :data:`INITS`, or the seed is out of range.
    """
    if init not in INITS:
        raise OptionError(f"no initialisation {init!r}; use {', '.join(INITS)}")
    if not 0 <= seed < 2**32:
        raise OptionError(f"seed is {seed}; it must be from 0 to {2**32 - 1}")


@dataclass(frozen=True)
class Matrix:
    """A parameter that has one row per token.

    Attributes:
        names: In the model's state; several if weights are tied.
        weight: The old parameter, a torch tensor.
        rows: The novel tokens' rows, in their order and in the parameter's type.
    """

    names: tuple[str, ...]
    weight: Any
    rows: Any


def matrices(
    model: Any, *, init: str, used: Collection[int], count: int, seed: int
) -> list[Matrix]:
    """The parameters that get rows for novel tokens, with these rows.

    Input embeddings come first, then output embeddings and their biases if they are separate
    parameters.

    Raises:
        OptionError: ``unused`` with too few unused rows.
    """
    import torch

    inputs, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    parameters = [inputs.weight]
    if outputs is not None:
        parameters += [outputs.weight, getattr(outputs, "bias", None)]
    grown: list[Matrix] = []
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in parameters:
            if parameter is None or any(matrix.weight is parameter for matrix in grown):
                continue
            if init == UNUSED:
                rows = parameter[unused_rows(len(inputs.weight), used, count)]
            elif init == AVERAGE:
                rows = _average(parameter, count)
            else:
                rows = _random(model, parameter, count, embedding=parameter is inputs.weight)
            names = [
                name
                for name, other in model.named_parameters(remove_duplicate=False)
                if other is parameter
            ]
            grown.append(Matrix(tuple(names), parameter, rows.detach().to(parameter.dtype)))
    return grown


def unused_rows(size: int, used: Collection[int], count: int) -> list[int]:
    """The first ``count`` rows of a matrix without a token.

    T5's matrix has 32,128 rows and its tokenizer 32,100 tokens, so 28 rows were not used in
    training (paper, footnote 6).

    Raises:
        OptionError: There are fewer.
    """
    rows = [row for row in range(size) if row not in used]
    if len(rows) < count:
        raise OptionError(
            f"{UNUSED} needs {count} rows of the embedding matrix without a token, "
            f"and this model has {len(rows)} of {size}; use {RANDOM} or {AVERAGE}"
        )
    return rows[:count]


def _random(model: Any, parameter: Any, count: int, *, embedding: bool) -> Any:
    """Rows of a new module that the model initialises itself."""
    from torch import nn

    if parameter.dim() == 1:  # a bias, which models initialise with zeros
        return parameter.new_zeros(count)
    width = parameter.shape[1]
    module = nn.Embedding(count, width) if embedding else nn.Linear(width, count, bias=False)
    model._init_weights(module)
    return module.weight


def _average(parameter: Any, count: int) -> Any:
    """Mean of all rows, plus noise with :data:`NOISE` times their covariance.

    A sum of the centred rows with random weights has that covariance, without a factorisation.
    """
    import torch

    matrix = parameter.reshape(len(parameter), -1)
    draws = torch.randn(count, len(matrix), dtype=torch.float64)
    total = torch.zeros(matrix.shape[1], dtype=torch.float64)
    weighted = torch.zeros(count, matrix.shape[1], dtype=torch.float64)
    for rows, weights in zip(matrix.split(BLOCK), draws.split(BLOCK, dim=1), strict=True):
        total += rows.double().sum(0)
        weighted += weights @ rows.double()
    mean = total / len(matrix)
    centred = weighted - draws.sum(1, keepdim=True) * mean
    return (mean + (NOISE / len(matrix)) ** 0.5 * centred).reshape(count, *parameter.shape[1:])


def write_weights(
    folder: Path, source: Path, model: Any, matrices: Sequence[Matrix], ids: Sequence[int]
) -> None:
    """Writes the weights of ``source`` with the novel tokens' rows into ``folder``.

    Raises:
        OptionError: No tensor in the files has the embeddings' name.
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
        raise OptionError(f"{source}: the weights have no tensor {matrices[0].names[0]}")
    if index:
        for key, added in (("total_size", added_bytes), ("total_parameters", added_elements)):
            if key in index.get("metadata", {}):
                index["metadata"][key] += added
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def write_vocabulary_size(folder: Path, size: int) -> None:
    """Sets ``vocab_size`` in ``config.json``; does not write if it is right already."""
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
    """The matrices that a tensor belongs to; older files omit the model's prefix (GPT-2)."""
    return [
        place
        for place, matrix in enumerate(matrices)
        if any(own == name or own.endswith(f".{name}") for own in matrix.names)
    ]


def grow(tensor: Any, ids: Sequence[int], rows: Any) -> Any:
    """A copy of ``tensor`` with ``rows`` at ``ids``, extended if an id is beyond its end.

    Rows after the vocabulary stay.
    """
    size = max(len(tensor), max(ids) + 1)
    grown = tensor.new_zeros(size, *tensor.shape[1:])
    grown[: len(tensor)] = tensor
    grown[list(ids)] = rows.to(tensor.dtype)
    return grown
