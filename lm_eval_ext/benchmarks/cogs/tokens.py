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
from lm_eval_ext.training.starting import told, writer

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

NOTATION = (
    *OLD_TEXTS,
    *(
        template.format(a=token, b=other)
        for token, other in zip(NOVEL_TOKENS, NOVEL_TOKENS[1:] + NOVEL_TOKENS[:1], strict=True)
        for template in TEMPLATES
    ),
)
"""What must come back exactly: every template with every novel token and its successor."""

RANDOM, AVERAGE, UNUSED = "random", "average", "unused"
INITS = (RANDOM, AVERAGE, UNUSED)
"""How embeddings start (paper, section 4.1): drawn as the model draws its own initial weights; the
mean of the old tokens' embeddings plus noise; or rows of the embedding matrix without a token."""

NOISE = 1e-5
"""The covariance of the noise of ``average``, as a multiple of the embeddings' covariance: that of
the authors' script (run_translation.py, github najoungkim/parsing-transformers at ba8924f) and of
Hewitt (2021). Without noise the model could not distinguish the 21 tokens."""


def check_tokens(model: Path) -> None:
    """Checks the novel tokens of any tokenizer.

    Raises:
        OptionError: The folder has no tokenizer, or a text fails; the message quotes it.
    """
    if problem := failure(_tokenizer(model)):
        raise OptionError(f"{model}: {problem}")


def failure(tokenizer: Any) -> str:
    """Encodes and decodes :data:`NOTATION` as lm-eval's ``hf`` model does; "" if all comes back.

    That is, the tokenizer adds its own tokens around a text, and decoding skips special tokens.
    """
    token_of = {number: token for token, number in _ids(tokenizer).items()}
    if len(token_of) < len(NOVEL_TOKENS):
        missing = [token for token in NOVEL_TOKENS if token not in token_of.values()]
        return f"{missing[0]} is not in the vocabulary ({len(missing)} of 21 are missing)"
    for text, ids in zip(NOTATION, tokenizer(list(NOTATION))["input_ids"], strict=True):
        found = [token_of[number] for number in ids if number in token_of]
        if found != [word for word in text.split() if word in NOVEL_TOKENS]:
            pieces = " ".join(tokenizer.convert_ids_to_tokens(ids))
            return f"{text!r} is encoded as {pieces!r}, where a novel token is not one token"
        if (back := tokenizer.decode(ids, skip_special_tokens=True)) != text:
            return f"{text!r} is decoded as {back!r}"
    return ""


def _ids(tokenizer: Any) -> dict[str, int]:
    """The ids of the novel tokens in the vocabulary, without the marks of a space before them."""
    pieces = {piece.lstrip("▁Ġ "): number for piece, number in tokenizer.get_vocab().items()}
    return {token: pieces[token] for token in NOVEL_TOKENS if token in pieces}


def add_tokens(model: Path, out: Path, *, init: str, seed: int = 0) -> list[int]:
    """Writes a model with the novel tokens; returns their ids.

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

    old = _tokenizer(model)
    if _ids(old):
        raise OptionError(f"{model}: the tokenizer has novel tokens already; use one without them")
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    with atomic_folder(out) as part:
        ids = _add_to_tokenizer(old, model, part)
        grown = _grown(_model(model), sorted(old.get_vocab().values()), ids, init, seed)
        grown.save_pretrained(part)
        written = _model(part).state_dict()
        for name, tensor in grown.state_dict().items():
            if name not in written or not written[name].equal(tensor):
                raise OptionError(f"{model}: {name} changes when this model is saved and loaded")
    return ids


def _tokenizer(folder: Path, **settings: Any) -> Any:
    from transformers import AutoTokenizer

    return _loaded(AutoTokenizer, folder, **settings)


def _model(folder: Path) -> Any:
    """On the CPU, in the type of its files."""
    from transformers import AutoConfig

    kind = writer(_loaded(AutoConfig, folder))
    model, found = _loaded(kind, folder, dtype="auto", output_loading_info=True)
    if lacking := [*found["missing_keys"], *found["mismatched_keys"]]:
        raise OptionError(f"{folder}: the weights lack {lacking[0]}, or it does not fit")
    return model


def _loaded(kind: Any, folder: Path, **settings: Any) -> Any:
    if not folder.is_dir():
        raise OptionError(f"{folder} is not a folder; name a local model, none is downloaded")
    with told(f"{folder}: {kind.__name__} cannot load it"):
        return kind.from_pretrained(folder, local_files_only=True, **settings)


def _add_pieces(tokenizer: Any) -> None:
    """Appends pieces that start with a space to a unigram vocabulary (T5).

    An added token would lose the space before it. A piece's score is a log-probability, so 0 beats
    every other segmentation of the token. A piece's id is its position, so tokens that were added
    after the vocabulary move into it first.
    """
    from tokenizers.models import Unigram

    core = tokenizer.backend_tokenizer
    model = json.loads(core.to_str())["model"]
    pieces = [(piece, score) for piece, score in model["vocab"]]
    added = tokenizer.convert_ids_to_tokens(range(len(pieces), len(tokenizer)))
    lowest = min(score for _, score in pieces)
    pieces += [(piece, lowest) for piece in added]
    pieces += [(f"▁{token}", 0.0) for token in NOVEL_TOKENS]
    core.model = Unigram(pieces, model["unk_id"], model["byte_fallback"])


def _add_added(tokenizer: Any, *, normalized: bool) -> None:
    from tokenizers import AddedToken

    tokenizer.add_tokens([AddedToken(token, normalized=normalized) for token in NOVEL_TOKENS])


def _add_to_tokenizer(old: Any, source: Path, target: Path) -> list[int]:
    """Writes the tokenizer with the novel tokens, in the first way that loses no text."""
    unigram = type(old.backend_tokenizer.model).__name__ == "Unigram"
    # Normalised: for Llama's that put a space before each part of a text, which would double it.
    ways: list[Callable[[Any], None]] = [_add_pieces] if unigram else [
        partial(_add_added, normalized=normalized) for normalized in (False, True)
    ]  # fmt: skip
    problems = []
    for add in ways:
        # The clean-up in decoding turns " ." into ".".
        tokenizer = _tokenizer(source, clean_up_tokenization_spaces=False)
        add(tokenizer)
        tokenizer.save_pretrained(target)
        new = _tokenizer(target)
        if not (problem := failure(new)):
            if not old.get_vocab().items() <= new.get_vocab().items():
                problem = "old tokens would get other ids"
            elif old(list(OLD_TEXTS))["input_ids"] != new(list(OLD_TEXTS))["input_ids"]:
                problem = "old texts would get other tokens"
        if not problem:
            return list(_ids(new).values())
        problems.append(problem)
    raise OptionError(f"{source}: no exact round trip with novel tokens: {problems[0]}")


def _grown(model: Any, used: list[int], ids: list[int], init: str, seed: int) -> Any:
    """The model with rows for novel tokens in its input and its output embeddings."""
    import torch

    weights = [model.get_input_embeddings().weight, model.get_output_embeddings().weight]
    size, tied = len(weights[0]), weights[0] is weights[1]
    if used[-1] >= size:
        raise OptionError(f"the tokenizer has an id {used[-1]} and the model {size} embeddings")
    unused = [row for row in range(size) if row not in set(used)][: len(ids)]
    if init == UNUSED and len(unused) < len(ids):
        raise OptionError(
            f"{UNUSED} needs {len(ids)} rows of the embedding matrix without a token, and this "
            f"model has {len(unused)} of {size}; use {RANDOM} or {AVERAGE}"
        )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        rows = []
        for place, weight in enumerate(weights[:1] if tied else weights):
            if init == UNUSED:
                rows.append(weight[unused])
            elif init == AVERAGE:
                rows.append(_average(weight[used], len(ids)))
            else:
                rows.append(_random(model, weight, len(ids), embedding=place == 0))
        if ids[-1] >= size:
            model.resize_token_embeddings(ids[-1] + 1, mean_resizing=False)
        modules = (model.get_input_embeddings(), model.get_output_embeddings())
        for module, new in zip(modules, rows, strict=False):
            module.weight[ids] = new.to(module.weight.dtype)
    if (modules[0].weight is modules[1].weight) != tied:
        raise OptionError("transformers ties this model's output embeddings to its input")
    return model


def _random(model: Any, weight: Any, count: int, *, embedding: bool) -> Any:
    """Rows of a new module that the model initialises itself."""
    from torch import nn

    width = weight.shape[1]
    module = nn.Embedding(count, width) if embedding else nn.Linear(width, count, bias=False)
    model._init_weights(module)
    return module.weight


def _average(weight: Any, count: int) -> Any:
    """Mean of all tokens' rows, plus noise with :data:`NOISE` times their covariance.

    A sum of the centred rows with random weights has that covariance, without a factorisation.
    The authors, too, cut T5's matrix to the rows that have a token first.
    """
    import torch

    mean = weight.float().mean(0)
    draws = torch.randn(count, len(weight))
    return mean + (NOISE / len(weight)) ** 0.5 * draws @ (weight.float() - mean)
