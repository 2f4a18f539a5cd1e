"""Tasks that choose the demonstrations of each document, for each of its prompts.

lm-eval draws demonstrations from a split, the same way for every task. Here the task chooses
them per document (:mod:`lm_eval_ext.fewshot`) and lm-eval writes the prompt around them: its
delimiters, chat template, turns, description and system instruction apply as to any few-shot
task. The number of demonstrations is lm-eval's (``--num_fewshot``), and the seed is its few-shot
seed (the fourth of ``--seed``).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from datasets import Dataset

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.exclusions import report_exclusion
from lm_eval_ext.harness.lm_eval_types import Doc, TaskConfig
from lm_eval_ext.harness.task import GroupedGenerationTask, GroupedTask

DEFAULT_SEED = 1234
"""lm-eval's own seed, where the user gives none."""


class Turn(NamedTuple):
    """An input with its answer, as the prompt shows them."""

    input: str
    answer: str


class Prompt(NamedTuple):
    """The content of one request: demonstrations in their order, and the sample's input."""

    demonstrations: Sequence[Turn]
    input: str


class ChosenDocuments(NamedTuple):
    """The documents that :meth:`FewshotTask.choose` made for a number of demonstrations and a seed.

    Attributes:
        documents: The documents with their demonstrations.
        excluded: Ids of samples that are not among them, by cause.
    """

    documents: Dataset
    excluded: Mapping[str, list[str]]


class FewshotTask(GroupedGenerationTask):
    """A task that chooses demonstrations by document; a document may have several prompts.

    Its YAML names the columns of a demonstration's text, ``doc_to_text: input`` and
    ``doc_to_target: answer``, and a positive ``num_fewshot``, which lm-eval would otherwise
    not let the user change. The loaded split holds every sample; :meth:`choose` makes the
    documents from it.
    """

    _seed: int | None = None

    def __init__(self, config: TaskConfig) -> None:
        self._chosen: dict[tuple[int, int], ChosenDocuments] = {}
        super().__init__(config)
        self.sampler = self  # lm-eval asks its sampler for demonstrations
        self.set_fewshot_seed()

    @abstractmethod
    def choose(
        self, samples: Dataset, k: int, seed: int
    ) -> tuple[list[Doc], Mapping[str, Iterable[str]]]:
        """Make documents of samples, with k demonstrations for each of their prompts.

        Returns:
            The documents, and the ids of the samples that are not among them, by cause.
        """

    @abstractmethod
    def prompts(self, doc: Doc) -> list[Prompt]:
        """Return what a document asks, one prompt for each request."""

    def fewshot_docs(self) -> None:
        """Return None: no demonstration is drawn from a split."""

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        """Take lm-eval's few-shot seed, and sign it."""
        self._seed = DEFAULT_SEED if seed is None else seed
        self._signature["seed"] = str(self._seed)

    @property
    def chosen(self) -> ChosenDocuments:
        """The documents for the present number of demonstrations and seed.

        Raises:
            OptionError: No demonstrations are asked for.
            DataError: No sample has enough of them.
        """
        key = (self.config.num_fewshot or 0, self._seed or 0)
        if key not in self._chosen:
            self._chosen[key] = self._choose_or_refuse(*key)
        return self._chosen[key]

    def _choose_or_refuse(self, k: int, seed: int) -> ChosenDocuments:
        name = self.config.task
        if k < 1:
            raise OptionError(
                f"{name} is asked with demonstrations: give --num_fewshot 1 or more, or leave "
                "it out"
            )
        documents, unusable = self.choose(self.dataset[self.config.test_split], k, seed)
        excluded = {cause: sorted(ids) for cause, ids in unusable.items() if ids}
        counts = ", ".join(f"{cause}: {len(ids)}" for cause, ids in excluded.items())
        if not documents:
            raise DataError(
                f"{name}: no sample can be asked with {k} demonstrations ({counts}); give a "
                "smaller --num_fewshot, a larger limit or more data"
            )
        if counts:
            report_exclusion(
                f"{name}: samples that are left out ({counts}); the results file names them"
            )
        return ChosenDocuments(Dataset.from_list(documents), excluded)

    def test_docs(self) -> Dataset:
        """Return the documents; while lm-eval sets the task up, all samples."""
        if self._seed is None:
            return cast(Dataset, self.dataset[self.config.test_split])
        return self.chosen.documents

    def excluded(self) -> dict[str, list[str]]:
        """Return excluded examples, with the samples that have too few demonstrations."""
        return {**super().excluded(), **self.chosen.excluded}

    def fewshot_context(self, doc: Doc, num_fewshot: int, *args: Any, **kwargs: Any) -> list[str]:
        """Return one prompt for each request, written by lm-eval around our demonstrations."""
        write_prompt = super(GroupedTask, self).fewshot_context  # the one for a single prompt
        texts = []
        for prompt in self.prompts(doc):
            # lm-eval writes the prompt and calls sample() meanwhile, which returns these.
            self._shown = [{**doc, **turn._asdict()} for turn in prompt.demonstrations]
            prompt_doc = {**doc, "input": prompt.input}
            texts.append(write_prompt(prompt_doc, num_fewshot, *args, **kwargs))
        return texts

    def sample(self, **_: object) -> list[Doc]:
        """Return the demonstrations of the prompt that lm-eval writes."""
        return self._shown
