"""Models to start from, on disk, made or fetched, with tokenizers; answers of trained ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.text import one_line
from lm_eval_ext.training.recipe import Material, NewTokenizer, Start

PAD, EOS, UNKNOWN = "<pad>", "</s>", "<unk>"
SENTINELS = [f"<extra_id_{number}>" for number in range(100)]
"""The tokens that stand for lost spans, as T5 has them."""


@contextmanager
def told(problem: str) -> Iterator[None]:
    """Says what failed in a library, in a line."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:  # noqa: BLE001 - transformers and the hub raise many types
        said = one_line(f"{type(error).__name__}: {error}", limit=200)
        raise OptionError(f"{problem} ({said})") from None


@told("model: neither fetched nor made")
def start_folder(start: Start, name: str, material: Material, work: Path, seed: int) -> Path:
    """A folder with the model and tokenizer to start from, in the Hugging Face format.

    What has to be made lies in ``work``, and is made once; ``name`` is that of an existing model.

    Raises:
        OptionError: There is no such model, or one cannot be made as asked.
    """
    folder = _fetched(name) if name else work / "new"
    if not folder.is_dir():
        with atomic_folder(folder) as part:
            _make(start, material, part, seed)
    if material.grow is not None:
        grown = work / "grown"
        if not grown.is_dir():
            material.grow(folder, grown)
        return grown
    return folder


def _fetched(name: str) -> Path:
    """The folder of an existing model; from the hub, with the files that transformers loads."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        from transformers.utils import cached_file

        load(name)
        folder = Path(cached_file(name, "config.json")).parent
    return folder


@told("model: no language model to train")
def load(folder: Path | str) -> tuple[Any, Any]:
    """Loads a model, in fp32 on the CPU, and its tokenizer.

    Raises:
        OptionError: There is none, or it is not one that writes answers.
    """
    from transformers import AutoConfig, AutoTokenizer

    kind = writer(AutoConfig.from_pretrained(folder))
    model = kind.from_pretrained(folder, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # as lm-eval does
    return model, tokenizer


def writer(config: Any) -> Any:
    """The class in transformers of models of this configuration that write answers."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def _make(start: Start, material: Material, out: Path, seed: int) -> None:
    """A model that the recipe describes, with random weights, and its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoTokenizer

    settings = dict(start.config)
    kind = settings.pop("model_type", None)
    usual = AutoConfig.for_model(kind)
    for key in settings:  # transformers would take any key in silence
        if not hasattr(usual, key):
            raise OptionError(f"model.config: {kind} has no {key!r}{nearest(key, usual.to_dict())}")
    both = usual.is_encoder_decoder
    if isinstance(start.tokenizer, str):
        tokenizer = AutoTokenizer.from_pretrained(start.tokenizer)
    else:
        tokenizer = new_tokenizer(start.tokenizer, material, encoder_decoder=both)
    rows = max(len(tokenizer), settings.get("vocab_size", 0))
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    own = {"vocab_size": rows, "pad_token_id": pad, "eos_token_id": end}
    own |= {"decoder_start_token_id": pad} if both else {"bos_token_id": end}
    config = AutoConfig.for_model(kind, **{**settings, **own})
    tokenizer.save_pretrained(out)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        writer(config).from_config(config, dtype=torch.float32).save_pretrained(out)


def new_tokenizer(wanted: NewTokenizer, material: Material, *, encoder_decoder: bool) -> Any:
    """A tokenizer made from texts, with T5's special tokens; the same for the same texts.

    For an encoder-decoder it ends every text with EOS.

    A ``unigram`` takes of all ways to cut a text into pieces the most probable one, as T5's. Which
    pieces there are is found by merging frequent pairs. The library's own trainer looks at
    different words and not at how often they come, so that of a small grammar no word is a piece.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, processors, trainers
    from tokenizers import pre_tokenizers as cuts
    from transformers import PreTrainedTokenizerFast

    texts = material.vocabulary or [text for pair in material.train for text in pair]
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
        encoded = core.encode_batch_fast(list(texts))
        counts = Counter(token for one in encoded for token in one.tokens)
        known = core.get_vocab()
        pieces = sorted(known, key=known.__getitem__)
        total = counts.total() + len(pieces)
        scored = [(piece, log((counts[piece] + 1) / total)) for piece in pieces]
        core.model = models.Unigram(scored, unk_id=special.index(UNKNOWN))
        core.decoder = decoders.Metaspace()
    else:
        core.pre_tokenizer = words
        found = {piece for text in texts for piece, _ in words.pre_tokenize_str(text)}
        ids = {token: number for number, token in enumerate([*special, *sorted(found)])}
        core.model = models.WordLevel(ids, unk_token=UNKNOWN)
    core.add_tokens(list(material.whole))
    core.add_special_tokens(SENTINELS)
    if encoder_decoder:
        core.post_processor = processors.TemplateProcessing(
            single=f"$A {EOS}", special_tokens=[(EOS, special.index(EOS))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, eos_token=EOS, unk_token=UNKNOWN
    )


def processes() -> Any:
    """Which of a launcher's processes this one is, as accelerate's ``PartialState``.

    Without an accelerator it must be told so, or every process takes itself for the only one.
    """
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available())


def answers_of(
    folder: Path,
    prompts: Sequence[str],
    *,
    most: int,
    batch_size: int = 32,
    **more: Any,
) -> list[str]:
    """Asks the model of a folder as ``lm_eval --model hf`` does; all processes share the work.

    Args:
        folder: The model's, in the Hugging Face format.
        prompts: Longer ones are cut on the left, as lm-eval cuts them.
        most: Most tokens of an answer.
        batch_size: Prompts at a time.
        more: Keys of lm-eval's ``model_args``.
    """
    from accelerate.utils import gather_object
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    state = processes()
    options = {"until": [], "do_sample": False, "max_gen_toks": most}
    model = HFLM(str(folder), device=str(state.device), batch_size=batch_size, **more)
    with state.split_between_processes(list(prompts)) as mine:
        asked = [Instance("generate_until", {}, (prompt, options), 0) for prompt in mine]
        answers = model.generate_until(asked)
    found: list[str] = gather_object(answers)
    return found
