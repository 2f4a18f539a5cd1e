"""Keys of ``--metadata``: which are ours, and which look like ours and are none.

lm-eval gives every task the whole of ``--metadata`` and ``--model_args``, so a key that nobody
knows is no error there: a misspelt seed would run with the published words. What a benchmark
knows is what its loading functions declare (:mod:`.loading`); no other list is kept. Keys that
look like none of ours belong to a model or to another task, and pass.
"""

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches
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
"""Similarity (difflib's ratio) from which a whole key counts as a misspelt one of ours."""

_LIKE_IN_PARTS = 0.8
"""The same where the benchmark's name and the rest are compared one by one."""

_SHORTEST = 3
"""Letters of an abbreviated benchmark's name, such as ``mag`` or ``cog``."""

_declared: dict[str, dict[str, None]] = {}


def declare(prefix: str, keys: Iterable[str]) -> None:
    """Notes what a loading function takes; ``prefix`` is its benchmark's, such as ``cogs_``."""
    _declared.setdefault(prefix, {}).update(dict.fromkeys(keys))
    _nearest.cache_clear()


def prefixes() -> tuple[str, ...]:
    """The prefix of every benchmark that ships, and of what else has declared one."""
    _import_loaders("")
    return tuple(_declared)


def keys_of(prefix: str) -> tuple[str, ...]:
    """All keys of a benchmark, those of its other loading functions too."""
    _import_loaders(prefix)
    return tuple(_declared.get(prefix, ()))


def nearest(key: str, among: Iterable[str]) -> tuple[str, str] | None:
    """The prefix and the key of ours that a key looks like; None for somebody else's key.

    A key with the prefix of a benchmark is one of its keys, however far the rest is from them.
    Otherwise the whole must be similar to one of them, or both parts: a similar or abbreviated
    name before the underscore, and a similar rest.

    Args:
        key: As the user wrote it.
        among: The prefixes of the benchmarks that may be meant.
    """
    found = [(prefix, _nearest(key, prefix)) for prefix in among]
    close = [(prefix, one) for prefix, one in found if one]
    return max(close, key=lambda one: _similar(key, one[1]), default=None)


@cache
def _nearest(key: str, prefix: str) -> str | None:
    legal = keys_of(prefix)
    if not legal:
        return None
    plain = re.sub(r"[^a-z0-9]+", "_", key.casefold()).strip("_")
    if plain.startswith(prefix):
        return get_close_matches(plain, legal, n=1, cutoff=0)[0]
    if close := get_close_matches(plain, legal, n=1, cutoff=_LIKE):
        return close[0]
    if sorted(plain) == sorted(FRESH) and FRESH in legal:  # too short for one swap to be similar
        return FRESH
    name, _, rest = plain.partition("_")
    abbreviated = len(name) >= _SHORTEST and prefix.startswith(name)
    if not rest or not (abbreviated or _similar(name, prefix.rstrip("_")) >= _LIKE_IN_PARTS):
        return None
    bare = [one.removeprefix(prefix) for one in legal]
    near = get_close_matches(rest, bare, n=1, cutoff=_LIKE_IN_PARTS)
    return prefix + near[0] if near else None


def _similar(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def check_own(given: Iterable[object], prefix: str) -> None:
    """Refuses keys that look like a benchmark's and are none of them.

    Raises:
        OptionError: With the nearest legal key and all legal ones.
    """
    wrong = {}
    for key in given:
        near = nearest(key, [prefix]) if isinstance(key, str) else None
        if near and key not in keys_of(prefix):
            wrong[str(key)] = near[1]
    if wrong:
        raise OptionError(_refused(wrong, [prefix]))


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
    legal = {key for prefix in chosen for key in keys_of(prefix)}
    wrong, unused = {}, []
    for key in names:
        if key in legal:
            if taken is not None and key not in taken:
                unused.append(key)
            continue
        near = nearest(key, chosen if others else prefixes())
        bare = [prefix + key for prefix in chosen if prefix + key in legal]
        if near and key in keys_of(near[0]):
            unused.append(key)
        elif near or (bare and not others):
            wrong[key] = near[1] if near else " or ".join(bare)
        elif bare:
            _log.warning(
                "--metadata %s: our tasks do not read it; theirs is %s", key, " or ".join(bare)
            )
    if wrong:
        raise OptionError(_refused(wrong, chosen))
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


def _refused(wrong: dict[str, str], chosen: Iterable[str]) -> str:
    legal = ", ".join(dict.fromkeys(key for prefix in chosen for key in keys_of(prefix)))
    named = ", ".join(
        f"{one_line(key, limit=80)} (nearest: {near})" for key, near in sorted(wrong.items())
    )
    return f"unknown metadata key {named}; keys of the chosen tasks are: {legal}"


@cache
def _import_loaders(prefix: str) -> None:
    """Imports the loading functions that our task files name: of a benchmark, or ("") of all."""
    benchmark = f".{prefix.rstrip('_')}." if prefix else "."
    for function in _loaders():
        if benchmark in function:
            import_module(function.rpartition(".")[0])


@cache
def _loaders() -> tuple[str, ...]:
    folder = Path(tasks_folder())
    files = [*folder.glob("*.yaml"), *folder.rglob("_*")]
    found = (file for file in files if file.is_file() and file.suffix in ("", ".yaml"))
    texts = [file.read_text(encoding="utf-8") for file in sorted(found)]
    named = re.findall(r"\bcustom_dataset: !function ([\w.]+)", "\n".join(texts))
    return tuple(dict.fromkeys(named))
