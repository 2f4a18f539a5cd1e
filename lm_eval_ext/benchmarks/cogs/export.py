"""cogs_mini as files, in COGS's format and in the words of any lexicon, for fine-tuning."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.cogs import mini
from lm_eval_ext.benchmarks.cogs.substitute import substitute_lines
from lm_eval_ext.errors import OptionError

FILES = MappingProxyType(
    {"train": "train", "dev": "dev", "id": "test", "testlex": "test_lex", "gen": "gen"}
)
"""What the files of the splits are called."""


def export_mini(
    folder: Path, words: Mapping[str, str], *, leading_space: bool = False
) -> dict[str, int]:
    """Writes every split of cogs_mini.

    Args:
        folder: Must be absent or empty.
        words: What the key words become.
        leading_space: Whether a text that starts with a new word gets a space before it.

    Returns:
        How many examples each file has, by its name.

    Raises:
        OptionError: If the folder holds something or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OptionError(f"{folder} is not empty; name another folder")
    except OSError as error:
        raise OptionError(f"cannot write to {folder}: {error.strerror}") from None
    counts = {}
    for split, name in FILES.items():
        examples = mini.examples(split)
        lines = (f"{one.sentence}\t{one.form}\t{one.type}\n" for one in examples)
        with atomic_text(folder / f"{name}.tsv") as out:
            out.writelines(substitute_lines(lines, words, leading_space=leading_space))
        counts[f"{name}.tsv"] = len(examples)
    return counts
