"""Keys of ``--metadata``: which are ours, and which look like ours and are none.

lm-eval gives every task the whole of ``--metadata`` and ``--model_args``, so a key that nobody
knows is no error there: a misspelt seed would run with the published words. What a benchmark
knows is what its loading functions declare (:mod:`.loading`); no other list is kept. Keys that
look like none of ours belong to a model or to another task, and pass.
"""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon.fresh import KEY as FRESH
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_LIKE = 0.85
"""Similarity (difflib's ratio) from which a key counts as a misspelt one of ours."""

_declared: dict[str, dict[str, None]] = {}


def declare(prefix: str, keys: Iterable[str]) -> None:
    """Notes what a loading function takes; ``prefix`` is its benchmark's, such as ``cogs_``."""
    _declared.setdefault(prefix, {}).update(dict.fromkeys(keys))


def prefixes() -> tuple[str, ...]:
    """The prefix of every benchmark that ships, and of what else has declared one."""
    for file in Path(tasks_folder()).glob("*.yaml"):
        _import_loaders(file.stem)
    return tuple(_declared)


def keys_of(*prefixes: str) -> list[str]:
    """All keys of benchmarks, those of all of their loading functions."""
    for prefix in prefixes:
        _import_loaders(prefix.rstrip("_"))
    return list(dict.fromkeys(key for prefix in prefixes for key in _declared.get(prefix, ())))


@cache
def _import_loaders(benchmark: str) -> None:
    """Imports the loading functions that a benchmark's task file names; they declare their keys."""
    file = Path(tasks_folder(), f"{benchmark}.yaml")
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for module in re.findall(r"\bcustom_dataset: (?:&\w+ )?!function ([\w.]+)\.\w+", text):
        import_module(module)


def nearest(key: str, among: Collection[str]) -> str | None:
    """The key of ours that a key looks like; None for somebody else's key.

    A key with the prefix of a benchmark is one of its keys, however far the rest is from them.

    Args:
        key: As the user wrote it.
        among: The prefixes of the benchmarks that may be meant.
    """
    plain = re.sub(r"[^a-z0-9]+", "_", key.casefold()).strip("_")
    own = [prefix for prefix in among if plain.startswith(prefix)]
    legal = keys_of(*(own or among))
    found = get_close_matches(plain, legal, n=1, cutoff=0 if own else _LIKE)
    # Two letters of a short key that changed places make it less similar than that.
    found += [one for one in legal if sorted(one) == sorted(plain)]
    return found[0] if found else None


def check_own(given: Iterable[object], prefix: str) -> None:
    """Refuses keys that look like a benchmark's and are none of them.

    Raises:
        OptionError: With the nearest legal key and all legal ones.
    """
    legal = keys_of(prefix)
    names = [key for key in given if isinstance(key, str) and key not in legal]
    wrong = {key: near for key in names if (near := nearest(key, [prefix]))}
    if wrong:
        raise OptionError(_refused(wrong, legal))


def check_run(
    given: Iterable[object],
    chosen: Collection[str],
    *,
    others: bool,
    taken: Collection[str] | None = None,
) -> None:
    """Refuses misspelt keys of a run, and warns of those that no chosen task uses.

    Args:
        given: Keys that the user wrote into ``--metadata``, without those of ``--model_args``.
        chosen: Prefixes of the chosen tasks' benchmarks.
        others: Whether tasks of others are chosen too. To these a key may belong that looks like
            one of a benchmark that is not chosen, or like one without its prefix.
        taken: The keys that the chosen tasks' loading functions take; by default all keys of the
            chosen benchmarks.

    Raises:
        OptionError: As :func:`check_own`; also for a key without its benchmark's prefix, and for
            the seed of all benchmarks beside the seed of one, or where nothing is drawn.
    """
    names = [key for key in given if isinstance(key, str)]
    if not names or not chosen:
        return
    legal, among = keys_of(*chosen), chosen if others else prefixes()
    used, known = legal if taken is None else taken, keys_of(*among)
    unused = [key for key in names if key in known and key not in used]
    wrong = {}
    for key in (key for key in names if key not in known):
        bare = " or ".join(prefix + key for prefix in chosen if prefix + key in legal)
        if near := nearest(key, among) or (not others and bare):
            wrong[key] = near
        elif bare:
            _log.warning("--metadata %s: our tasks do not read it; theirs is %s", key, bare)
    if wrong:
        raise OptionError(_refused(wrong, legal))
    for own in (f"{prefix}seed" for prefix in chosen):
        if own in names:
            check_one_seed(names, own)
    if FRESH in unused:
        raise OptionError(
            f"{FRESH} draws new items or words, and no chosen task draws any: leave it out, or "
            "choose tasks whose names have fresh in them, or MAGNIFICo's"
        )
    if unused:
        _log.warning("--metadata %s: no chosen task uses it", ", ".join(unused))


def check_one_seed(given: Iterable[str], own: str) -> None:
    """Raises OptionError if the seed of all benchmarks is given beside a benchmark's own."""
    if FRESH in given:
        raise OptionError(
            f"{FRESH} and {own} are both given; {FRESH} is the seed of all benchmarks: "
            "leave one out"
        )


def _refused(wrong: dict[str, str], legal: Iterable[str]) -> str:
    named = ", ".join(
        f"{one_line(key, limit=80)} (nearest: {near})" for key, near in sorted(wrong.items())
    )
    return f"unknown metadata key {named}; keys of the chosen tasks are: {', '.join(legal)}"
