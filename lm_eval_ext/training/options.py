"""What ``--set`` and ``--seeds`` say."""

from collections.abc import Sequence
from typing import Any

from lm_eval_ext.errors import OptionError


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` texts as keys and values; values are YAML.

    Raises:
        OptionError: A text has no ``=``, or the value is not YAML.
    """
    import yaml

    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise OptionError(f"--set {pair}: write key=value, such as training.steps=100")
        try:
            found[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise OptionError(f"--set {pair}: the value is not YAML; quote it") from None
    return found


def parse_seeds(text: str) -> list[int]:
    """Seeds of ``0-4`` or ``0,2,7``.

    Raises:
        OptionError: A part is neither a number nor a range.
    """
    found: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise OptionError(f"--seeds {text}: write numbers and ranges, such as 0-4 or 0,2,7")
        found += range(int(first), int(last or first) + 1)
    if text and not found:
        raise OptionError(f"--seeds {text}: there is no seed in it")
    return list(dict.fromkeys(found))
