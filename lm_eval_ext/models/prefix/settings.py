"""Which generation settings the packs can honour; with any other, ``hf`` generates."""

from typing import Any

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
"""Keys of a model's generation_config that don't change what lm-eval's greedy decoding says."""


def obstacle(request: dict[str, Any], config: Any) -> str:
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
