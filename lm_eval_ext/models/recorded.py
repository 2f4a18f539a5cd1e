"""``--model recorded``: answers from files instead of a model.

So that published outputs can be replayed against our metrics, and old runs scored again
when a metric changes. docs/recorded.md describes the files;
:mod:`lm_eval_ext.models.recorded_files` reads them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar, get_args

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from tqdm import tqdm

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.harness.left_out import LeftOutLogprob, LeftOutText
from lm_eval_ext.log import get_logger
from lm_eval_ext.models.recorded_files import Answers, Key, MatchBy, canonical

logger = get_logger(__name__)

Missing = Literal["error", "skip"]
Conflict = Literal["error", "first", "last"]

QUOTE_LENGTH = 200
"""Characters of a prompt that an error quotes, from its end, where prompts differ."""

Answer = TypeVar("Answer")


class MissingAnswerError(LmEvalExtError):
    """A request is made that the files do not hold, or hold with different answers."""


class RecordedLM(LM):
    """Answers requests from recorded files.

    Args:
        path: A file, a folder (all its ``.jsonl``), a glob pattern, or a list of these.
        missing: What to do about a request that no file holds: ``error`` ends the run and
            quotes it; ``skip`` leaves its document out of every metric and counts it.
        match: How a request finds its answer: by ``arguments`` (prompt and continuation, to
            the letter) or by ``doc`` (the document and the request's place in it), for
            prompts that were formatted by a chat template that is not at hand.
        conflict: What to do where the same request has several different answers: an
            ``error``, or the ``first`` or ``last`` in the order of files and rows.
        others: lm-eval passes ``batch_size``, ``device`` and the like; they change nothing.

    Raises:
        OptionError: For an unknown value or a path where nothing lies.
        DataError: For a row that cannot be read; file and line are named.
    """

    def __init__(
        self,
        path: str | Sequence[str] = "",
        missing: Missing = "error",
        match: MatchBy = "arguments",
        conflict: Conflict = "error",
        **others: Any,
    ) -> None:
        super().__init__()
        for name, value, legal in (
            ("missing", missing, get_args(Missing)),
            ("match", match, get_args(MatchBy)),
            ("conflict", conflict, get_args(Conflict)),
        ):
            if value not in legal:
                raise OptionError(
                    f"--model recorded: {name}={value!r} is not legal; use {' or '.join(legal)}"
                )
        unknown = set(others) - {"batch_size", "max_batch_size", "device"}
        if unknown:
            raise OptionError(
                f"--model recorded: unknown argument {', '.join(sorted(unknown))}; "
                "legal are path, missing, match, conflict"
            )
        self.missing = missing
        self.match = match
        self.conflict = conflict
        self.answers = Answers.read(path, match)
        self._turn: Counter[Key] = Counter()

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
        if self.match != "doc":
            raise OptionError(
                "--model recorded cannot apply the chat template that the answers were made "
                "with; add match=doc to --model_args to find them by document"
            )
        return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in chat_history)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Returns the recorded ``(log-probability, is greedy)`` of each request."""
        return self._answer_all(requests, LeftOutLogprob())

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Returns the recorded log-probability of each text."""
        return self._answer_all(requests, float("nan"))

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Returns the recorded text of each prompt."""
        return self._answer_all(requests, LeftOutText())

    def _answer_all(self, requests: Iterable[Instance], stand_in: Answer) -> list[Answer]:
        requests = list(requests)
        answers = []
        absent = 0
        for request in tqdm(requests, desc="recorded answers", disable=len(requests) < 1000):  # noqa: PLR2004
            found = self._find(request)
            if found is None:
                self._check_may_be_left_out(request)
                absent += 1
                found = stand_in
            else:
                self.cache_hook.add_partial(request.request_type, request.args, found)
            answers.append(found)
        if absent:
            logger.warning(
                "%d of %d requests have no recorded answer; their documents are left out "
                "(missing=skip), see n-samples in the results",
                absent,
                len(answers),
            )
        return answers

    def _find(self, request: Instance) -> Any | None:
        """The recorded answer, or None where there is none."""
        key = self.answers.key(request.request_type, request.args, request.doc, request.idx)
        candidates = self.answers.by_key.get(key) or self.answers.by_doc_part(request)
        if not candidates:
            return None
        turn = self._turn[key]
        self._turn[key] += 1
        if len({canonical(candidate.responses) for candidate in candidates}) > 1:
            same_doc = [
                candidate
                for candidate in candidates
                if candidate.doc is not None and candidate.doc == canonical(request.doc)
            ]
            distinct = {canonical(candidate.responses) for candidate in same_doc}
            if len(distinct) == 1:
                candidates = same_doc
            elif self.conflict == "error":
                raise MissingAnswerError(
                    f"{len(candidates)} different answers are recorded for the request "
                    f"{_quote(request)} ({candidates[0].place} and {candidates[-1].place}); "
                    "add conflict=first or conflict=last to --model_args, or drop one file"
                )
        chosen = candidates[-1 if self.conflict == "last" else 0]
        # A request that repeats (repeats: n) takes its recorded answers in turn.
        return chosen.responses[turn % len(chosen.responses)]

    def _check_may_be_left_out(self, request: Instance) -> None:
        if self.missing == "error":
            raise MissingAnswerError(
                f"no answer is recorded for the {request.request_type} request "
                f"{_quote(request)} of task {request.task_name}; "
                f"{self.answers.summary}; add missing=skip to --model_args to leave such "
                "documents out, or match=doc if only the prompt's form differs"
            )
        if not getattr(request, "may_be_left_out", False):
            raise MissingAnswerError(
                f"no answer is recorded for the request {_quote(request)}, and the task "
                f"{request.task_name} is not of lm-eval-ext: lm-eval would score the document "
                "as wrong instead of leaving it out; record all its answers"
            )


def _quote(request: Instance) -> str:
    texts = [text for text in request.args if isinstance(text, str)]
    return " + ".join(
        repr(text if len(text) <= QUOTE_LENGTH else "…" + text[-QUOTE_LENGTH:]) for text in texts
    )
