"""Tasks that choose the demonstrations of each document, for each of its prompts.

lm-eval draws demonstrations from a split, the same way for every task. Here the task chooses
them per document (:mod:`lm_eval_ext.fewshot`) and lm-eval writes the prompt around them: its
delimiters, chat template, turns, description and system instruction apply as to any few-shot
task. How many is lm-eval's number of few-shot examples (``--num_fewshot``), and the seed is
its few-shot seed (the fourth of ``--seed``).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from datasets import Dataset

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.task import GroupedGenerationTask, GroupedTask
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

DEFAULT_SEED = 1234
"""lm-eval's own, where the user gives none."""

TOO_FEW = "too_few_demonstrations"
"""Why a sample is not asked."""


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
        documents: The task's documents.
        left_out: Ids of samples that are not among them, by cause.
    """

    documents: Dataset
    left_out: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, documents: list[dict[str, Any]], too_few: Iterable[str]) -> "Chosen":
        """Makes it from documents and the ids of samples with too few demonstrations."""
        short = sorted(too_few)
        return cls(Dataset.from_list(documents), {TOO_FEW: short} if short else {})


class ChosenSampler:
    """Replaces lm-eval's sampler: returns the demonstrations that were chosen."""

    def __init__(self) -> None:
        self.given: list[dict[str, str]] = []

    def sample(self, n: int, **_: Any) -> list[dict[str, str]]:
        """Returns the demonstrations of the prompt that is being built, which are n."""
        return self.given

    def set_rnd(self, _rnd: Any) -> None:
        """Does nothing, since no demonstration is drawn here."""


class FewshotTask(GroupedGenerationTask):
    """A task that chooses demonstrations by document; a document may have several prompts.

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
        self.sampler = ChosenSampler()
        self._complete = True

    @abstractmethod
    def choose(self, samples: Dataset, k: int, seed: int) -> Chosen:
        """Makes the documents, with k demonstrations for each of their prompts."""

    @abstractmethod
    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """What a document asks, one prompt per request."""

    @classmethod
    def check_num_fewshot(cls, name: str, number: int) -> None:
        """Refuses 0: there would be nothing to choose."""
        if number < 1:
            raise OptionError(
                f"{name} is asked with demonstrations: give --num_fewshot 1 or more, or leave it "
                "out"
            )

    def fewshot_docs(self) -> None:
        """Returns None: no demonstration is drawn from a split."""

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        """Takes lm-eval's few-shot seed."""
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
            self.check_num_fewshot(self.config.task, key[0])
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

    def test_docs(self) -> Dataset:
        """The documents; while lm-eval sets the task up, all samples."""
        if not self._complete:
            return cast(Dataset, self.dataset[self.config.test_split])
        return self.chosen.documents

    def not_scorable(self) -> dict[str, list[str]]:
        """Includes the samples that have too few demonstrations."""
        chosen = {cause: list(ids) for cause, ids in self.chosen.left_out.items()}
        return {**super().not_scorable(), **chosen}

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file; the seed is that of the demonstrations."""
        dumped: dict[str, Any] = super().dump_config()
        dumped["metadata"]["signature"]["seed"] = str(self._seed)
        return dumped

    def fewshot_context(
        self, doc: dict[str, Any], num_fewshot: int, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Returns one prompt per request, written by lm-eval around our demonstrations."""
        write = super(GroupedTask, self).fewshot_context  # the one for a single prompt
        written = []
        for prompt in self.prompts(doc):
            self.sampler.given = [
                {**doc, "input": turn.input, "answer": turn.answer}
                for turn in prompt.demonstrations
            ]
            written.append(write({**doc, "input": prompt.input}, num_fewshot, *args, **kwargs))
        return written
