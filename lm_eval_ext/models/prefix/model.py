"""``--model hf-prefix``: HFLM that computes every shared prefix once.

Causal models score and generate over trees; with generation settings that :mod:`.passes` cannot
honour (:func:`settings_obstacle`), and for encoder-decoder models, ``hf`` does the work.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import (
    handle_stop_sequences,
    normalize_gen_kwargs,
    postprocess_generated_text,
)
from tqdm import tqdm

from lm_eval_ext.models.prefix.engine import Engine
from lm_eval_ext.models.prefix.passes import Answer, Stops, generate, score
from lm_eval_ext.models.prefix.sharing import Sharing, bound_bytes
from lm_eval_ext.models.prefix.tree import grow

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


def settings_obstacle(request: dict[str, Any], config: Any) -> str:
    """Returns why a request cannot be answered by plain greedy decoding, or an empty text.

    Args:
        request: Normalised generation settings of the request.
        config: The model's ``generation_config``.
    """
    if request.get("do_sample"):
        return "sampling"
    other = sorted(set(request) - PLAIN)
    # A model may ask for a repetition penalty and the like; transformers applies it to greedy
    # decoding as well.
    asked = {key for key, value in config.to_diff_dict().items() if value is not None}
    other += sorted(asked - HARMLESS)
    return f"the generation setting {', '.join(other)}" if other else ""


TEXTS = 256
"""Texts in a call of the tokenizer, which takes a quarter of the time of single calls."""

TokenRequest = tuple[Any, list[int], list[int]]


class PrefixHFLM(HFLM):
    """HFLM's answers, with less computed. Takes HFLM's arguments.

    Args:
        pretrained: As HFLM's.
        prefix_cache_mb: Bound on the memory for keys and values, in MiB; half of the memory
            that is free when None.
        others: All other arguments of HFLM's.

    Raises:
        OptionError: For a bound that isn't a positive number.
    """

    def __init__(
        self, pretrained: Any, *, prefix_cache_mb: float | str | None = None, **others: Any
    ) -> None:
        super().__init__(pretrained, **others)
        bound = bound_bytes(prefix_cache_mb, self.device)
        engine = Engine(self.model, self.device, self.mixed_precision_dtype)
        # Ranks choose batch sizes together, so none may leave them out.
        together = self.world_size > 1 and self.batch_size == "auto"
        self.sharing = Sharing(engine, bound, "batch_size=auto with several processes" * together)
        self._tokens: dict[str, list[int]] = {}

    def loglikelihood(
        self,
        requests: list[Instance],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> list[Answer]:
        """Returns ``(log-probability, whether greedy)`` for each context and continuation."""
        pairs = [request.args for request in requests]
        self._encode(text for one, other in pairs for text in (one.rstrip(), one + other))
        answers: list[Answer] = super().loglikelihood(requests, disable_tqdm=disable_tqdm)
        return answers

    def tok_encode(
        self,
        string: str,
        *settings: Any,
        **others: Any,
    ) -> list[int]:
        """Returns the text's tokens, as HFLM's."""
        if string in self._tokens and not settings and not others:
            return list(self._tokens[string])
        tokens: list[int] = super().tok_encode(string, *settings, **others)
        return tokens

    def _encode(self, texts: Iterable[str]) -> None:
        """Encodes texts ahead, many in a call; those with a BOS of their own are left to HFLM."""
        self._tokens = {}
        if self.backend != "causal" or not getattr(self.tokenizer, "is_fast", False):
            return
        beginnings = {self.tokenizer.decode(self.prefix_token_id), self.tokenizer.bos_token or ""}
        wanted = [
            text
            for text in dict.fromkeys(texts)
            if text and not text.startswith(tuple(beginnings - {""}))
        ]
        special = self.add_bos_token
        options = {} if special is None else {"add_special_tokens": special}
        for begin in range(0, len(wanted), TEXTS):
            part = wanted[begin : begin + TEXTS]
            found = self.tokenizer(part, **options)["input_ids"]
            self._tokens.update(zip(part, found, strict=True))

    def _loglikelihood_tokens(
        self,
        requests: list[TokenRequest],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
        override_bs: int | None = None,
    ) -> list[Answer]:
        self._tokens = {}
        # lm-eval's rolling log-likelihood comes with a batch size of its own: its windows share
        # nothing. What hf refuses is hf's, too.
        legal = override_bs is None and all(
            context and 0 < len(continuation) <= self.max_length
            for _, context, continuation in requests
        )
        texts = [context + continuation for _, context, continuation in requests if legal]
        continuations = [continuation for _, _, continuation in requests]
        leaves = grow(  # the last token is only predicted
            (number, text[:-1], len(text) - len(continuations[number]) - 1)
            for number, text in enumerate(self._cut(texts, self.max_length + 1))
        )
        if not leaves or self.backend != "causal" or not self.sharing.pays(leaves):
            found: list[Answer] = super()._loglikelihood_tokens(
                requests, disable_tqdm=disable_tqdm, override_bs=override_bs
            )
            return found
        answers: dict[int, Answer] = {}
        scored = score(
            self.sharing.engine, leaves, continuations, self.sharing.group, self.softmax_dtype
        )
        for number, answer in self._shown(scored, len(requests), "loglikelihood", disable_tqdm):
            answers[number] = answer
            if requests[number][0] is not None:
                self.cache_hook.add_partial("loglikelihood", requests[number][0], answer)
        return [answers[number] for number in range(len(requests))]

    def generate_until(
        self,
        requests: list[Instance],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> list[str]:
        """Returns the generated texts, in the order of the requests."""
        groups: dict[str, dict[int, Instance]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(repr(request.args[1]), {})[number] = request
        texts: dict[int, str] = {}
        for alike in groups.values():
            texts |= self._generate_alike(alike, disable_tqdm)
        if left := [number for number in range(len(requests)) if number not in texts]:
            others = super().generate_until(
                [requests[number] for number in left], disable_tqdm=disable_tqdm
            )
            texts.update(zip(left, others, strict=True))
        return [texts[number] for number in range(len(requests))]

    def _generate_alike(
        self,
        requests: dict[int, Instance],
        disable_tqdm: bool,  # noqa: FBT001
    ) -> dict[int, str]:
        """The texts of requests with the same settings, or none where ``hf`` is to do it."""
        (_, settings), *_ = (request.args for request in requests.values())
        wanted: dict[str, Any] = dict(normalize_gen_kwargs(settings, self.max_gen_toks))
        config = self.model.generation_config
        obstacle = settings_obstacle(wanted, config)
        if self.backend != "causal":
            obstacle = "generation with an encoder-decoder"
        elif self.think_end_token is not None:
            obstacle = "think_end_token"
        if obstacle:
            self.sharing.say(f"{obstacle}: left to hf")
            return {}
        eos = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
        until = handle_stop_sequences(wanted["until"], eos=eos)
        length = wanted["max_gen_toks"]
        if not 0 < length < self.max_length:
            return {}  # hf says what is wrong
        prompts = [request.args[0] for request in requests.values()]
        self._encode(() if self.truncation else prompts)
        encoded = [
            self._tokens.get(prompt)
            or self.tok_batch_encode([prompt], truncation=self.truncation)[0][0].tolist()
            for prompt in prompts
        ]
        tokens = self._cut(encoded, self.max_length - length)
        self._tokens = {}
        leaves = grow(
            (number, one, len(one) - 1) for number, one in zip(requests, tokens, strict=True)
        )
        if not all(tokens) or not self.sharing.pays(leaves, length):
            return {}
        ends = config.eos_token_id
        stops = Stops(self.tokenizer, until, [] if ends is None else np.ravel(ends))
        texts: dict[int, str] = {}
        found = generate(self.sharing.engine, leaves, self.sharing.group, length, stops)
        for number, text in self._shown(found, len(requests), "generate_until", disable_tqdm):
            texts[number] = postprocess_generated_text(self.tok_decode(text), until, None)
            self.cache_hook.add_partial("generate_until", requests[number].args, texts[number])
        return texts

    def _cut(self, texts: list[list[int]], most: int) -> list[list[int]]:
        """The texts' last tokens, as HFLM takes them."""
        if longer := sum(len(text) > most for text in texts):
            self.sharing.say(
                f"{longer} of {len(texts)} texts are longer than {most} tokens: cut on the left"
            )
        return [text[-most:] for text in texts]

    def _shown(self, found: Any, total: int, kind: str, disable: bool) -> Any:  # noqa: FBT001
        """Yields what is found, with a progress bar."""
        off = disable or self.rank != 0
        with self.sharing.engine.attention():
            yield from tqdm(found, total=total, desc=f"Running {kind} requests", disable=off)
