"""What differs between the setups of two runs, in words."""

from collections.abc import Mapping
from typing import Any

from lm_eval_ext.harness.signature import PROMPT_KEYS
from lm_eval_ext.results.files import Run
from lm_eval_ext.text import one_line

CHAT = "chat"

_YES_OR_NO = {
    CHAT: "a chat template",
    "system": "a system prompt",
}
"""Parts of a signature that a run has or has not, in words."""

_NAMES = {
    "version": "version of the task",
    "data": "source of the data",
    "sha256": "digest of the data",
    "prompt": "prompt",
    "scoring": "scoring",
    "samples": "samples",
    "shots": "demonstrations",
    "fewshot-seed": "seed of the demonstrations",
    "multiturn": "demonstrations as turns",
    "instruction": "instruction for chat models",
    "stops": "stop strings",
    "config": "configuration of the task",
    "answers": "rules for reading answers",
}
"""Other parts, in words; an option of a task has its own name."""

_LONGEST = 40
"""Characters of a setting's value."""


def differences_in_words(first: Run, second: Run, parts: Mapping[str, tuple[str, str]]) -> str:
    """Return what differs, such as ``max_gen_toks 256 / 128``.

    Args:
        first: A run.
        second: Another run on the same task.
        parts: The parts of the signatures that differ, each with both values.
    """
    words = []
    for name, (one, other) in parts.items():
        if name in _YES_OR_NO:
            words.append(_presence(_YES_OR_NO[name], one, other))
        elif name == "config":
            settings = _settings(first.config, second.config)
            words.extend(settings or [f"{_NAMES[name]} ({one} / {other})"])
        else:
            words.append(f"{_NAMES.get(name, name)} {one} / {other}")
    return ", ".join(words)


def _presence(what: str, first: str, second: str) -> str:
    """Return who has something; or that both have another one."""
    absent = {"no", "none"}
    if first in absent:
        return f"without {what} / with"
    if second in absent:
        return f"with {what} / without"
    return f"{what} ({first} / {second})"


def _settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the settings of lm-eval's task configuration that differ, each with both values."""
    words = []
    for key in PROMPT_KEYS:
        one, other = first.get(key), second.get(key)
        if one == other:
            continue
        if not (isinstance(one, dict) and isinstance(other, dict)):
            words.append(f"{key} {_shown(one)} / {_shown(other)}")
            continue
        for name in dict.fromkeys([*one, *other]):
            if one.get(name) != other.get(name):
                words.append(f"{name} {_shown(one.get(name))} / {_shown(other.get(name))}")
    return words


def _shown(value: object) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        value = ", ".join(repr(item) for item in value)
    return one_line(str(value), limit=_LONGEST)
