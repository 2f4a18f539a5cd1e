"""Tells which weights a model has without reading them, so that others get other results."""

import json
import os
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lm_eval_ext.harness.model_path import FOLDER_ARGUMENTS, READ_BY_TRANSFORMERS
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.results.files import arguments_of
from lm_eval_ext.runs.model_files import Settings
from lm_eval_ext.text import one_line

_COMMIT = re.compile(r"[0-9a-f]{40}")


def weights_digest(settings: Settings) -> str:
    """Return a digest of the weights of a model that transformers reads.

    A folder counts with the names, sizes and times of its files, which change when the model is
    trained or saved again. A name on the hub counts with its commit, if the local cache has one.

    Args:
        settings: lm-eval's options: ``model`` and ``model_args``.

    Returns:
        Eight hexadecimal digits; "" if nothing is known, as of a server.
    """
    if settings.get("model") not in READ_BY_TRANSFORMERS:
        return ""
    arguments = arguments_of(settings)
    states: dict[str, object] = {}
    for name in FOLDER_ARGUMENTS:
        value = arguments.get(name)
        if not isinstance(value, str) or not value:
            continue
        folder = Path(value)
        if folder.is_dir():
            states[name] = sorted(_files_of(folder))
        else:
            commit = _commit(value, str(arguments.get("revision") or "main"))
            if commit:
                states[name] = commit
    return digest(states) if states else ""


def _files_of(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield the files of a model's folder with their sizes, and their times in nanoseconds."""
    for file in folder.iterdir():
        if file.name.startswith(".") or not file.is_file():
            continue
        state = file.stat()
        yield file.name, state.st_size, state.st_mtime_ns


def _commit(name: str, revision: str) -> str:
    """Return the commit of a model of the hub: the revision, or what the local cache has for it.

    It is "" if the cache does not have the revision.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    file = cache / f"models--{name.replace('/', '--')}" / "refs" / revision
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def newer_format(settings: Settings) -> str:
    """Say that a folder was saved by a newer major version of transformers than the installed one.

    The older version ignores keys that it does not know, in silence: from ``rope_parameters`` of
    version 5, version 4 reads no angles, and log-probabilities differ by up to 4 nats.

    Returns:
        A line with the remedy; "" if there is no such problem, or nothing is known.
    """
    folder = arguments_of(settings).get("pretrained")
    if settings.get("model") not in READ_BY_TRANSFORMERS or not isinstance(folder, str):
        return ""
    try:
        config = json.loads((Path(folder) / "config.json").read_bytes())
        saved_by = str(config["transformers_version"])
        installed = version("transformers")
        is_newer = int(saved_by.partition(".")[0]) > int(installed.partition(".")[0])
    except (OSError, ValueError, KeyError, TypeError, PackageNotFoundError):
        return ""
    if not is_newer:
        return ""
    return (
        f"{one_line(folder, limit=200)} was saved by transformers {one_line(saved_by, limit=20)}, "
        f"and {installed} is installed, which ignores settings that it does not know, so that the "
        f"figures may be wrong; install transformers {saved_by.partition('.')[0]}"
    )
