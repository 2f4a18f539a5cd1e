"""Documents whose demonstrations we choose, one set for each of their prompts.

lm-eval draws demonstrations from a split, the same way for every task. Here the task chooses
them per document (:mod:`lm_eval_ext.fewshot`) and lm-eval writes the prompt around them: its
delimiters, chat template, turns, description and system instruction apply as to any few-shot
task. How many is lm-eval's number of few-shot examples (``--num_fewshot``), and the seed is
its few-shot seed (the fourth of ``--seed``).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.names import NOT_SCORABLE
from lm_eval_ext.harness.task import GroupedGenerationTask
from lm_eval_ext.log import get_logger

if TYPE_CHECKING:
    from datasets import Dataset


_log = get_logger(__name__)

DEFAULT_SEED = 1234
"""lm-eval's own, where the user gives none."""


@dataclass(frozen=True)
class Turn:
    """An input with its answer, as the prompt shows them."""

    input: str
    answer: str


@dataclass(frozen=True)
class Prompt:
    """What one request asks.

    Attributes:
        demonstrations: In the order of the prompt.
        input: The sample's own.
    """

    demonstrations: tuple[Turn, ...]
    input: str


@dataclass(frozen=True)
class Chosen:
    """The documents for one number of demonstrations and one seed.

    Attributes:
        documents: The task's.
        left_out: Ids of samples that are not among them, by cause.
    """

    documents: "Dataset"
    left_out: Mapping[str, Sequence[str]]


def check_number(kind: Any, name: str, number: int) -> None:
    """Checks a number of demonstrations.

    Args:
        kind: The class of a task, or whatever stands for one.
        name: The task's.
        number: Demonstrations for each prompt.

    Raises:
        OptionError: It is 0 or less, and the task is asked with demonstrations.
    """
    if number < 1 and isinstance(kind, type) and issubclass(kind, DemonstratedTask):
        raise OptionError(
            f"{name} is asked with demonstrations: give --num_fewshot 1 or more, or leave it out"
        )


class GivenDemonstrations:
    """Stands where lm-eval has its sampler, and returns what it was given."""

    def __init__(self) -> None:
        self.given: list[dict[str, str]] = []

    def sample(self, n: int, **_: Any) -> list[dict[str, str]]:
        """Returns the demonstrations of the prompt that is being built."""
        if n != len(self.given):
            raise ValueError(f"{n} demonstrations are asked for, {len(self.given)} were chosen")
        return self.given

    def set_rnd(self, _rnd: Any) -> None:
        """Nothing is drawn here."""


class DemonstratedTask(GroupedGenerationTask):
    """A task that chooses demonstrations by document; several prompts per document.

    Its YAML names the columns of a demonstration's text, ``doc_to_text: input`` and
    ``doc_to_target: answer``, and a positive ``num_fewshot``, which lm-eval would otherwise
    not let the user change. The loaded split holds every sample; :meth:`choose` makes the
    documents from it.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._chosen: dict[tuple[int, int], Chosen] = {}
        self._seed = DEFAULT_SEED
        self._complete = False
        super().__init__(config)
        self.sampler = GivenDemonstrations()
        self._complete = True

    @abstractmethod
    def choose(self, samples: "Dataset", k: int, seed: int) -> Chosen:
        """Makes the documents, with k demonstrations for each of their prompts."""

    @abstractmethod
    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """What a document asks, one prompt per request."""

    def fewshot_docs(self) -> None:
        """None: there is no split that demonstrations could be drawn from blindly."""

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        """Takes lm-eval's seed of demonstrations."""
        self._seed = DEFAULT_SEED if seed is None else seed
        super().set_fewshot_seed(seed)

    @property
    def chosen(self) -> Chosen:
        """The documents under the present number of demonstrations and seed.

        Raises:
            OptionError: No demonstrations are asked for.
            DataError: No sample has enough of them.
        """
        key = (self.config.num_fewshot or 0, self._seed)
        if key not in self._chosen:
            check_number(type(self), self.config.task, key[0])
            chosen = self.choose(self.dataset[self.config.test_split], *key)
            counted = ", ".join(f"{cause}: {len(ids)}" for cause, ids in chosen.left_out.items())
            if not len(chosen.documents):
                raise DataError(
                    f"{self.config.task}: no sample can be asked with {key[0]} demonstrations "
                    f"({counted}); give a smaller --num_fewshot, a larger limit or more data"
                )
            if counted:
                _log.warning(
                    "%s: samples that are left out (%s); the results file names them",
                    self.config.task,
                    counted,
                )
            self._chosen[key] = chosen
        return self._chosen[key]

    def test_docs(self) -> "Dataset":
        """The documents; while lm-eval sets the task up, all samples."""
        if not self._complete:
            return cast("Dataset", self.dataset[self.config.test_split])
        return self.chosen.documents

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file; samples left out are named there."""
        dumped: dict[str, Any] = super().dump_config()
        dumped["metadata"][NOT_SCORABLE] = {
            cause: list(ids) for cause, ids in self.chosen.left_out.items()
        }
        dumped["metadata"]["signature"]["seed"] = str(self._seed)
        return dumped

    def fewshot_context(
        self, doc: dict[str, Any], num_fewshot: int, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Returns one prompt per request, written by lm-eval around our demonstrations."""
        write = super(GroupedGenerationTask, self).fewshot_context
        written = []
        for prompt in self.prompts(doc):
            self.sampler.given = [
                {**doc, "input": turn.input, "answer": turn.answer}
                for turn in prompt.demonstrations
            ]
            written.append(write({**doc, "input": prompt.input}, num_fewshot, *args, **kwargs))
        return written
