"""``--model recorded`` takes answers from files instead of a model.

Published outputs can be replayed against our metrics, and old runs scored again when a metric
changes. docs/chat.md#recorded-responses describes the files;
:mod:`lm_eval_ext.models.recorded_files` reads them and finds the answer to a request.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

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
from lm_eval_ext.models.recorded_files import MatchBy, Recorded, Response, canonical, read_answers
from lm_eval_ext.reading import Strict, checked
from lm_eval_ext.text import counted, named_briefly

if TYPE_CHECKING:
    from lm_eval.api.model import CacheHook

logger = get_logger(__name__)

QUOTE_LENGTH = 200
"""Characters of a prompt that an error quotes, from its end, where prompts differ."""


class AnswerError(LmEvalExtError):
    """The files have no answer to a request, or several different ones."""


class RecordedOptions(Strict):
    """The arguments of ``--model recorded``.

    Attributes:
        path: A file, a folder (all its ``.jsonl``), a glob pattern, or a list of these.
        missing: The treatment of a request that no file holds: ``error`` ends the run and
            quotes it; ``skip`` leaves its document out of every metric and counts it.
        match: How a request finds its answer: by ``arguments`` (prompt and continuation,
            exactly) or by ``doc`` (the document and the request's place in it), for
            prompts that were formatted by a chat template that is not available here.
        conflict: The treatment of several different answers to the same request of the same
            document: an ``error``, or the ``first`` or ``last`` in the order of
            files and rows.
        batch_size: lm-eval passes it, ``max_batch_size`` and ``device``; they change nothing.
    """

    path: object = ""
    missing: Literal["error", "skip"] = "error"
    match: MatchBy = "arguments"
    conflict: Literal["error", "first", "last"] = "error"
    batch_size: object = None
    max_batch_size: object = None
    device: object = None


class RecordedLM(LM):
    """Answers requests from recorded files. Takes :class:`RecordedOptions`.

    Raises:
        OptionError: An option or value is unknown, or there is no file at the path.
        DataError: A row cannot be read; the line has the file and the row.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = checked(RecordedOptions, options, "--model recorded")
        self.answers = read_answers(self.options.path, self.options.match)

    @property
    def tokenizer_name(self) -> str:
        """Name the (absent) chat template, as lm-eval asks for one."""
        return "recorded"

    def apply_chat_template(
        self,
        chat_history: list[dict[str, str]],
        add_generation_prompt: bool = True,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> str:
        """Refuse unless answers are found by document, whatever the prompt's form."""
        if self.options.match != "doc":
            raise OptionError(
                "--model recorded cannot apply the chat template that the answers were made "
                "with; add match=doc to --model_args to find them by document"
            )
        return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in chat_history)

    def chat_template(self, chat_template: bool | str = False) -> str:  # noqa: FBT001, FBT002
        """Report an unknown chat template to lm-eval, and so to the signature."""
        return UNKNOWN_TEMPLATE

    def set_cache_hook(self, cache_hook: "CacheHook") -> None:
        """Refuse: lm-eval would store placeholders of missing answers as answers.

        Raises:
            OptionError: Always; lm-eval calls this under ``--use_cache`` only.
        """
        raise OptionError(
            "--use_cache gains nothing with --model recorded, whose answers lie in files "
            "already; leave it out"
        )

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Return the recorded ``(log-probability, is greedy)`` of each request."""
        return self._answer_all(requests, MissingLogprob())

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Return the recorded log-probability of each text."""
        return self._answer_all(requests, MissingNumber())

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return the recorded text of each prompt."""
        return self._answer_all(requests, MissingText())

    def _answer_all(self, requests: list[Instance], placeholder: MissingAnswer) -> list[Any]:
        """Return an answer for each request, or the placeholder for a missing one.

        Raises:
            AnswerError: No request has an answer, or no request of a task has one while each
                needs one, or an option makes another problem an error.
        """
        self._check_tasks(requests)
        # A request that is to be answered n times comes n times, as the same object.
        repeats: Counter[int] = Counter()
        conflicts: set[int] = set()
        answers: list[Response | MissingAnswer] = []
        missing = 0
        for request in tqdm(requests, desc="recorded answers", delay=1):
            candidates = self.answers.find(request)
            if not candidates:
                self._check_missing(request)
                missing += 1
                answers.append(placeholder)
                continue
            if self._is_conflict(request, candidates):
                conflicts.add(id(request))
            responses = candidates[-1 if self.options.conflict == "last" else 0].responses
            answers.append(responses[repeats[id(request)] % len(responses)])
            repeats[id(request)] += 1
        if missing:
            logger.warning(
                "%d of %d requests have no recorded answer; their documents are left out "
                "(missing=skip), see n-samples in the results",
                missing,
                len(requests),
            )
        if conflicts:
            logger.warning(
                "%d of %d requests have different recorded answers, and the %s one counts; "
                "without conflict=%s the first of them is an error",
                len(conflicts),
                len(requests),
                self.options.conflict,
                self.options.conflict,
            )
        return answers

    def _check_tasks(self, requests: Sequence[Instance]) -> None:
        """Check that the files are about the tasks: that some requests have an answer.

        Raises:
            AnswerError: No request has one; or, where ``missing`` is an error, none of a task.
        """
        answered_tasks: set[str] = set()
        for request in requests:
            task = str(request.task_name)
            if task not in answered_tasks and self.answers.find(request):
                answered_tasks.add(task)
        unanswered = [
            request for request in requests if str(request.task_name) not in answered_tasks
        ]
        if not unanswered or (answered_tasks and self.options.missing == "skip"):
            return
        tasks = named_briefly(str(request.task_name) for request in unanswered)
        unanswered_in_words = f"{counted(len(unanswered), 'request')} of {tasks}"
        problem = f"no answer is recorded for {unanswered_in_words}; {self.answers.summary}"
        if self.options.match == "arguments":  # the files may be of the task, with other prompts
            request = unanswered[0]
            problem += f"; the first request is {request.request_type} of {_quote(request)}"
        raise AnswerError(problem)

    def _check_missing(self, request: Instance) -> None:
        """Check that a request may lack an answer.

        Raises:
            AnswerError: It may not.
        """
        problem = (
            f"no answer is recorded for the {request.request_type} request {_quote(request)} of "
            f"task {request.task_name}"
        )
        if self.options.missing == "error":
            raise AnswerError(
                f"{problem}; {self.answers.summary}; add missing=skip to --model_args to leave "
                "such documents out"
            )
        if not is_allowed(request):
            raise AnswerError(
                f"{problem}, and lm-eval can leave documents out of lm-eval-ext's own tasks "
                "only: it would score this one as wrong; record all answers to this task"
            )

    def _is_conflict(self, request: Instance, candidates: Sequence[Recorded]) -> bool:
        """Return whether the recorded answers to a request differ.

        Raises:
            AnswerError: They do, and no option says which one counts.
        """
        different = {canonical(candidate.responses) for candidate in candidates}
        if len(different) == 1:
            return False
        if self.options.conflict == "error":
            raise AnswerError(
                f"{len(different)} different answers are recorded for the request "
                f"{_quote(request)} ({candidates[0].position} and {candidates[-1].position}); add "
                "conflict=first or conflict=last to --model_args, or drop one file"
            )
        return True


def _quote(request: Instance) -> str:
    """Return the texts of a request for an error; of long ones their end."""
    quotes = []
    for text in request.args:
        if not isinstance(text, str):
            continue
        if len(text) > QUOTE_LENGTH:
            text = "…" + text[-QUOTE_LENGTH:]  # noqa: PLW2901
        quotes.append(repr(text))
    return " + ".join(quotes)
