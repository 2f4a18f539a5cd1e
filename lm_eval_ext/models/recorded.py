"""``--model recorded``: answers from files instead of a model.

Published outputs can be replayed against our metrics, and old runs scored again when a metric
changes. docs/chat.md#recorded-responses describes the files;
:mod:`lm_eval_ext.models.recorded_files` reads them and finds the answer to a request.
"""

from collections import Counter
from typing import Any, Literal

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from tqdm import tqdm

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.harness.missing import (
    MissingAnswer,
    MissingLogprob,
    MissingNumber,
    MissingText,
    is_allowed,
)
from lm_eval_ext.harness.signature import UNKNOWN_TEMPLATE
from lm_eval_ext.log import get_logger
from lm_eval_ext.models.recorded_files import MatchBy, canonical, read_answers
from lm_eval_ext.reading import Strict, checked

logger = get_logger(__name__)

QUOTE_LENGTH = 200
"""Characters of a prompt that an error quotes, from its end, where prompts differ."""


class AnswerError(LmEvalExtError):
    """The files have no answer to a request, or several different ones."""


class Options(Strict):
    """The arguments of ``--model recorded``.

    Attributes:
        path: A file, a folder (all its ``.jsonl``), a glob pattern, or a list of these.
        missing: What to do about a request that no file holds: ``error`` ends the run and
            quotes it; ``skip`` leaves its document out of every metric and counts it.
        match: How a request finds its answer: by ``arguments`` (prompt and continuation,
            exactly) or by ``doc`` (the document and the request's place in it), for
            prompts that were formatted by a chat template that is not available here.
        conflict: What to do where the same request of the same document has several
            different answers: an ``error``, or the ``first`` or ``last`` in the order of
            files and rows.
        batch_size: lm-eval passes it, ``max_batch_size`` and ``device``; they change nothing.
    """

    path: Any = ""
    missing: Literal["error", "skip"] = "error"
    match: MatchBy = "arguments"
    conflict: Literal["error", "first", "last"] = "error"
    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None


class RecordedLM(LM):
    """Answers requests from recorded files. Takes :class:`Options`.

    Raises:
        OptionError: For an unknown option or value, or a path where there is no file.
        DataError: For a row that cannot be read; file and line are named.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = checked(Options, options, "--model recorded")
        self.answers = read_answers(self.options.path, self.options.match)

    @property
    def tokenizer_name(self) -> str:
        """Names the (absent) chat template, as lm-eval asks for one."""
        return "recorded"

    def apply_chat_template(
        self,
        chat_history: list[dict[str, str]],
        add_generation_prompt: bool = True,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> str:
        """Refuses, unless documents are matched, when the prompt's form does not matter."""
        if self.options.match != "doc":
            raise OptionError(
                "--model recorded cannot apply the chat template that the answers were made "
                "with; add match=doc to --model_args to find them by document"
            )
        return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in chat_history)

    def chat_template(self, chat_template: bool | str = False) -> str:  # noqa: FBT001, FBT002
        """Reports an unknown chat template to lm-eval, and so to the signature."""
        return UNKNOWN_TEMPLATE

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Refuses: lm-eval would store placeholders of missing answers as answers.

        Raises:
            OptionError: Always; lm-eval calls this under ``--use_cache`` only.
        """
        raise OptionError(
            "--use_cache gains nothing with --model recorded, whose answers lie in files "
            "already; leave it out"
        )

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Returns the recorded ``(log-probability, is greedy)`` of each request."""
        return self._answer_all(requests, MissingLogprob())

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Returns the recorded log-probability of each text."""
        return self._answer_all(requests, MissingNumber())

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Returns the recorded text of each prompt."""
        return self._answer_all(requests, MissingText())

    def _answer_all(self, requests: list[Instance], placeholder: MissingAnswer) -> list[Any]:
        # A request that is to be answered n times comes n times, as the same object.
        repeat: Counter[int] = Counter()
        answers = []
        absent = 0
        self._differing: set[int] = set()
        for request in tqdm(requests, desc="recorded answers", delay=1):
            responses = self._responses(request)
            if responses is None:
                absent += 1
                answers.append(placeholder)
            else:
                answers.append(responses[repeat[id(request)] % len(responses)])
                repeat[id(request)] += 1
        if absent and absent == len(requests):
            raise AnswerError(
                f"no answer is recorded for any of the {absent} requests; {self.answers.summary}: "
                "are these the answers to this task?"
            )
        if absent:
            logger.warning(
                "%d of %d requests have no recorded answer; their documents are left out "
                "(missing=skip), see n-samples in the results",
                absent,
                len(requests),
            )
        if self._differing:
            logger.warning(
                "%d of %d requests have different recorded answers, and the %s one counts; "
                "without conflict=%s the first of them is an error",
                len(self._differing),
                len(requests),
                self.options.conflict,
                self.options.conflict,
            )
        return answers

    def _responses(self, request: Instance) -> list[Any] | None:
        """The recorded answers, one per repeat, or None where the request is left out."""
        found = self.answers.find(request)
        if not found:
            what = f"the {request.request_type} request {_quote(request)}"
            asked = f"no answer is recorded for {what} of task {request.task_name}"
            if self.options.missing == "error":
                raise AnswerError(
                    f"{asked}; {self.answers.summary}; add missing=skip to --model_args to leave "
                    "such documents out"
                )
            if not is_allowed(request):
                raise AnswerError(
                    f"{asked}, and lm-eval can leave documents out of lm-eval-ext's own tasks "
                    "only: it would score this one as wrong; record all answers to this task"
                )
            return None
        different = len({canonical(one.responses) for one in found})
        if different > 1 and self.options.conflict == "error":
            raise AnswerError(
                f"{different} different answers are recorded for the request "
                f"{_quote(request)} ({found[0].place} and {found[-1].place}); add "
                "conflict=first or conflict=last to --model_args, or drop one file"
            )
        if different > 1:
            self._differing.add(id(request))
        return found[-1 if self.options.conflict == "last" else 0].responses


def _quote(request: Instance) -> str:
    texts = [text for text in request.args if isinstance(text, str)]
    return " + ".join(
        repr(text if len(text) <= QUOTE_LENGTH else "…" + text[-QUOTE_LENGTH:]) for text in texts
    )
