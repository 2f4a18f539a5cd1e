"""What a chat template changes, the same for every benchmark; docs/chat.md tells users.

- *Prompt.* It becomes the user's turn, unchanged; demonstrations become turns of both.
- *Instruction.* A prompt that says itself what to do gets none. For one that does not
  (``chat_instruction`` of a task), an instruction precedes it in the user's turn.
- *Stop strings.* The task's own are dropped, since an answer may begin with prose, a blank line or
  a code fence; what a user gives with ``--gen_kwargs until=...`` holds.
- *Answer.* A task's reader (``answer_reader``, :mod:`lm_eval_ext.answers`) reads the answer out of
  the response. Without a template it does the same, except where published figures rest on a
  comparison of whole responses.
- *System prompt.* The user's (``--system_instruction``), or none.
"""

import logging
from collections.abc import Iterable

from lm_eval_ext.answers.reasoning import with_opened_thought
from lm_eval_ext.answers.turn import is_unfinished
from lm_eval_ext.harness.lm_eval_types import Request
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

POLICY = "chat-2"
"""The policy's name in signatures of what a chat model generated; a change of any of the above
needs a new one."""


def warn_of_unfinished_thoughts(task: str, requests: Iterable[Request]) -> None:
    """Warn of responses that are nothing but an unfinished thought, and so wrong."""
    responses = []
    for request in requests:
        for response in request.resps:
            responses.append(with_opened_thought(request.arguments[0], str(response)))
    unfinished = sum(is_unfinished(response) for response in responses)
    if unfinished:
        _log.warning(
            "%s: %d of %d answers end before the model has finished thinking; give it more tokens "
            "(--gen_kwargs max_gen_toks=...)",
            task,
            unfinished,
            len(responses),
        )


_SETTINGS = "Using gen_kwargs"
_deferred_tasks: set[str] = set()


def defer_generation_settings(task: str) -> None:
    """Keep lm-eval from logging a task's generation settings before a chat template changes them.

    :func:`log_generation_settings` logs them once it is known whether there is a template.
    """
    logger = logging.getLogger("lm_eval.evaluator")
    if not _deferred_tasks:
        logger.addFilter(_is_no_deferred_setting)
    _deferred_tasks.add(task)


def _is_no_deferred_setting(record: logging.LogRecord) -> bool:
    task, separator, _ = record.getMessage().partition(f": {_SETTINGS}")
    return not (separator and task in _deferred_tasks)


def log_generation_settings(task: str, settings: object) -> None:
    """Log the generation settings of a task as they are used."""
    _log.info("%s: %s: %s", task, _SETTINGS, settings)
