"""``--model hf-prefix``: HFLM that computes every shared prefix once.

Causal models score and generate over trees; with generation settings that :mod:`.passes` cannot
honour (:func:`settings_obstacle`), and for encoder-decoder models, ``hf`` does the work.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import (
    handle_stop_sequences,
    normalize_gen_kwargs,
    postprocess_generated_text,
)

from lm_eval_ext.models.prefix.engine import Engine
from lm_eval_ext.models.prefix.packed import lacks_instructions
from lm_eval_ext.models.prefix.passes import Answer, generate, score
from lm_eval_ext.models.prefix.progress import RequestsBar, report_nothing
from lm_eval_ext.models.prefix.sharing import Sharing, bound_bytes
from lm_eval_ext.models.prefix.stops import Stops
from lm_eval_ext.models.prefix.tree import Leaf, build_tree

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel

PLAIN = frozenset({"until", "max_gen_toks", "do_sample", "temperature", "top_p", "top_k"})
"""Settings of a request that plain greedy decoding honours or, as transformers does, ignores."""

HARMLESS = frozenset(
    {
        "_from_model_config",
        "transformers_version",
        "return_dict_in_generate",
        "num_return_sequences",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "decoder_start_token_id",
        "max_length",
        "max_new_tokens",
        "do_sample",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "typical_p",
        "use_cache",
        "cache_implementation",
        "output_scores",
        "output_logits",
        "output_attentions",
        "output_hidden_states",
    }
)
"""Keys of a model's generation_config that don't change lm-eval's greedy decoding."""


def settings_obstacle(request: Mapping[str, object], config: "GenerationConfig") -> str:
    """Return why a request cannot be answered by plain greedy decoding, or an empty text.

    Args:
        request: Normalised generation settings of the request.
        config: The model's ``generation_config``.
    """
    if request.get("do_sample"):
        return "sampling"
    # A model may ask for a repetition penalty and the like; transformers applies it to greedy
    # decoding as well.
    model_settings = {key for key, value in config.to_diff_dict().items() if value is not None}
    obstacles = [*sorted(request.keys() - PLAIN), *sorted(model_settings - HARMLESS)]
    if obstacles:
        return f"the generation setting {', '.join(obstacles)}"
    return ""


TEXTS = 256
"""Texts in a call of the tokenizer, which takes a quarter of the time of single calls."""

TokenRequest: TypeAlias = "tuple[object, list[int], list[int]]"
"""The key of lm-eval's cache (or None), and the tokens of a context and of its continuation."""


class PrefixHFLM(HFLM):
    """HFLM's answers, with less computed. Takes HFLM's arguments.

    Args:
        pretrained: As HFLM's.
        prefix_cache_mb: Bound on the memory for keys and values, in MiB; half of the memory
            that is free when None.
        options: All other arguments of HFLM's.

    Raises:
        OptionError: The bound isn't a positive number.
    """

    def __init__(
        self,
        pretrained: "str | PreTrainedModel",
        *,
        prefix_cache_mb: float | str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(pretrained, **options)
        bound = bound_bytes(prefix_cache_mb, self.device)
        engine = Engine(self.model, self.device, self.mixed_precision_dtype)
        obstacle = ""
        if self.world_size > 1 and self.batch_size == "auto":
            # Ranks choose batch sizes together, so none may leave them out.
            obstacle = "batch_size=auto with several processes"
        self.sharing = Sharing(engine, bound, obstacle)
        dtype = self.model.dtype
        if self.device.type == "cpu" and lacks_instructions(dtype):
            self.sharing.warn(
                f"this processor has no instructions for {str(dtype).removeprefix('torch.')}, so "
                "prompts take several times as long as with dtype=float32 in --model_args, which "
                "needs twice the memory"
            )
        self._encoded: dict[str, list[int]] = {}

    def loglikelihood(
        self,
        requests: list[Instance],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> list[Answer]:
        """Return ``(log-probability, whether greedy)`` for each context and continuation."""
        texts = []
        for request in requests:
            context, continuation = request.args
            texts += [context.rstrip(), context + continuation]
        self._encode(texts)
        answers: list[Answer] = super().loglikelihood(requests, disable_tqdm=disable_tqdm)
        return answers

    def tok_encode(self, string: str, *args: Any, **options: Any) -> list[int]:
        """Return the text's tokens, as HFLM's."""
        if string in self._encoded and not args and not options:
            return list(self._encoded[string])
        tokens: list[int] = super().tok_encode(string, *args, **options)
        return tokens

    def _encode(self, texts: Iterable[str]) -> None:
        """Encode texts ahead, many in a call; those with a BOS of their own are left to HFLM."""
        self._encoded = {}
        if self.backend != "causal" or not getattr(self.tokenizer, "is_fast", False):
            return
        bos_texts = (self.tokenizer.decode(self.prefix_token_id), self.tokenizer.bos_token)
        beginnings = tuple(filter(None, bos_texts))
        to_encode = []
        for text in dict.fromkeys(texts):
            if text and not text.startswith(beginnings):
                to_encode.append(text)
        options = {}
        if self.add_bos_token is not None:
            options["add_special_tokens"] = self.add_bos_token
        for begin in range(0, len(to_encode), TEXTS):
            batch = to_encode[begin : begin + TEXTS]
            ids = self.tokenizer(batch, **options)["input_ids"]
            self._encoded.update(zip(batch, ids, strict=True))

    def _loglikelihood_tokens(
        self,
        requests: list[TokenRequest],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
        override_bs: int | None = None,
    ) -> list[Answer]:
        self._encoded = {}
        leaves: list[Leaf] = []
        # lm-eval's rolling log-likelihood comes with a batch size of its own: its windows share
        # nothing.
        if self.backend == "causal" and override_bs is None:
            leaves = self._scored_leaves(requests)
        if leaves:
            with self._progress_bar("loglikelihood", len(requests), disable_tqdm) as bar:
                if self.sharing.pays(leaves):
                    return self._score_tree(requests, leaves, bar)
        hf_answers: list[Answer] = super()._loglikelihood_tokens(
            requests, disable_tqdm=disable_tqdm, override_bs=override_bs
        )
        return hf_answers

    def _score_tree(
        self, requests: list[TokenRequest], leaves: list[Leaf], bar: RequestsBar
    ) -> list[Answer]:
        """Return the answers to requests, computed over their tree."""
        scored = score(
            self.sharing.engine,
            leaves,
            [continuation for _, _, continuation in requests],
            self.sharing.group_tokens,
            self.softmax_dtype,
        )
        answers: dict[int, Answer] = {}
        with self.sharing.engine.attention():
            for number, answer in bar.track(scored):
                answers[number] = answer
                cache_key = requests[number][0]
                if cache_key is not None:
                    self.cache_hook.add_partial("loglikelihood", cache_key, answer)
        return [answers[number] for number in range(len(requests))]

    def _scored_leaves(self, requests: list[TokenRequest]) -> list[Leaf]:
        """Return the tree of the requests; it is empty if ``hf`` refuses any of them."""
        texts = []
        for _, context, continuation in requests:
            if not context or not 0 < len(continuation) <= self.max_length:
                return []
            texts.append(context + continuation)
        sequences = []
        for number, text in enumerate(self._truncate(texts, self.max_length + 1)):
            continuation = requests[number][2]
            # The last token is only predicted.
            sequences.append((number, text[:-1], len(text) - len(continuation) - 1))
        return build_tree(sequences)

    def generate_until(
        self,
        requests: list[Instance],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> list[str]:
        """Return the generated texts, in the order of the requests."""
        groups: dict[str, dict[int, Instance]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(repr(request.args[1]), {})[number] = request
        texts: dict[int, str] = {}
        for group in groups.values():
            texts |= self._generate_group(group, disable_tqdm=disable_tqdm)
        missing = [number for number in range(len(requests)) if number not in texts]
        if missing:
            hf_texts = super().generate_until(
                [requests[number] for number in missing], disable_tqdm=disable_tqdm
            )
            texts.update(zip(missing, hf_texts, strict=True))
        return [texts[number] for number in range(len(requests))]

    def _generate_group(
        self, requests: dict[int, Instance], *, disable_tqdm: bool
    ) -> dict[int, str]:
        """Return the texts of requests with the same settings; none if ``hf`` is to do it."""
        first_request = next(iter(requests.values()))
        settings = dict(normalize_gen_kwargs(first_request.args[1], self.max_gen_toks))
        obstacle = self._generation_obstacle(settings)
        if obstacle:
            self.sharing.warn(f"{obstacle}: left to hf")
            return {}
        length = settings["max_gen_toks"]
        if not 0 < length < self.max_length:
            return {}  # hf says what is wrong
        leaves = self._prompt_leaves(requests, self.max_length - length)
        if not leaves:
            return {}
        with self._progress_bar("generate_until", len(requests), disable_tqdm) as bar:
            if not self.sharing.pays(leaves, length):
                return {}
            return self._generate_tree(requests, leaves, settings, bar)

    def _generate_tree(
        self,
        requests: dict[int, Instance],
        leaves: list[Leaf],
        settings: Mapping[str, Any],
        bar: RequestsBar,
    ) -> dict[int, str]:
        """Return the texts of requests, generated over the tree of their prompts."""
        eos = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
        stop_sequences = handle_stop_sequences(settings["until"], eos=eos)
        end_tokens = self.model.generation_config.eos_token_id
        stops = Stops(
            self.tokenizer, stop_sequences, [] if end_tokens is None else np.ravel(end_tokens)
        )
        generated = generate(
            self.sharing.engine,
            leaves,
            self.sharing.group_tokens,
            self.sharing.max_slots,
            length=settings["max_gen_toks"],
            stops=stops,
        )
        texts: dict[int, str] = {}
        with self.sharing.engine.attention():
            for number, ids in bar.track(generated):
                text = postprocess_generated_text(self.tok_decode(ids), stop_sequences, None)
                texts[number] = text
                self.cache_hook.add_partial("generate_until", requests[number].args, text)
        return texts

    def _generation_obstacle(self, settings: Mapping[str, object]) -> str:
        """Return why requests with these settings are left to ``hf``; "" if they are not."""
        if self.backend != "causal":
            return "generation with an encoder-decoder"
        if self.think_end_token is not None:
            return "think_end_token"
        return settings_obstacle(settings, self.model.generation_config)

    def _prompt_leaves(self, requests: dict[int, Instance], max_tokens: int) -> list[Leaf]:
        """Return the tree of the prompts; it is empty if one of them has no token."""
        prompts = [request.args[0] for request in requests.values()]
        self._encode([] if self.truncation else prompts)
        sequences = []
        for prompt in prompts:
            ids = self._encoded.get(prompt)
            if not ids:
                batch, _ = self.tok_batch_encode([prompt], truncation=self.truncation)
                ids = batch[0].tolist()
            sequences.append(ids)
        self._encoded = {}
        sequences = self._truncate(sequences, max_tokens)
        if not all(sequences):
            return []
        return build_tree(
            (number, ids, len(ids) - 1) for number, ids in zip(requests, sequences, strict=True)
        )

    def _truncate(self, texts: list[list[int]], max_tokens: int) -> list[list[int]]:
        """Return the texts' last tokens, as HFLM takes them."""
        longer = sum(len(text) > max_tokens for text in texts)
        if longer:
            self.sharing.warn(
                f"{longer} of {len(texts)} texts are longer than {max_tokens} tokens: cut on the "
                "left"
            )
        return [text[-max_tokens:] for text in texts]

    @contextmanager
    def _progress_bar(
        self,
        request_type: str,
        total: int,
        disable_tqdm: bool,  # noqa: FBT001
    ) -> Iterator[RequestsBar]:
        """Yield a progress bar, which shows what the engine computes while the block runs."""
        bar = RequestsBar(request_type, total, is_hidden=disable_tqdm or self.rank != 0)
        self.sharing.engine.report = bar.describe
        try:
            yield bar
        finally:
            self.sharing.engine.report = report_nothing
            bar.close()
