"""The model that training starts from, and its tokenizer: on disk, made, or fetched."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.errors import OptionError, nearest
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
OLD_WEIGHTS = "pytorch_model*.bin"
"""Fetched where a model has no others."""


def start_folder(start: Start, material: Material, work: Path, seed: int) -> Path:
    """A folder with the model and tokenizer to start from, in the Hugging Face format.

    What has to be made lies in ``work``, and is made once.

    Raises:
        OptionError: There is no such model, or one cannot be made as asked.
    """
    folder = _fetched(start) if start.start else Path()
    if start.config or start.weights == "new":
        source, folder = folder, work / "new"
        if not folder.is_dir():
            with atomic_folder(folder) as part, _told("model: none can be made like this"):
                _make(start, source, material, part, seed)
    if material.grow is not None:
        source, folder = folder, work / "grown"
        if not folder.is_dir():
            material.grow(source, folder)
    return folder


def _fetched(start: Start) -> Path:
    """The folder of an existing model; from the hub, weights in one format."""
    folder = Path(start.start).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download

    with _told(f"model.start {start.start}: no such folder, and not fetched from the hub"):
        for weights in ("*.safetensors", OLD_WEIGHTS):
            patterns = ["*.json", "*.txt", "*.model", "*.jinja", weights]
            folder = Path(snapshot_download(start.start, allow_patterns=patterns))
            if any(folder.glob(weights)):
                break
    return folder


@contextmanager
def _told(problem: str) -> Iterator[None]:
    """Says what failed in a library, in a line."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:  # noqa: BLE001 - transformers and the hub raise many types
        said = one_line(f"{type(error).__name__}: {error}", limit=200)
        raise OptionError(f"{problem} ({said})") from None


def load(folder: Path) -> tuple[Any, Any]:
    """Loads a model, in fp32 on the CPU, and its tokenizer.

    Raises:
        OptionError: There is none, or it is not one that writes answers.
    """
    from transformers import AutoConfig, AutoTokenizer

    with _told(f"{folder}: no language model to train"):
        config = AutoConfig.from_pretrained(folder)
        model, found = _kind(config).from_pretrained(
            folder, dtype="float32", output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(folder)
    if lacking := sorted(map(str, (*found["missing_keys"], *found["mismatched_keys"]))):
        raise OptionError(f"{folder}: the weights lack {lacking[0]}, or it does not fit")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # as lm-eval does
    return model, tokenizer


def _kind(config: Any) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copies a tokenizer's files as they are: what was checked is what is evaluated."""
    for pattern in _TOKENIZER_FILES:
        for file in source.glob(pattern):
            shutil.copyfile(file, target / file.name)


def _make(start: Start, source: Path, material: Material, out: Path, seed: int) -> None:
    """A model with random weights, and its tokenizer.

    Both as the recipe describes them, or with another model's sizes and tokenizer.
    """
    import torch
    from transformers import AutoConfig

    if start.config:
        config, tokenizer = _new(start, material)
        tokenizer.save_pretrained(out)
    else:
        config = AutoConfig.from_pretrained(source)
        copy_tokenizer(source, out)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        _kind(config).from_config(config, dtype=torch.float32).save_pretrained(out)


def _new(start: Start, material: Material) -> tuple[Any, Any]:
    """The configuration and the tokenizer of a model that the recipe describes."""
    from transformers import AutoConfig

    assert start.tokenizer is not None
    settings = dict(start.config)
    kind = settings.pop("model_type", None)
    usual = AutoConfig.for_model(kind)
    for key in settings:  # transformers would take any key in silence
        if not hasattr(usual, key):
            raise OptionError(f"model.config: {kind} has no {key!r}{nearest(key, usual.to_dict())}")
    both = usual.is_encoder_decoder
    texts = material.vocabulary or [text for pair in material.train for text in pair]
    tokenizer = new_tokenizer(start.tokenizer, texts, encoder_decoder=both, whole=material.whole)
    rows = max(len(tokenizer), settings.get("vocab_size", 0))
    own = {"vocab_size": rows, "pad_token_id": PAD_ID, "eos_token_id": EOS_ID}
    own |= {"decoder_start_token_id": PAD_ID} if both else {"bos_token_id": EOS_ID}
    return AutoConfig.for_model(kind, **{**settings, **own}), tokenizer


def new_tokenizer(
    wanted: NewTokenizer,
    texts: Sequence[str],
    *,
    encoder_decoder: bool,
    whole: Sequence[str] = (),
) -> Any:
    """A tokenizer made from texts, with T5's special tokens; the same for the same texts.

    For an encoder-decoder it ends every text with EOS. Texts of ``whole`` are one token each.

    A ``unigram`` takes of all ways to cut a text into pieces the most probable one, as T5's. Which
    pieces there are is found by merging frequent pairs. The library's own trainer looks at
    different words and not at how often they come, so that of a small grammar no word is a piece.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, processors, trainers
    from tokenizers import pre_tokenizers as cuts
    from transformers import PreTrainedTokenizerFast

    special, bpe = [PAD, EOS, UNKNOWN], wanted.kind == "bpe"
    pattern = Regex(wanted.pattern)
    words = cuts.Split(pattern, "removed", invert=True)
    trainer = trainers.BpeTrainer(
        vocab_size=wanted.size, special_tokens=special, show_progress=False,
        initial_alphabet=sorted(cuts.ByteLevel.alphabet()) if bpe else [],
    )  # fmt: skip
    core = Tokenizer(models.BPE())
    if bpe:
        level = cuts.ByteLevel(add_prefix_space=False, use_regex=False)
        core.pre_tokenizer = cuts.Sequence([cuts.Split(pattern, "isolated"), level])
        core.decoder = decoders.ByteLevel()
        core.train_from_iterator(texts, trainer)
    elif wanted.kind == "unigram":
        core.pre_tokenizer = cuts.Sequence([words, cuts.Metaspace(split=False)])
        core.train_from_iterator(texts, trainer)
        found = (token for one in core.encode_batch_fast(list(texts)) for token in one.tokens)
        counts = Counter(found)
        pieces = sorted(core.get_vocab(), key=core.get_vocab().__getitem__)
        total = sum(counts.values()) + len(pieces)
        scored = [(piece, log((counts[piece] + 1) / total)) for piece in pieces]
        core.model = models.Unigram(scored, unk_id=special.index(UNKNOWN))
        core.decoder = decoders.Metaspace()
    else:
        core.pre_tokenizer = words
        known = {piece for text in texts for piece, _ in words.pre_tokenize_str(text)}
        ids = {token: number for number, token in enumerate([*special, *sorted(known)])}
        core.model = models.WordLevel(ids, unk_token=UNKNOWN)
    core.add_tokens([AddedToken(text, normalized=False) for text in whole])
    core.add_special_tokens([f"<extra_id_{number}>" for number in range(SENTINELS)])
    if encoder_decoder:
        core.post_processor = processors.TemplateProcessing(
            single=f"$A {EOS}", special_tokens=[(EOS, EOS_ID)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
    )
