"""Reads the authors' descriptions from their program, as data: nothing of it is executed."""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.records import (
    PLACEHOLDER,
    Description,
    Form,
    Interpretation,
)
from lm_eval_ext.errors import DataError
from lm_eval_ext.text import one_line

SENTENCES, WORDS = "get_instruction", "get_setting_word"
"""The functions that hold a dictionary of the sentences, and one of the words by form."""

KEYS: Mapping[Form, str] = MappingProxyType(
    {"plausible": "plausible", "foreign": "nonsense", "adversarial": "adversarial"}
)
"""The names of the forms in the file."""


def read(path: Path, interpretations: Iterable[Interpretation]) -> Mapping[str, Description]:
    """Reads the descriptions of these interpretations, by name.

    Raises:
        DataError: The file cannot be read, has another shape, or lacks an interpretation.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _error(path, f"cannot be read ({error})") from None
    sentences, words = (_dictionary(path, tree, name) for name in (SENTENCES, WORDS))
    return MappingProxyType(
        {one.name: _description(path, one, sentences, words) for one in interpretations}
    )


def _dictionary(path: Path, tree: ast.Module, function: str) -> Mapping[object, object]:
    """The only dictionary that a function assigns to a name."""
    found = [
        node.value
        for definition in tree.body
        if isinstance(definition, ast.FunctionDef) and definition.name == function
        for node in definition.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    ]
    if len(found) != 1:
        raise _error(path, f"needs a function {function} with one dictionary, has {len(found)}")
    try:
        value = ast.literal_eval(found[0])
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _error(path, f"the dictionary of {function} is not made of plain texts") from None
    return MappingProxyType(value)


def _description(
    path: Path,
    one: Interpretation,
    sentences: Mapping[object, object],
    words: Mapping[object, object],
) -> Description:
    sentence, by_form = _line(sentences.get(one.name)), words.get(one.name)
    if sentence is None:
        raise _error(path, f"{SENTENCES} has no sentence of one line for {one.name}")
    found: dict[Form, str] = {}
    for form in one.forms if PLACEHOLDER in sentence else ():
        word = _line(by_form.get(KEYS[form])) if isinstance(by_form, Mapping) else None
        if word is None:
            raise _error(path, f"{WORDS} has no {KEYS[form]} word for {one.name}")
        found[form] = word
    return Description(sentence, MappingProxyType(found))


def _line(value: object) -> str | None:
    """A text of one line; None for anything else."""
    if not isinstance(value, str) or len(value.strip().splitlines()) != 1:
        return None
    return value.strip()


def _error(path: Path, problem: str) -> DataError:
    return DataError(
        one_line(
            f"{path}: {problem}; fetch it again (lm-eval-ext data fetch magnifico_mappings)",
            limit=400,
        )
    )
