"""Writing files so that they are whole or not there."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from lm_eval_ext.errors import OptionError


@contextmanager
def atomic_text(path: Path, *, errors: str = "strict") -> Iterator[TextIO]:
    """Opens a text file that gets its name only when the block ends without an error.

    UTF-8, and line ends as they are written. An interruption leaves what was there before.

    Args:
        path: The final name.
        errors: What to do about text that is no Unicode, as :func:`open` takes it.

    Raises:
        OptionError: If a file cannot be written there.
    """
    if not path.name:
        raise OptionError(f"cannot write {path}: name a file")
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        handle = part.open("w", encoding="utf-8", errors=errors, newline="")
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from None
    try:
        with handle:
            yield handle
        part.replace(path)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
