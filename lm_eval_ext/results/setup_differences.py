"""What differs between the setups of two runs, in words."""

from collections.abc import Mapping

from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.harness.signature import PROMPT_KEYS
from lm_eval_ext.results.files import Run
from lm_eval_ext.text import one_line

CHAT = "chat"

_YES_OR_NO = {
    CHAT: "a chat template",
    "system": "a system prompt",
    "multiturn": "demonstrations as turns of a chat template",
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
    "instruction": "instruction for chat models",
    "stops": "stop strings",
    "config": "configuration of the task",
    "answers": "rules for reading answers",
}
"""Other parts, in words; an option of a task has its own name."""

_LONGEST = 40
"""Characters of a setting's value."""


def differences_in_words(
    run: Run, other_run: Run, differences: Mapping[str, tuple[str, str]]
) -> str:
    """Return what differs, such as ``max_gen_toks 256 / 128``.

    Args:
        run: A run.
        other_run: Another run on the same task.
        differences: The parts of the signatures that differ, each with both values.
    """
    words = []
    for name, (value, other_value) in differences.items():
        if name in _YES_OR_NO:
            words.append(_presence(_YES_OR_NO[name], value, other_value))
        elif name == "config":
            settings = _settings(run.config, other_run.config)
            words.extend(settings or [f"{_NAMES[name]} ({value} / {other_value})"])
        else:
            words.append(f"{_NAMES.get(name, name)} {value} / {other_value}")
    return ", ".join(words)


def _presence(subject: str, value: str, other_value: str) -> str:
    """Return which run has something; or that both have another one."""
    absent = {"no", "none"}
    if value in absent:
        return f"without {subject} / with"
    if other_value in absent:
        return f"with {subject} / without"
    return f"{subject} ({value} / {other_value})"


def _settings(config: Keys, other_config: Keys) -> list[str]:
    """Return the settings of lm-eval's task configuration that differ, each with both values."""
    words = []
    for key in PROMPT_KEYS:
        value, other_value = config.get(key), other_config.get(key)
        if value == other_value:
            continue
        if isinstance(value, dict) and isinstance(other_value, dict):
            for name in dict.fromkeys([*value, *other_value]):
                words += _setting(name, value.get(name), other_value.get(name))
        else:
            words += _setting(key, value, other_value)
    return words


def _setting(name: str, value: object, other_value: object) -> list[str]:
    if value == other_value:
        return []
    return [f"{name} {_shown(value)} / {_shown(other_value)}"]


def _shown(value: object) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        value = ", ".join(repr(item) for item in value)
    return one_line(str(value), limit=_LONGEST)
