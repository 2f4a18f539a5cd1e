"""The model that training starts from, and its tokenizer: on disk, made, or fetched."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from math import log
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line
from lm_eval_ext.training.material import Material
from lm_eval_ext.training.recipe import NewTokenizer, Start

PAD, EOS, UNKNOWN = "<pad>", "</s>", "<unk>"
PAD_ID, EOS_ID = 0, 1
SENTINELS = 100
"""Of span corruption, as T5 has them: ``<extra_id_0>`` and so on."""

LONGEST = 1024
"""Tokens of a prompt that lm-eval does not cut, for new tokenizers."""

_TOKENIZER_FILES = (
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt",
    "*.model", "chat_template*",
)  # fmt: skip
_FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
"""Of a model on the hub; weights in other formats are the same once more."""

OLD_WEIGHTS = "pytorch_model*.bin"
"""Fetched where a model has no others."""


def start_folder(start: Start, material: Material, work: Path, seed: int) -> Path:
    """A folder with the model and tokenizer to start from, in the Hugging Face format.

    What has to be made lies in ``work``, and is made once.

    Raises:
        OptionError: There is no such model, or one cannot be made as asked.
    """
    folder = _fetched(start) if start.start else work / "new"
    if start.config:
        _once(folder, lambda out: _make(start, material, out, seed))
    elif start.weights == "new":
        source, folder = folder, work / "new"
        _once(folder, lambda out: _renew(source, out, seed))
    if material.grow is not None:
        source, folder = folder, work / "grown"
        if not folder.is_dir():
            material.grow(source, folder)
    return folder


def _once(folder: Path, make: Any) -> None:
    if not folder.is_dir():
        with atomic_folder(folder) as part:
            make(part)


def _fetched(start: Start) -> Path:
    folder = Path(start.start).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download

    def fetch(*patterns: str) -> Path:
        revision = start.revision or None
        return Path(snapshot_download(start.start, revision=revision, allow_patterns=patterns))

    try:
        found = fetch(*_FETCHED)
        if not any(found.glob("*.safetensors")):
            found = fetch(*_FETCHED, OLD_WEIGHTS)
    except Exception as error:  # noqa: BLE001 - the hub raises many types
        raise OptionError(
            f"model.start {start.start}: no such folder, and not fetched from the hub "
            f"({_summary(error)})"
        ) from None
    return found


def _summary(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}", limit=200)


def load(folder: Path) -> tuple[Any, Any]:
    """Loads a model, in fp32 on the CPU, and its tokenizer.

    Raises:
        OptionError: There is none, or it is not one that writes answers.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model, found = kind.from_pretrained(
            folder, dtype="float32", local_files_only=True, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # noqa: BLE001 - transformers raises many types
        raise OptionError(f"{folder}: no language model to train ({_summary(error)})") from None
    if lacking := sorted(map(str, (*found["missing_keys"], *found["mismatched_keys"]))):
        raise OptionError(f"{folder}: the weights lack {lacking[0]}, or it does not fit")
    if tokenizer.eos_token_id is None:
        raise OptionError(f"{folder}: the tokenizer has no token for the end of an answer (EOS)")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # as lm-eval does
    rows = len(model.get_input_embeddings().weight)
    if (highest := max(tokenizer.get_vocab().values())) >= rows:
        raise OptionError(
            f"{folder}: the tokenizer has an id {highest} and the model {rows} embeddings; they "
            "do not belong together"
        )
    return model, tokenizer


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copies a tokenizer's files as they are: what was checked is what is evaluated."""
    for pattern in _TOKENIZER_FILES:
        for file in source.glob(pattern):
            shutil.copyfile(file, target / file.name)


def _renew(source: Path, out: Path, seed: int) -> None:
    """The same sizes and tokenizer with random weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    try:
        config = AutoConfig.from_pretrained(source, local_files_only=True)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            kind.from_config(config, dtype=torch.float32).save_pretrained(out)
    except (OSError, ValueError) as error:
        raise OptionError(f"{source}: no model's configuration ({_summary(error)})") from None
    copy_tokenizer(source, out)


def _make(start: Start, material: Material, out: Path, seed: int) -> None:
    """A model of the given sizes with random weights, and a tokenizer made from the texts."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    encoder_decoder = _config({"model_type": start.config.get("model_type")}).is_encoder_decoder
    texts = material.vocabulary or [text for pair in material.train for text in pair]
    assert start.tokenizer is not None
    tokenizer = new_tokenizer(start.tokenizer, texts, encoder_decoder=encoder_decoder)
    rows = max(len(tokenizer), int(start.config.get("vocab_size") or 0))
    own = {"vocab_size": rows, "pad_token_id": PAD_ID, "eos_token_id": EOS_ID}
    own |= {"decoder_start_token_id": PAD_ID} if encoder_decoder else {"bos_token_id": EOS_ID}
    config = _config({**start.config, **own})
    kind = AutoModelForSeq2SeqLM if encoder_decoder else AutoModelForCausalLM
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            kind.from_config(config).save_pretrained(out)
    except Exception as error:  # noqa: BLE001 - sizes that do not fit fail anywhere
        raise OptionError(f"model.config: no model has these sizes ({_summary(error)})") from None
    tokenizer.save_pretrained(out)


def _config(settings: dict[str, Any]) -> Any:
    """The configuration of transformers; it would take any key in silence."""
    from transformers import AutoConfig

    kind, *rest = settings.pop("model_type", None), *settings
    try:
        usual = AutoConfig.for_model(kind)
    except (ValueError, TypeError):
        raise OptionError(
            f"model.config: no model_type {kind!r}; such as t5, gpt2 or llama"
        ) from None
    own = ("decoder_start_token_id", "vocab_size", "pad_token_id", "eos_token_id", "bos_token_id")
    for key in rest:
        if not hasattr(usual, key) and key not in own:
            near = get_close_matches(key, usual.to_dict(), n=1, cutoff=0)
            raise OptionError(f"model.config: {kind} has no {key!r}; nearest is {near[0]}")
    try:
        return AutoConfig.for_model(kind, **settings)
    except Exception as error:  # noqa: BLE001 - wrong types of values fail anywhere
        raise OptionError(f"model.config: {_summary(error)}") from None


def new_tokenizer(wanted: NewTokenizer, texts: Sequence[str], *, encoder_decoder: bool) -> Any:
    """A tokenizer made from texts, with T5's special tokens; the same for the same texts.

    For an encoder-decoder it ends every text with EOS.

    Raises:
        OptionError: The pattern is not a regular expression.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    special = [PAD, EOS, UNKNOWN]
    sentinels = [f"<extra_id_{number}>" for number in range(SENTINELS)]
    try:
        re.compile(wanted.pattern)
    except re.error as error:
        raise OptionError(f"model.tokenizer.pattern: {error}") from None
    if wanted.kind == "words":
        words = {word for text in texts for word in re.findall(wanted.pattern, text)}
        ids = {token: number for number, token in enumerate([*special, *sorted(words)])}
        core = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
        core.pre_tokenizer = pre_tokenizers.Split(Regex(wanted.pattern), "removed", invert=True)
    elif wanted.kind == "unigram":
        core = _unigram(wanted, texts, special)
    elif wanted.kind == "byte_fallback":
        core = _byte_fallback(wanted.size, texts, special)
    else:
        core = Tokenizer(models.BPE())
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        core.train_from_iterator(
            texts,
            trainers.BpeTrainer(
                vocab_size=wanted.size, special_tokens=special, show_progress=False,
                initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            ),
        )  # fmt: skip
    core.add_special_tokens(sentinels)
    if encoder_decoder:
        core.post_processor = processors.TemplateProcessing(
            single=f"$A {EOS}", special_tokens=[(EOS, EOS_ID)]
        )
    return as_pretrained(core, LONGEST, pad_token=PAD, eos_token=EOS, unk_token=UNKNOWN)


def as_pretrained(core: Any, longest: int, **special: str) -> Any:
    """Wraps a ``tokenizers.Tokenizer`` as transformers saves and loads it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=longest,
        clean_up_tokenization_spaces=False,
        **special,
    )


def _byte_fallback(size: int, texts: Sequence[str], special: list[str]) -> Any:
    """Llama's kind: BPE of words with their space, and bytes for unknown characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    words = pre_tokenizers.Metaspace(prepend_scheme="first")
    first = Tokenizer(models.BPE())
    first.pre_tokenizer = words
    pieces = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=size + len(pieces), special_tokens=[*special, *pieces],
        show_progress=False,
    )  # fmt: skip
    first.train_from_iterator(texts, trainer)
    # A trainer takes the bytes as special tokens only, which decoding would leave out.
    made = json.loads(first.to_str())["model"]
    merges = [tuple(merge) for merge in made["merges"]]
    core = Tokenizer(
        models.BPE(made["vocab"], merges, unk_token=UNKNOWN, fuse_unk=True, byte_fallback=True)
    )
    core.pre_tokenizer = words
    core.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    core.add_special_tokens(special)
    return core


def _unigram(wanted: NewTokenizer, texts: Sequence[str], special: Sequence[str]) -> Any:
    """T5's kind: of all ways to cut a text into pieces, the most probable one.

    Which pieces there are is found by merging frequent pairs. The library's own trainer looks at
    different words and not at how often they come, so that of a small grammar no word is a piece.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    spaces: dict[str, Any] = {"replacement": "▁", "prepend_scheme": "always"}
    cut = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(wanted.pattern), "removed", invert=True),
            pre_tokenizers.Metaspace(split=False, **spaces),
        ]
    )
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = cut
    pairs.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=wanted.size, special_tokens=list(special), show_progress=False
        ),
    )
    counts = Counter(
        token for encoding in pairs.encode_batch_fast(list(texts)) for token in encoding.tokens
    )
    pieces = sorted(pairs.get_vocab().items(), key=lambda item: item[1])
    total = sum(counts.values()) + len(pieces)
    scored = [(piece, log((counts[piece] + 1) / total)) for piece, _ in pieces]
    core = Tokenizer(models.Unigram(scored, unk_id=special.index(UNKNOWN)))
    core.pre_tokenizer = cut
    core.decoder = decoders.Metaspace(**spaces)
    return core
