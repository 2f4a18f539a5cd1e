"""What differs between the setups of several models on a task, in words."""

from collections.abc import Iterable, Mapping
from itertools import chain

from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.harness.signature import PROMPT_KEYS
from lm_eval_ext.results.files import Run
from lm_eval_ext.text import named_briefly, one_line

CHAT = "chat"

DOCUMENTS = "documents"
"""The number of documents that a task has, which is no part of a signature."""

_ABSENT = ("no", "none")
"""Values of a part that a run does not have."""

_FEATURES = {
    CHAT: "chat template",
    "system": "system prompt",
    "multiturn": "demonstrations as chat turns",
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


def settings_of_models(runs: Mapping[str, Run], parts: Mapping[str, Mapping[str, str]]) -> str:
    """Return the settings that differ, behind the models that have them.

    For example ``a, b: max_gen_toks 256; c: max_gen_toks 128``.

    Args:
        runs: The runs on one task, by model.
        parts: By model, the parts of its signature that count.

    Returns:
        "" if no part differs.
    """
    names = chain.from_iterable(parts.values())
    words_of: dict[str, list[str]] = {model: [] for model in runs}
    for name in dict.fromkeys(names):
        values = {model: parts[model].get(name, "none") for model in runs}
        if len(set(values.values())) == 1:
            continue
        words = _words_of_part(name, values, runs)
        for model in runs:
            words_of[model] += words[model]
    if not any(words_of.values()):
        return ""
    models_of: dict[str, list[str]] = {}
    for model, words_of_model in words_of.items():
        models_of.setdefault(", ".join(words_of_model), []).append(model)
    groups = []
    has_lists = False
    for settings, models in models_of.items():
        names_of_group = named_briefly(models)
        has_lists = has_lists or "; " in names_of_group
        groups.append(f"{names_of_group}: {settings}")
    return (" / " if has_lists else "; ").join(groups)


def _words_of_part(
    name: str, values: Mapping[str, str], runs: Mapping[str, Run]
) -> dict[str, list[str]]:
    """Return by model what it has of a part of the signature that differs."""
    if name in _FEATURES:
        present_values = {value for value in values.values() if value not in _ABSENT}
        with_digest = len(present_values) > 1
        if name == CHAT and any(value in _ABSENT for value in values.values()):
            # Models of two makers have two templates; that matters only where all have one.
            with_digest = False
        words_of = {}
        for model, value in values.items():
            feature = _feature(_FEATURES[name], value, with_digest=with_digest)
            words_of[model] = [feature]
        return words_of
    if name == "config":
        settings = _differing_settings({model: run.config for model, run in runs.items()})
        if any(settings.values()):
            return settings
    subject = _NAMES.get(name, name)
    return {model: [f"{subject} {value}"] for model, value in values.items()}


def _feature(subject: str, value: str, *, with_digest: bool) -> str:
    """Return whether a run has something, and if need be which."""
    if value in _ABSENT:
        return f"no {subject}"
    return f"{subject} {value}" if with_digest else subject


def _differing_settings(configs: Mapping[str, Keys]) -> dict[str, list[str]]:
    """Return by model the settings of lm-eval's task configuration that differ."""
    settings = {model: _flat(config) for model, config in configs.items()}
    names = dict.fromkeys(chain.from_iterable(settings.values()))
    words_of: dict[str, list[str]] = {model: [] for model in configs}
    for name in names:
        shown = {model: _shown(settings[model].get(name)) for model in configs}
        if not _are_equal(settings[model].get(name) for model in configs):
            for model in configs:
                words_of[model].append(f"{name} {shown[model]}")
    return words_of


def _flat(config: Keys) -> dict[str, object]:
    """Return the settings of a task configuration by name; those of a mapping one by one."""
    settings: dict[str, object] = {}
    for key in PROMPT_KEYS:
        value = config.get(key)
        if isinstance(value, dict):
            settings |= value
        elif value is not None:
            settings[key] = value
    return settings


def _are_equal(values: Iterable[object]) -> bool:
    reference, *rest = values
    return all(other == reference for other in rest)


def _shown(value: object) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        value = ", ".join(repr(item) for item in value)
    return one_line(str(value), limit=_LONGEST)
