"""Adding the novel tokens ``[w_0]`` to ``[w_20]`` to a model (paper, section 4 and appendix B)."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.benchmarks.cogs.checkpoint import (
    WEIGHT_FILES,
    Matrix,
    check_init,
    load_model,
    matrices,
    write_vocabulary_size,
    write_weights,
)
from lm_eval_ext.benchmarks.cogs.tokenizer_files import (
    NOVEL_TOKENS,
    OLD_TEXTS,
    find_failure,
    find_novel_failure,
    load_tokenizer,
    novel_texts,
    put_tokens,
    texts_of,
)
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import transformers_bars

NOT_COPIED = (".git", ".cache")
"""A clone's history and a download's metadata describe the source, not the copy."""


@dataclass(frozen=True)
class Added:
    """The result of :func:`add_tokens`.

    Attributes:
        ids: Of the novel tokens, in their order.
        way: How the tokenizer got them: a key of :data:`.tokenizer_files.WAYS`.
        rows: Rows of the embedding matrix, before and after.
        tied: Whether input and output embeddings are the same parameter.
        texts: The number of texts with an exact round trip.
        notes: Other changes and omitted files, one line each.
    """

    ids: tuple[int, ...]
    way: str
    rows: tuple[int, int]
    tied: bool
    texts: int
    notes: tuple[str, ...]


def check_tokens(model: Path, file: Path | None = None) -> int:
    """Checks the novel tokens of any tokenizer; returns the number of texts that it checked.

    ``file`` is a COGS file to check as well, under every published lexicon.

    Raises:
        OptionError: The folder has no tokenizer, or a text fails; the message quotes it.
        DataError: The file is not a COGS file.
    """
    tokenizer = load_tokenizer(model)
    texts = list(texts_of(file)) if file else []
    failure = find_novel_failure(tokenizer) or find_failure(tokenizer, texts)
    if failure:
        raise OptionError(f"{model}: {failure}")
    return len(OLD_TEXTS) + sum(1 for _ in novel_texts()) + len(texts)


def add_tokens(model: Path, out: Path, *, init: str, seed: int = 0) -> Added:
    """Writes a copy of a model with the novel tokens.

    Old tokens keep their ids, embeddings and logits. All other files are copied.

    Args:
        model: Folder of a T5-, GPT-2- or Llama-style model in the Hugging Face format.
        out: The new folder; absent or empty. It is created once it is complete and checked.
        init: One of :data:`.checkpoint.INITS`.
        seed: For random numbers; the same seed gives the same bytes.

    Raises:
        OptionError: An option is invalid, ``model`` is not a model, ``out`` cannot be written, or
            the tokenizer has no exact round trip. Nothing is written then.
    """
    check_init(init, seed)
    load_tokenizer(model)
    _check_out(out, model)
    with transformers_bars(shown=sys.stderr.isatty()), _new_folder(out) as folder:
        left_out = _copy(model, folder)
        tokens = put_tokens(folder, model)
        loaded, unfilled = load_model(model)
        size = len(loaded.get_input_embeddings().weight)
        if max(tokens.old_ids) >= size:
            raise OptionError(
                f"{model}: the tokenizer has an id {max(tokens.old_ids)} and the model {size} "
                "embeddings; they do not belong together"
            )
        grown = matrices(loaded, init=init, used=tokens.old_ids, count=len(NOVEL_TOKENS), seed=seed)
        new_size = max(size, max(tokens.ids) + 1)
        write_weights(folder, model, loaded, grown, tokens.ids)
        if new_size != size:
            write_vocabulary_size(folder, new_size)
        _check_model(folder, grown, tokens.ids, unfilled)
        texts = check_tokens(folder)
    tied = all(
        matrix.weight.dim() == 1 for matrix in grown[1:]
    )  # apart from the input embeddings there is at most a bias
    notes = (*tokens.notes, *(f"{name} left out: it lacks the novel tokens" for name in left_out))
    return Added(tokens.ids, tokens.way, (size, new_size), tied, texts, notes)


def _check_model(
    folder: Path, grown: list[Matrix], ids: tuple[int, ...], unfilled: set[str]
) -> None:
    """Loads the new model as lm-eval will, and checks its embeddings."""
    loaded, now_unfilled = load_model(folder)
    parameters: dict[str, Any] = dict(loaded.named_parameters(remove_duplicate=False))
    for matrix in grown:
        after, old = parameters[matrix.names[0]], matrix.weight
        kept = [row for row in range(len(old)) if row not in ids]
        if not (after[kept].equal(old[kept]) and after[list(ids)].equal(matrix.rows)):
            raise OptionError(f"rows cannot be added to {matrix.names[0]} in this model's files")
    if now_unfilled != unfilled:
        raise OptionError(f"the new weights lack {', '.join(sorted(now_unfilled - unfilled))}")


def _check_out(out: Path, model: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out} exists; name a folder that is absent or empty")
    if not out.name:
        raise OptionError(f"{out} is the current folder; name a folder in it")
    if out.resolve().is_relative_to(model.resolve()):
        raise OptionError(f"{out} is inside the model's folder; name one outside it")


def _copy(source: Path, target: Path) -> list[str]:
    """Copies unchanged files; returns the names of omitted weight files in other formats."""
    left_out = []
    for path in sorted(source.iterdir()):
        if path.name in NOT_COPIED:
            continue
        if path.is_dir():
            shutil.copytree(path, target / path.name, copy_function=shutil.copyfile)
        elif not any(path.match(pattern) for pattern in WEIGHT_FILES):
            shutil.copyfile(path, target / path.name)
        elif ".safetensors" not in path.name:
            left_out.append(path.name)
    return left_out


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A hidden folder beside ``out`` that takes its name when the block ends without an error."""
    with atomic_folder(out) as partial:
        try:
            yield partial
        except OptionError as error:
            # The hidden folder no longer exists when the user reads the message.
            raise OptionError(str(error).replace(str(partial), str(out))) from None
