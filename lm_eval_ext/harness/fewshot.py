"""Tasks that choose the demonstrations of each document, for each of its prompts.

lm-eval draws demonstrations from a split, the same way for every task. Here the task chooses
them per document (:mod:`lm_eval_ext.fewshot`) and lm-eval writes the prompt around them: its
delimiters, chat template, turns, description and system instruction apply as to any few-shot
task. How many is lm-eval's number of few-shot examples (``--num_fewshot``), and the seed is
its few-shot seed (the fourth of ``--seed``).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from datasets import Dataset

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.task import GroupedGenerationTask, GroupedTask
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

DEFAULT_SEED = 1234
"""lm-eval's own, where the user gives none."""


class Turn(NamedTuple):
    """An input with its answer, as the prompt shows them."""

    input: str
    answer: str


class Prompt(NamedTuple):
    """What one request asks: demonstrations in the order of the prompt, and the sample's input."""

    demonstrations: Sequence[Turn]
    input: str


class Chosen(NamedTuple):
    """The documents for one number of demonstrations and one seed.

    Attributes:
        documents: With their demonstrations.
        left_out: Ids of samples that are not among them, by cause.
    """

    documents: Dataset
    left_out: Mapping[str, list[str]]


class FewshotTask(GroupedGenerationTask):
    """A task that chooses demonstrations by document; a document may have several prompts.

    Its YAML names the columns of a demonstration's text, ``doc_to_text: input`` and
    ``doc_to_target: answer``, and a positive ``num_fewshot``, which lm-eval would otherwise
    not let the user change. The loaded split holds every sample; :meth:`choose` makes the
    documents from it.
    """

    _seed: int | None = None

    def __init__(self, config: dict[str, Any]) -> None:
        self._chosen: dict[tuple[int, int], Chosen] = {}
        super().__init__(config)
        self.sampler = self  # of lm-eval, which asks it for demonstrations
        self.set_fewshot_seed()

    @abstractmethod
    def choose(
        self, samples: Dataset, k: int, seed: int
    ) -> tuple[list[dict[str, Any]], Mapping[str, Iterable[str]]]:
        """Makes documents of samples, with k demonstrations for each of their prompts.

        Returns:
            The documents, and by cause the ids of the samples that are not among them.
        """

    @abstractmethod
    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """What a document asks, one prompt per request."""

    def fewshot_docs(self) -> None:
        """Returns None: no demonstration is drawn from a split."""

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        """Takes lm-eval's few-shot seed, and signs it."""
        self._seed = DEFAULT_SEED if seed is None else seed
        self._signature["seed"] = str(self._seed)

    @property
    def chosen(self) -> Chosen:
        """The documents under the present number of demonstrations and seed.

        Raises:
            OptionError: No demonstrations are asked for.
            DataError: No sample has enough of them.
        """
        name, k, seed = self.config.task, self.config.num_fewshot or 0, self._seed or 0
        if (k, seed) not in self._chosen:
            if k < 1:
                raise OptionError(
                    f"{name} is asked with demonstrations: give --num_fewshot 1 or more, or leave "
                    "it out"
                )
            documents, without = self.choose(self.dataset[self.config.test_split], k, seed)
            left_out = {cause: sorted(ids) for cause, ids in without.items() if ids}
            counted = ", ".join(f"{cause}: {len(ids)}" for cause, ids in left_out.items())
            if not documents:
                raise DataError(
                    f"{name}: no sample can be asked with {k} demonstrations ({counted}); give a "
                    "smaller --num_fewshot, a larger limit or more data"
                )
            if counted:
                _log.warning(
                    "%s: samples that are left out (%s); the results file names them", name, counted
                )
            self._chosen[k, seed] = Chosen(Dataset.from_list(documents), left_out)
        return self._chosen[k, seed]

    def test_docs(self) -> Dataset:
        """The documents; while lm-eval sets the task up, all samples."""
        if self._seed is None:
            return cast(Dataset, self.dataset[self.config.test_split])
        return self.chosen.documents

    def not_scorable(self) -> dict[str, list[str]]:
        """Includes the samples that have too few demonstrations."""
        return {**super().not_scorable(), **self.chosen.left_out}

    def fewshot_context(
        self, doc: dict[str, Any], num_fewshot: int, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Returns one prompt per request, written by lm-eval around our demonstrations."""
        write = super(GroupedTask, self).fewshot_context  # the one for a single prompt
        written = []
        for prompt in self.prompts(doc):
            self._shown = [{**doc, **turn._asdict()} for turn in prompt.demonstrations]
            written.append(write({**doc, "input": prompt.input}, num_fewshot, *args, **kwargs))
        return written

    def sample(self, **_: Any) -> list[dict[str, str]]:
        """The demonstrations of the prompt that lm-eval writes."""
        return self._shown
