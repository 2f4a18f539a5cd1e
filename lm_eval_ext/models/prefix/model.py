"""``--model hf-prefix``: HFLM that computes every shared prefix once.

Causal models score and generate over packs; with generation settings that packs cannot honour
(:func:`settings_obstacle`), ``hf`` generates. Of encoder-decoder models, equal inputs are encoded
once.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import (
    handle_stop_sequences,
    normalize_gen_kwargs,
    postprocess_generated_text,
)
from tqdm import tqdm

from lm_eval_ext.models.prefix import sharing
from lm_eval_ext.models.prefix.batch_tokenize import (
    Text,
    TokenPrefetch,
    can_batch,
    encode,
    next_batch,
    texts_of,
)
from lm_eval_ext.models.prefix.passes import Answer, Stops, generate, score
from lm_eval_ext.models.prefix.plan import grow
from lm_eval_ext.models.prefix.sharing import Sharing


def call_with_shared_encoder(
    model: Any, inputs: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Returns the decoder's logits for each row, with each distinct row of inputs encoded once."""
    rows, places = torch.unique(torch.stack([inputs, mask], -1), dim=0, return_inverse=True)
    encoded = model.get_encoder()(input_ids=rows[..., 0], attention_mask=rows[..., 1])
    encoded.last_hidden_state = encoded.last_hidden_state.index_select(0, places)
    logits: torch.Tensor = model(encoder_outputs=encoded, attention_mask=mask, labels=labels).logits
    return logits


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


def end_tokens(config: Any) -> list[int]:
    """Returns the token ids after which transformers ends a text."""
    ids = config.eos_token_id
    if ids is None:
        return []
    return [int(ids)] if isinstance(ids, int) else [int(one) for one in ids]


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

    _tokens: TokenPrefetch | None = None

    def __init__(
        self, pretrained: Any, *, prefix_cache_mb: float | str | None = None, **others: Any
    ) -> None:
        super().__init__(pretrained, **others)
        bound = sharing.bound_bytes(prefix_cache_mb, self.device)
        self.sharing = Sharing(self.model, self.device, self.mixed_precision_dtype, bound)

    def loglikelihood(
        self,
        requests: list[Instance],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> list[Answer]:
        """Returns ``(log-probability, whether greedy)`` for each context and continuation."""
        if can_batch(self.tokenizer):
            pairs = (request.args for request in requests)
            texts = texts_of(pairs, causal=self.backend == "causal")
            beginning = self.tokenizer.decode(self.prefix_token_id)
            self._tokens = TokenPrefetch(
                texts, partial(encode, self.tokenizer, beginning, self.add_bos_token)
            )
        try:
            answers: list[Answer] = super().loglikelihood(requests, disable_tqdm=disable_tqdm)
        finally:
            self._tokens = None
        return answers

    def tok_encode(
        self,
        string: str,
        add_special_tokens: bool | None = None,  # noqa: FBT001 (HFLM's signature)
        left_truncate_len: int | None = None,
        **others: Any,
    ) -> list[int]:
        """Returns the text's tokens, as HFLM's."""
        if self._tokens is not None and left_truncate_len is None and not others:
            found = self._tokens.get((string, add_special_tokens))
            if found is not None:
                return found
        tokens: list[int] = super().tok_encode(
            string, add_special_tokens, left_truncate_len, **others
        )
        return tokens

    def _loglikelihood_tokens(
        self,
        requests: list[TokenRequest],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
        override_bs: int | None = None,
    ) -> list[Answer]:
        self._tokens = None
        # lm-eval's rolling log-likelihood comes with a batch size of its own: its windows share
        # nothing.
        if override_bs is not None or not requests:
            return self._hf_tokens(requests, disable_tqdm, override_bs)
        if self.backend != "causal":
            return self._encoder_shared(requests, disable_tqdm)
        inputs = []
        for number, (_, context, continuation) in enumerate(requests):
            # As HFLM: from the left whatever is too long, and the last token is only predicted.
            read = (context + continuation)[-(self.max_length + 1) :][:-1]
            inputs.append((number, read, len(read) - len(continuation)))
        tree = grow(inputs)
        if not self.sharing.pays(tree):
            return self._hf_tokens(requests, disable_tqdm, None)
        answers: dict[int, Answer] = {}
        continuations = [continuation for _, _, continuation in requests]
        found = score(
            self.sharing.engine(),
            tree,
            continuations,
            self.sharing.limits(tree, self.batch_size),
            self.softmax_dtype,
        )
        with self._bar(len(requests), "loglikelihood", disable_tqdm) as bar:
            for number, answer in found:
                answers[number] = answer
                if requests[number][0] is not None:
                    self.cache_hook.add_partial("loglikelihood", requests[number][0], answer)
                bar.update(1)
        return [answers[number] for number in range(len(requests))]

    def generate_until(
        self,
        requests: list[Instance],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> list[str]:
        """Returns the generated texts, in the order of the requests."""
        texts: dict[int, str] = {}
        groups: dict[str, list[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(repr(request.args[1]), []).append(number)
        left: list[int] = []
        for numbers in groups.values():
            found = self._generate_alike([requests[number] for number in numbers], disable_tqdm)
            if found is None:
                left += numbers
            else:
                texts.update(zip(numbers, found, strict=True))
        if left:
            found = super().generate_until(
                [requests[number] for number in left], disable_tqdm=disable_tqdm
            )
            texts.update(zip(left, found, strict=True))
        return [texts[number] for number in range(len(requests))]

    def _generate_alike(self, requests: list[Instance], disable_tqdm: bool) -> list[str] | None:  # noqa: FBT001
        """The texts of requests with the same settings, or None where ``hf`` is to do it."""
        wanted: dict[str, Any] = dict(normalize_gen_kwargs(requests[0].args[1], self.max_gen_toks))
        obstacle = settings_obstacle(wanted, self.model.generation_config)
        if self.backend != "causal":
            obstacle = "generation with an encoder-decoder"
        elif self.think_end_token is not None:
            obstacle = "think_end_token"
        if obstacle:
            self.sharing.say(f"{obstacle}: left to hf")
            return None
        eos = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
        until = handle_stop_sequences(wanted["until"], eos=eos)
        length = wanted["max_gen_toks"]
        assert self.max_length > length, (
            f"max_gen_toks={length} must be less than the model's maximum length {self.max_length}"
        )
        tree = grow(self._prompts(requests, self.max_length - length))
        if not self.sharing.pays(tree, length):
            return None
        stops = Stops(self.tokenizer, until, end_tokens(self.model.generation_config))
        texts: dict[int, str] = {}
        found = generate(
            self.sharing.engine(), tree, self.sharing.limits(tree, self.batch_size, length), stops
        )
        with self._bar(len(requests), "generate_until", disable_tqdm) as bar:
            for number, tokens in found:
                text = postprocess_generated_text(self.tok_decode(tokens), until, None)
                texts[number] = text
                self.cache_hook.add_partial("generate_until", requests[number].args, text)
                bar.update(1)
        return [texts[number] for number in range(len(requests))]

    def _prompts(
        self, requests: Sequence[Instance], longest: int
    ) -> Iterator[tuple[int, list[int], int]]:
        texts: Iterator[Text] = ((request.args[0], None) for request in requests)
        numbers = itertools.count()
        while batch := list(next_batch(texts)):
            for (text, _), known in zip(batch, self._encoded(batch), strict=True):
                tokens = known
                if tokens is None or len(tokens) > longest:
                    ids, _ = self.tok_batch_encode(
                        [text], left_truncate_len=longest, truncation=self.truncation
                    )
                    tokens = ids[0].tolist()
                yield next(numbers), tokens, len(tokens) - 1

    def _encoded(self, texts: list[Text]) -> Sequence[list[int] | None]:
        """The tokens of prompts, or None where only ``tok_batch_encode`` knows them."""
        if self.truncation or not can_batch(self.tokenizer):
            return [None] * len(texts)
        beginning = getattr(self.tokenizer, "bos_token", None)
        return encode(self.tokenizer, beginning, self.add_bos_token, texts)

    def _model_call(
        self,
        inps: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if attn_mask is None or labels is None:
            logits: torch.Tensor = super()._model_call(inps, attn_mask, labels)
            return logits
        with (
            torch.no_grad(),
            torch.autocast(
                self.device.type,
                dtype=self.mixed_precision_dtype,
                enabled=self.mixed_precision_dtype is not None,
            ),
        ):
            return call_with_shared_encoder(self.model, inps, attn_mask, labels)

    def _encoder_shared(
        self,
        requests: list[TokenRequest],
        disable_tqdm: bool,  # noqa: FBT001
    ) -> list[Answer]:
        """Puts requests with equal inputs into the same batches, where they are encoded once."""
        contexts = {tuple(context) for _, context, _ in requests}
        if len(contexts) == len(requests) or isinstance(self.batch_size, str):
            return self._hf_tokens(requests, disable_tqdm, None)
        order = sorted(
            range(len(requests)),
            key=lambda number: (-len(requests[number][1]), requests[number][1]),
        )
        answers: dict[int, Answer] = {}
        with self._bar(len(requests), "loglikelihood", disable_tqdm) as bar:
            for begin in range(0, len(order), self.batch_size):
                numbers = order[begin : begin + self.batch_size]
                found = self._hf_tokens([requests[n] for n in numbers], True, len(numbers))  # noqa: FBT003
                answers.update(zip(numbers, found, strict=True))
                bar.update(len(numbers))
        return [answers[number] for number in range(len(requests))]

    def _hf_tokens(
        self,
        requests: list[TokenRequest],
        disable_tqdm: bool,  # noqa: FBT001
        override_bs: int | None,
    ) -> list[Answer]:
        answers: list[Answer] = super()._loglikelihood_tokens(
            requests, disable_tqdm=disable_tqdm, override_bs=override_bs
        )
        return answers

    def _bar(self, total: int, kind: str, disable: bool) -> Any:  # noqa: FBT001
        return tqdm(total=total, desc=f"Running {kind} requests", disable=disable or self.rank != 0)
