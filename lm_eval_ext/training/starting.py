"""Models to start from, on disk, made or fetched, with tokenizers; answers of trained ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.text import one_line
from lm_eval_ext.training.recipe import Material, NewTokenizer, Start

if TYPE_CHECKING:
    from accelerate import PartialState
    from tokenizers import Tokenizer
    from transformers import (
        PretrainedConfig,
        PreTrainedModel,
        PreTrainedTokenizerBase,
        PreTrainedTokenizerFast,
    )
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

PAD, EOS, UNKNOWN = "<pad>", "</s>", "<unk>"
_SPECIAL_TOKENS = [PAD, EOS, UNKNOWN]
SENTINELS = [f"<extra_id_{number}>" for number in range(100)]
"""The tokens that stand for lost spans, as T5 has them."""


@contextmanager
def translate_errors(problem: str) -> Iterator[None]:
    """Turn an error of a library into one line.

    Args:
        problem: The beginning of the line.
    """
    try:
        yield
    except OptionError:
        raise
    except Exception as error:  # noqa: BLE001 - transformers and the hub raise many types
        cause = one_line(f"{type(error).__name__}: {error}", limit=200)
        raise OptionError(f"{problem} ({cause})") from None


@translate_errors("model: neither fetched nor made")
def start_folder(start: Start, name: str, material: Material, work: Path, seed: int) -> Path:
    """Return a folder with the model and tokenizer to start from, in the Hugging Face format.

    Args:
        start: The recipe's.
        name: The folder or the name of an existing model; "" for a new one.
        material: A new tokenizer is made from its texts.
        work: The folder for what has to be made, which is made once.
        seed: Decides the weights of a new model.

    Raises:
        OptionError: There is no such model, or one cannot be made as the recipe says.
    """
    folder = _fetch(name) if name else work / "new"
    if not folder.is_dir():
        with atomic_folder(folder) as unfinished:
            _make(start, material, unfinished, seed)
    if material.grow is None:
        return folder
    grown_folder = work / "grown"
    if not grown_folder.is_dir():
        material.grow(folder, grown_folder)
    return grown_folder


def _fetch(name: str) -> Path:
    """Return the folder of an existing model; from the hub, with the files that are loaded."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        from transformers.utils import cached_file

        load(name)
        folder = Path(cached_file(name, "config.json")).parent
    return folder


@translate_errors("model: no language model to train")
def load(folder: Path | str) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Load a model, in fp32 on the CPU, and its tokenizer.

    Raises:
        OptionError: There is none, or it is not one that writes answers.
    """
    from transformers import AutoConfig, AutoTokenizer

    model_class = answering_class(AutoConfig.from_pretrained(folder))
    model = model_class.from_pretrained(folder, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # as lm-eval does
    return model, tokenizer


def answering_class(config: "PretrainedConfig") -> "type[_BaseAutoModelClass]":
    """Return the class in transformers of models of this configuration that write answers."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    model_class: type[_BaseAutoModelClass] = AutoModelForCausalLM
    if config.is_encoder_decoder:
        model_class = AutoModelForSeq2SeqLM
    return model_class


def _make(start: Start, material: Material, folder: Path, seed: int) -> None:
    """Make the model that a recipe describes, with random weights, and its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoTokenizer

    settings = dict(start.config)
    model_type = settings.pop("model_type", None)
    default_config = AutoConfig.for_model(model_type)
    for key in settings:  # transformers would take any key in silence
        if not hasattr(default_config, key):
            hint = nearest(key, default_config.to_dict())
            raise OptionError(f"model.config: {model_type} has no {key!r}{hint}")
    is_encoder_decoder = default_config.is_encoder_decoder
    if isinstance(start.tokenizer, str):
        tokenizer = AutoTokenizer.from_pretrained(start.tokenizer)
    else:
        tokenizer = new_tokenizer(start.tokenizer, material, is_encoder_decoder=is_encoder_decoder)
    settings["vocab_size"] = max(len(tokenizer), settings.get("vocab_size", 0))
    settings["pad_token_id"] = tokenizer.pad_token_id
    settings["eos_token_id"] = tokenizer.eos_token_id
    if is_encoder_decoder:
        settings["decoder_start_token_id"] = tokenizer.pad_token_id
    else:
        settings["bos_token_id"] = tokenizer.eos_token_id
    config = AutoConfig.for_model(model_type, **settings)
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = answering_class(config).from_config(config, dtype=torch.float32)
        model.save_pretrained(folder)


def new_tokenizer(
    options: NewTokenizer, material: Material, *, is_encoder_decoder: bool
) -> "PreTrainedTokenizerFast":
    """Make a tokenizer from texts, with T5's special tokens; the same for the same texts.

    For an encoder-decoder it ends every text with EOS.
    """
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    texts = material.vocabulary
    if not texts:
        texts = list(chain.from_iterable(material.train))
    if options.kind == "bpe":
        tokenizer = _bpe_tokenizer(options, texts)
    elif options.kind == "unigram":
        tokenizer = _unigram_tokenizer(options, texts)
    else:
        tokenizer = _word_tokenizer(options, texts)
    tokenizer.add_tokens(list(material.whole))
    tokenizer.add_special_tokens(SENTINELS)
    if is_encoder_decoder:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {EOS}", special_tokens=[(EOS, _SPECIAL_TOKENS.index(EOS))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, unk_token=UNKNOWN
    )


def _bpe_tokenizer(options: NewTokenizer, texts: Sequence[str]) -> "Tokenizer":
    """Make a tokenizer of GPT-2's kind: frequent pairs of bytes are merged."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(options.pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=options.size,
        special_tokens=_SPECIAL_TOKENS,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _unigram_tokenizer(options: NewTokenizer, texts: Sequence[str]) -> "Tokenizer":
    """Make a tokenizer of T5's kind: a text is cut into the most probable pieces.

    The pieces are found by merging frequent pairs. The library's own trainer looks at different
    words and not at how often they come, so that of a small grammar no word is a piece.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(options.pattern), "removed", invert=True)
    metaspace = pre_tokenizers.Metaspace(split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, metaspace])
    trainer = trainers.BpeTrainer(
        vocab_size=options.size, special_tokens=_SPECIAL_TOKENS, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    counts: Counter[str] = Counter()
    for encoding in tokenizer.encode_batch_fast(list(texts)):
        counts.update(encoding.tokens)
    vocabulary = tokenizer.get_vocab()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    total = counts.total() + len(pieces)
    log_probabilities = [(piece, log((counts[piece] + 1) / total)) for piece in pieces]
    tokenizer.model = models.Unigram(log_probabilities, unk_id=_SPECIAL_TOKENS.index(UNKNOWN))
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _word_tokenizer(options: NewTokenizer, texts: Sequence[str]) -> "Tokenizer":
    """Make a tokenizer whose tokens are the words of the texts."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    split = pre_tokenizers.Split(Regex(options.pattern), "removed", invert=True)
    words: set[str] = set()
    for text in texts:
        words.update(word for word, _ in split.pre_tokenize_str(text))
    tokens = [*_SPECIAL_TOKENS, *sorted(words)]
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = split
    return tokenizer


def processes() -> "PartialState":
    """Return accelerate's state: which of a launcher's processes this one is.

    Without an accelerator it must be told so, or every process takes itself for the only one.
    """
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available())


def generate_answers(
    folder: Path,
    prompts: Sequence[str],
    *,
    max_gen_toks: int,
    batch_size: int = 32,
    **model_args: Any,
) -> list[str]:
    """Ask the model of a folder as ``lm_eval --model hf`` does; all processes share the work.

    Args:
        folder: The model's, in the Hugging Face format.
        prompts: Longer ones are cut on the left, as lm-eval cuts them.
        max_gen_toks: The most tokens of an answer.
        batch_size: Prompts at a time.
        model_args: Keys of lm-eval's ``model_args``.
    """
    from accelerate.utils import gather_object
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    state = processes()
    options = {"until": [], "do_sample": False, "max_gen_toks": max_gen_toks}
    model = HFLM(str(folder), device=str(state.device), batch_size=batch_size, **model_args)
    with state.split_between_processes(list(prompts)) as process_prompts:
        requests = [
            Instance("generate_until", {}, (prompt, options), 0) for prompt in process_prompts
        ]
        process_answers = model.generate_until(requests)
    answers: list[str] = gather_object(process_answers)
    return answers
