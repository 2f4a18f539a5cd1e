"""Replacing the key words, in sentences, logical forms and whole files.

One engine serves every lexicon. Applied to the unmodified files with the published lexicons it
gives the published variants byte for byte.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError

COLUMNS = 3
"""Sentence, logical form, type; tab-separated, without a header and without quoting."""


def substitute(text: str, words: Mapping[str, str], *, leading_space: bool = False) -> str:
    """Replaces whole tokens of a sentence or a logical form.

    Args:
        text: Tokens separated by whitespace; rejoined with single spaces.
        words: What each token becomes, case-sensitively; others stay.
        leading_space: Whether a text that starts with a replaced token gets a space before it
            (the paper's appendix B: some tokenizers know an added token only so).
    """
    tokens = text.split()
    replaced = " ".join(words.get(token, token) for token in tokens)
    if leading_space and tokens and words.get(tokens[0], tokens[0]) != tokens[0]:
        return f" {replaced}"
    return replaced


def substitute_lines(
    lines: Iterable[str], words: Mapping[str, str], *, leading_space: bool = False
) -> Iterator[str]:
    """Replaces the words in the first two columns of a file's lines, and leaves the type.

    Raises:
        DataError: For a line that has not three columns; its number is named.
    """
    for number, line in enumerate(lines, start=1):
        columns = line.rstrip("\n").split("\t")
        if len(columns) != COLUMNS:
            raise DataError(
                f"line {number}: {len(columns)} columns; a COGS file has sentence, logical form "
                "and type, separated by tabs"
            )
        sentence, form, kind = columns
        new = (substitute(text, words, leading_space=leading_space) for text in (sentence, form))
        yield "\t".join((*new, kind)) + "\n"


def substitute_file(
    source: Path, target: Path, words: Mapping[str, str], *, leading_space: bool = False
) -> int:
    """Writes a variant of a COGS file, whole or not at all.

    Returns:
        How many lines it has.

    Raises:
        DataError: If the source cannot be read or has a line that is none of COGS's.
        OptionError: If the target cannot be written.
    """
    try:
        with source.open(encoding="utf-8", newline="\n") as lines, atomic_text(target) as out:
            count = 0
            for line in substitute_lines(lines, words, leading_space=leading_space):
                out.write(line)
                count += 1
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: cannot be read ({error})") from None
    return count
