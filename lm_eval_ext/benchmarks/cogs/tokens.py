"""Adding the novel tokens ``[w_0]`` to ``[w_20]`` to a model (paper, section 4 and appendix B).

The appendix lists the problems: a space before or after an added token is lost or doubled, or the
token is split at the start of a text. Exact match counts all of that as wrong answers. So a model
is written only if its tokenizer, loaded again, reads each novel token as one token and reproduces
every text of :data:`NOTATION` exactly.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.benchmarks.cogs.lexicons import TOKENS, replacements
from lm_eval_ext.errors import OptionError
from lm_eval_ext.training.starting import answering_class, translate_errors

NOVEL_TOKENS = tuple(replacements(TOKENS).values())
"""``[w_0]`` to ``[w_20]``."""

OLD_TEXTS = (
    "The farmer with a parcel was seen by five judges , Jack Quinn , Max Voss and Zoe Yu .",
    "A big quiet lazy wolf jumped over a DAMP BOX , five JUGS , a VIEW and CHEQ KLYNT RFW",
    "* wolf ( x _ 1 ) ; * parcel ( x _ 10 ) ; see . agent ( x _ 2 , x _ 1 ) AND "
    "see . theme ( x _ 2 , Zoe ) AND wolf . nmod . beside ( x _ 3 , x _ 45 )",
    "LAMBDA a . LAMBDA b . LAMBDA e . see . agent ( e , b ) AND see . theme ( e , a )",
    "sing . ccomp ( x _ 6 , x _ 7 ) AND sing . xcomp ( x _ 8 , x _ 9 )",
    "Zoe",
)
"""COGS's notation and every letter and digit, without a novel token."""

TEMPLATES = (
    "{a}",
    "{a} saw the parcel .",
    "A farmer saw {a} .",
    "The farmer believed that Zoe was seen by {a}",
    "{a} {b} the {a} {b} .",
    "* {a} ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , {b} )",
    "{a} . agent ( x _ 1 , {b} ) AND {a} . theme ( x _ 1 , x _ 4 ) AND {b} ( x _ 4 )",
    "see . agent ( {a} , {b} ) AND see . xcomp ( {b} , x _ 3 ) AND {a} . nmod . on ( x _ 4 , {b} )",
    "LAMBDA a . {a} ( a )",
    "LAMBDA a . LAMBDA e . {a} . agent ( e , a )",
)
"""A novel token at the start, in the middle and at the end, before and after every mark of COGS's
notation, and next to another novel token."""


def _notation() -> tuple[str, ...]:
    texts = [*OLD_TEXTS]
    successors = NOVEL_TOKENS[1:] + NOVEL_TOKENS[:1]
    for token, successor in zip(NOVEL_TOKENS, successors, strict=True):
        for template in TEMPLATES:
            texts.append(template.format(a=token, b=successor))
    return tuple(texts)


NOTATION = _notation()
"""Texts that must come back exactly: every template with every novel token and its successor."""

RANDOM, AVERAGE, UNUSED = "random", "average", "unused"
INITS = (RANDOM, AVERAGE, UNUSED)
"""The initial embeddings (paper, section 4.1): drawn as the model draws its own initial weights;
the mean of the old tokens' embeddings plus noise; or rows of the embedding matrix that no token
has."""

NOISE = 1e-5
"""The covariance of the noise of ``average``, as a multiple of the embeddings' covariance: that of
the authors' script (run_translation.py, github najoungkim/parsing-transformers at ba8924f) and of
Hewitt (2021). Without noise the model could not distinguish the 21 tokens."""


def check_tokens(model: Path) -> None:
    """Check the novel tokens of any tokenizer.

    Raises:
        OptionError: The folder has no tokenizer, or a text fails; the message quotes it.
    """
    problem = failure(_tokenizer(model))
    if problem:
        raise OptionError(f"{model}: {problem}")


def failure(tokenizer: Any) -> str:
    """Encode and decode :data:`NOTATION` as lm-eval's ``hf`` model does.

    The tokenizer adds special tokens around a text, and decoding skips them.

    Returns:
        The first problem; "" if every text comes back.
    """
    token_of_id = {token_id: token for token, token_id in _ids(tokenizer).items()}
    missing = [token for token in NOVEL_TOKENS if token not in token_of_id.values()]
    if missing:
        return f"{missing[0]} is not in the vocabulary ({len(missing)} of 21 are missing)"
    for text, ids in zip(NOTATION, tokenizer(list(NOTATION))["input_ids"], strict=True):
        novel_words = [word for word in text.split() if word in NOVEL_TOKENS]
        novel_tokens = [token_of_id[token_id] for token_id in ids if token_id in token_of_id]
        if novel_tokens != novel_words:
            pieces = " ".join(tokenizer.convert_ids_to_tokens(ids))
            return f"{text!r} is encoded as {pieces!r}, where a novel token is not one token"
        decoded = tokenizer.decode(ids, skip_special_tokens=True)
        if decoded != text:
            return f"{text!r} is decoded as {decoded!r}"
    return ""


def _ids(tokenizer: Any) -> dict[str, int]:
    """Return the ids of the novel tokens that are in the vocabulary."""
    # Pieces may have a mark of the space before them.
    pieces = {piece.lstrip("▁Ġ "): token_id for piece, token_id in tokenizer.get_vocab().items()}
    return {token: pieces[token] for token in NOVEL_TOKENS if token in pieces}


def add_tokens(model: Path, out: Path, *, init: str, seed: int = 0) -> list[int]:
    """Write a model with the novel tokens; return their ids.

    Old tokens keep their ids, embeddings and logits.

    Args:
        model: Folder of a T5-, GPT-2- or Llama-style model in the Hugging Face format.
        out: The new folder; absent or empty. It is created once it is complete and checked.
        init: One of :data:`INITS`.
        seed: For random numbers; the same seed gives the same weights.

    Raises:
        OptionError: An option is invalid, ``model`` is not a model, ``out`` cannot be written, or
            the tokenizer has no exact round trip. Nothing is written then.
    """
    if init not in INITS:
        raise OptionError(f"no initialisation {init!r}; use {', '.join(INITS)}")
    if out.is_dir() and any(out.iterdir()):
        raise OptionError(f"{out} is not empty; name a folder that is absent or empty")
    from transformers.utils import logging

    tokenizer = _tokenizer(model)
    if _ids(tokenizer):
        raise OptionError(f"{model}: the tokenizer has novel tokens already; use one without them")
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    with atomic_folder(out) as unfinished:
        novel_ids = _add_to_tokenizer(tokenizer, model, unfinished)
        old_ids = sorted(tokenizer.get_vocab().values())
        grown = _grown(_model(model), old_ids, novel_ids, init, seed)
        grown.save_pretrained(unfinished)
        written = _model(unfinished).state_dict()
        for name, tensor in grown.state_dict().items():
            if name not in written or not written[name].equal(tensor):
                raise OptionError(f"{model}: {name} changes when this model is saved and loaded")
    return novel_ids


def _tokenizer(folder: Path, **settings: Any) -> Any:
    from transformers import AutoTokenizer

    return _loaded(AutoTokenizer, folder, **settings)


def _model(folder: Path) -> Any:
    """Load a model on the CPU, in the type of its files."""
    from transformers import AutoConfig

    model_class = answering_class(_loaded(AutoConfig, folder))
    model, report = _loaded(model_class, folder, dtype="auto", output_loading_info=True)
    unfit = [*report["missing_keys"], *report["mismatched_keys"]]
    if unfit:
        raise OptionError(f"{folder}: the weights lack {unfit[0]}, or it does not fit")
    return model


def _loaded(auto_class: Any, folder: Path, **settings: Any) -> Any:
    if not folder.is_dir():
        raise OptionError(f"{folder} is not a folder; name a local model, none is downloaded")
    with translate_errors(f"{folder}: {auto_class.__name__} cannot load it"):
        return auto_class.from_pretrained(folder, local_files_only=True, **settings)


def _add_pieces(tokenizer: Any) -> None:
    """Append pieces that start with a space to a unigram vocabulary (T5).

    An added token would lose the space before it. A piece's score is a log-probability, so 0 beats
    every other segmentation of the token. A piece's id is its position, so tokens that were added
    after the vocabulary move into it first.
    """
    from tokenizers.models import Unigram

    backend = tokenizer.backend_tokenizer
    model = json.loads(backend.to_str())["model"]
    pieces = [(piece, score) for piece, score in model["vocab"]]
    added_tokens = tokenizer.convert_ids_to_tokens(range(len(pieces), len(tokenizer)))
    lowest_score = min(score for _, score in pieces)
    pieces += [(token, lowest_score) for token in added_tokens]
    pieces += [(f"▁{token}", 0.0) for token in NOVEL_TOKENS]
    backend.model = Unigram(pieces, model["unk_id"], model["byte_fallback"])


def _add_tokens(tokenizer: Any, *, normalized: bool) -> None:
    from tokenizers import AddedToken

    tokenizer.add_tokens([AddedToken(token, normalized=normalized) for token in NOVEL_TOKENS])


def _add_to_tokenizer(old: Any, source: Path, target: Path) -> list[int]:
    """Write the tokenizer with the novel tokens, in the first way that loses no text."""
    # Normalised: for Llama's that put a space before each part of a text, which would double it.
    ways: list[Callable[[Any], None]] = [
        partial(_add_tokens, normalized=False),
        partial(_add_tokens, normalized=True),
    ]
    if type(old.backend_tokenizer.model).__name__ == "Unigram":
        ways = [_add_pieces]
    problems = []
    for add in ways:
        # The clean-up in decoding turns " ." into ".".
        tokenizer = _tokenizer(source, clean_up_tokenization_spaces=False)
        add(tokenizer)
        tokenizer.save_pretrained(target)
        new = _tokenizer(target)
        problem = failure(new) or _change_of_old_tokens(old, new)
        if not problem:
            return list(_ids(new).values())
        problems.append(problem)
    raise OptionError(f"{source}: no exact round trip with novel tokens: {problems[0]}")


def _change_of_old_tokens(old: Any, new: Any) -> str:
    """Return what the new tokenizer would change; "" if it changes nothing."""
    if not old.get_vocab().items() <= new.get_vocab().items():
        return "old tokens would get other ids"
    if old(list(OLD_TEXTS))["input_ids"] != new(list(OLD_TEXTS))["input_ids"]:
        return "old texts would get other tokens"
    return ""


def _grown(model: Any, old_ids: list[int], novel_ids: list[int], init: str, seed: int) -> Any:
    """Return the model with rows for novel tokens in its input and its output embeddings."""
    import torch

    input_weight = model.get_input_embeddings().weight
    output_weight = model.get_output_embeddings().weight
    is_tied = input_weight is output_weight
    size = len(input_weight)
    if old_ids[-1] >= size:
        raise OptionError(f"the tokenizer has an id {old_ids[-1]} and the model {size} embeddings")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        new_rows = _NewRows(model, old_ids, len(novel_ids), init)
        rows = [new_rows.of_weight(input_weight, embedding=True)]
        if not is_tied:
            rows.append(new_rows.of_weight(output_weight, embedding=False))
        if novel_ids[-1] >= size:
            model.resize_token_embeddings(novel_ids[-1] + 1, mean_resizing=False)
        modules = (model.get_input_embeddings(), model.get_output_embeddings())
        for module, rows_of_module in zip(modules, rows, strict=False):
            module.weight[novel_ids] = rows_of_module.to(module.weight.dtype)
    if (modules[0].weight is modules[1].weight) != is_tied:
        raise OptionError("transformers ties this model's output embeddings to its input")
    return model


class _NewRows:
    """Makes initial rows of embeddings for novel tokens.

    Raises:
        OptionError: The initialisation is ``unused``, and too few rows are.
    """

    def __init__(self, model: Any, old_ids: list[int], count: int, init: str) -> None:
        self.model = model
        self.old_ids = old_ids
        self.count = count
        self.init = init
        size = len(model.get_input_embeddings().weight)
        self.unused = sorted(set(range(size)).difference(old_ids))[:count]
        if init == UNUSED and len(self.unused) < count:
            raise OptionError(
                f"{UNUSED} needs {count} rows of the embedding matrix without a token, and this "
                f"model has {len(self.unused)} of {size}; use {RANDOM} or {AVERAGE}"
            )

    def of_weight(self, weight: Any, *, embedding: bool) -> Any:
        """Return the rows for a matrix: of input embeddings, or of output embeddings."""
        if self.init == UNUSED:
            return weight[self.unused]
        if self.init == AVERAGE:
            return _average(weight[self.old_ids], self.count)
        return _random(self.model, weight, self.count, embedding=embedding)


def _random(model: Any, weight: Any, count: int, *, embedding: bool) -> Any:
    """Return rows of a new module that the model initialises itself."""
    from torch import nn

    width = weight.shape[1]
    module = nn.Embedding(count, width) if embedding else nn.Linear(width, count, bias=False)
    model._init_weights(module)
    return module.weight


def _average(weight: Any, count: int) -> Any:
    """Return the mean of all tokens' rows, plus noise with :data:`NOISE` times their covariance.

    A sum of the centred rows with random weights has that covariance, without a factorisation.
    The authors, too, cut T5's matrix to the rows that have a token first.
    """
    import torch

    mean = weight.float().mean(0)
    draws = torch.randn(count, len(weight))
    return mean + (NOISE / len(weight)) ** 0.5 * draws @ (weight.float() - mean)
