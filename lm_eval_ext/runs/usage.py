"""How many tokens a task's requests and answers have, for the results file.

lm-eval logs none. They are counted by the model's own tokenizer after the evaluation, whether an
answer was computed or came from the cache: it is what the task takes, not what this run took.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lm_eval_ext.log import get_logger
from lm_eval_ext.results.files import TOKENS

_log = get_logger(__name__)


def counting(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """lm-eval's ``evaluate``, whose results also have the tokens of each task with samples."""

    def evaluate_and_count(*args: Any, **options: Any) -> Any:
        results = evaluate(*args, **options)
        encode = getattr(options.get("lm"), "tok_encode", None)
        # Other ranks have no results; an API without a tokenizer counts nothing.
        if not results or encode is None or getattr(options["lm"], "tokenizer", None) is None:
            return results
        try:
            results[TOKENS] = {
                task: _count(samples, encode)
                for task, samples in results.get("samples", {}).items()
            }
        except Exception as error:  # noqa: BLE001 - a strange tokenizer must not cost the results
            _log.warning("tokens are not counted: %s", error)
        return results

    return evaluate_and_count


def _count(samples: list[Mapping[str, Any]], encode: Callable[[str], list[int]]) -> dict[str, int]:
    """Tokens of the requests and of the answers; each document once, whatever its filters.

    A context and its continuation are one request, which has one BOS where the tokenizer adds it.
    An answer has none.
    """
    bos = len(encode(""))
    asked = answered = 0
    for sample in samples:
        if sample["filter"] != samples[0]["filter"]:
            continue
        for request in sample["arguments"]:
            asked += len(encode("".join(text for text in request if isinstance(text, str))))
        for answers in sample["resps"]:
            answered += sum(len(encode(text)) - bos for text in answers if isinstance(text, str))
    return {"input": asked, "output": answered}
