"""The base classes of our tasks, which extend lm-eval's configurable task.

A benchmark with one prompt for each document names :class:`ExtTask` in its YAML; one whose
documents hold several prompts, scored together, names one of the grouped classes. Neither needs
a class of its own (LIEDER has none). A subclass overrides the hooks where metrics, scoring or
signature depend on the loaded documents:

=====================  =====================================================================
``prepare``            computes what the other hooks use, once the data are loaded
``metrics``            the names of the card's metrics that the task has
``judge_answers``      looks at all answers at once, for instance executes them
``scoring_arguments``  keywords of the YAML's scoring function
``score``              scores a document whose answers are all there
``excluded``           the examples that are in no metric, by cause
``sign``               changes the signature, for instance leaves out paths
``chat_instruction``   what a chat model is told before a prompt that says nothing itself
``answer_reader``      what reads the answer out of a response
=====================  =====================================================================
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from datasets import Dataset
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from lm_eval_ext.answers.reader import UNREAD, AnswerReader, ReadAnswer
from lm_eval_ext.answers.reasoning import with_opened_thought
from lm_eval_ext.cards import Card, Trial, card_in, cards
from lm_eval_ext.errors import DataError, OptionError, author_errors
from lm_eval_ext.harness import chat, missing, signature
from lm_eval_ext.harness.author_checks import problem_of_task
from lm_eval_ext.harness.judged import verdict_record
from lm_eval_ext.harness.lm_eval_types import Answer, Doc, TaskConfig
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.metrics import Document, Metrics, Scored, metric_entry
from lm_eval_ext.harness.names import BENCHMARK, CARD, INTERVALS, NOT_SCORABLE, READING, VERDICT
from lm_eval_ext.harness.responses import escape_half_pairs
from lm_eval_ext.harness.row_checks import check_rows
from lm_eval_ext.harness.task_files import ABOUT, TASKS, task_config
from lm_eval_ext.lexicon import FRESH
from lm_eval_ext.stats.table import Row

REPLACEABLE_KEYS = ("custom_dataset", "process_docs", "process_results", "test_split")
"""What a user's own task file may replace, and with it the documents or the scoring."""

DEFAULTS = {"test_split": "test", "num_fewshot": 0, "doc_to_target": ""}
"""The values of lm-eval's keys that a task file does not have."""

CONTEXT = "context"
"""The column of documents with several prompts."""


class ExtTask(ConfigurableTask):
    """A task with one request for each document, and the base of all others.

    To lm-eval's task it adds rows of scores in the samples, and metrics that are the card's
    questions about these rows; a signature in what it dumps; documents with missing answers, which
    count in no metric; and one policy for chat templates (:mod:`.chat`).

    Attributes:
        card: The benchmark's card.
        options: The model of options that the loading function gets.
        dataset: The documents, split ``test``.
        resources: What the loading function loaded beside the documents, such as databases.
    """

    card: Card
    options: object
    resources: object

    _user_stops: object = None
    _chat = False

    def __new__(cls, config: TaskConfig | None = None) -> "ExtTask":
        """Return an instance of the task's own class, where its file holds several tasks."""
        if config is None:  # for a copy
            return super().__new__(cls)  # type: ignore[no-any-return]
        config_of_task = task_config(config)
        task_class = config_of_task.pop("class", cls)
        task = super().__new__(task_class)
        if not isinstance(task, cls):
            raise DataError(
                f"{config_of_task['task']}: its class must derive from its file's, {cls.__name__}"
            )
        task._config = config_of_task
        return task

    def __init__(self, config: TaskConfig) -> None:
        config = {**DEFAULTS, **self._config}
        loader = config.get("custom_dataset")
        if not isinstance(loader, Loader):
            raise DataError(f"{config['task']}: decorate its custom_dataset with loader()")
        self.card = _take_card(config, loader)
        self.options = loader.options(config["metadata"])
        # lm-eval would load the documents after it has read the metric list, which may depend
        # on them.
        loaded = loader.load(config["metadata"])
        self.dataset = loaded.dataset
        self.resources = loaded.resources
        self._excluded = {cause: list(ids) for cause, ids in loaded.excluded.items()}
        self.prepare(config)
        problem = problem_of_task(
            config,
            self.card,
            self.dataset["test"],
            self.options,
            grouped=isinstance(self, GroupedTask),
        )
        if problem:
            raise DataError(f"{config['task']}: {problem}")
        self._run_signature: dict[str, str] = {}
        names = self.metrics() or config.get("metric_list") or list(self.card.metrics)
        self._metrics = Metrics({name: self.card.question_of(name) for name in names})
        config["metric_list"] = [
            metric_entry(name, question) for name, question in self._metrics.questions.items()
        ]
        chat.defer_generation_settings(config["task"])
        super().__init__(config=config)
        # Kept as the file has them: --predict_only and --gen_kwargs replace them later.
        self._replaceable_values = {key: config.get(key) for key in REPLACEABLE_KEYS}
        self._signature = signature.task_signature(
            config["task"], config["metadata"], loaded.provenance, self._signed_options()
        )
        self.sign(self._signature)

    def _signed_options(self) -> dict[str, object]:
        """Return the options by name, without the seed of all benchmarks where none is given."""
        options = dict(vars(self.options))
        if options.get(FRESH) is None:
            options.pop(FRESH, None)
        return options

    def fewshot_docs(self) -> Dataset | None:
        """Return the documents to draw demonstrations from; None without demonstrations.

        lm-eval would read all documents for none.
        """
        if self.config.num_fewshot == 0:
            return None
        demonstrations: Dataset | None = super().fewshot_docs()
        return demonstrations

    def prepare(self, config: TaskConfig) -> None:
        """Hook: compute what the other hooks use, from data, resources and options.

        It may change the configuration that lm-eval will read.
        """

    def metrics(self) -> Sequence[str] | None:
        """Hook: return names of metrics where documents decide about them; None: the YAML's."""
        return None

    def judge_answers(self, answers: Sequence[tuple[Doc, Answer]]) -> Sequence[Answer]:
        """Hook: look at many answers at once, for instance execute them; here nothing happens.

        Called with all answers of the task once they are complete, and with those of a single
        document if lm-eval scores it by itself.

        Args:
            answers: Each with its document; none of them is missing.

        Returns:
            The answers in the same order, those that were judged with their verdict
            (:class:`~lm_eval_ext.harness.judged.JudgedText`).
        """
        return [answer for _, answer in answers]

    def scoring_arguments(self) -> dict[str, object]:
        """Hook: return keywords of the YAML's ``process_results``."""
        return {}

    def score(self, doc: Doc, answers: Sequence[Answer]) -> Sequence[Row] | None:
        """Hook: return the rows of a document whose answers are all there.

        The YAML's function decides. None or no row says that the document cannot be scored; one
        mapping is one row.
        """
        rows = self.config.process_results(doc, answers, **self.scoring_arguments())
        return [rows] if isinstance(rows, Mapping) else rows

    def excluded(self) -> dict[str, list[str]]:
        """Hook: return the ids of the examples that are in no metric, by cause.

        The results file lists them.
        """
        return self._excluded

    def sign(self, parts: dict[str, str]) -> None:
        """Hook: change the task's part of the signature."""

    def chat_instruction(self) -> str | None:
        """Hook: return what a chat model is told before the prompt; None if prompts say it."""
        return None

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader | None:
        """Hook: return what reads the answer out of a response, with a template or without.

        Args:
            doc: The document.
            index: The number of the request in it.

        Returns:
            None if the whole response is the answer. :attr:`has_chat_template` says whether a
            chat template was applied.
        """
        return None

    @property
    def has_chat_template(self) -> bool:
        """Whether the prompts went through a chat template."""
        return self._chat

    def set_config(self, key: str, value: object, update: bool = False) -> None:  # noqa: FBT001, FBT002 (lm-eval's signature)
        """Note that a user gave stop strings: this is how lm-eval merges ``--gen_kwargs``."""
        if key == "generation_kwargs" and isinstance(value, Mapping) and "until" in value:
            self._user_stops = value["until"]
        super().set_config(key, value, update=update)

    def build_all_requests(
        self,
        *,
        limit: int | None = None,
        samples: list[int] | None = None,
        apply_chat_template: bool = False,
        cache_requests: bool = False,
        **kwargs: Any,
    ) -> None:
        """Build the requests, and add to the signature what lm-eval's configuration lacks.

        That is a choice of documents (``--limit``, ``--samples``), and after a chat template how
        answers are read, the instruction, and whether the user gave stop strings: the task's own
        would have been dropped.

        Requests are never kept (``--cache_requests``): lm-eval's key for them knows neither seed,
        data nor options.

        Raises:
            OptionError: More demonstrations are asked for than there are.
        """
        self._check_demonstrations()
        self._chat = apply_chat_template
        self._run_signature = self._sign_run(limit, samples)
        super().build_all_requests(
            limit=limit, samples=samples, apply_chat_template=apply_chat_template, **kwargs
        )
        drops_stops = self._generates_chat and self._user_stops is None
        if self.OUTPUT_TYPE == "generate_until":
            settings = dict(self.config.generation_kwargs)
            if drops_stops:
                settings["until"] = []
            chat.log_generation_settings(self.config.task, settings)
        for request in self._instances:
            missing.allow(request)
            if drops_stops:
                text, generation, *further = request.arguments
                request.arguments = (text, {**generation, "until": []}, *further)

    def _check_demonstrations(self) -> None:
        demonstration_count = self.config.num_fewshot or 0
        split = self.config.fewshot_split
        if split and demonstration_count > len(self.dataset[split]):
            raise OptionError(
                f"{self.config.task} has {len(self.dataset[split])} demonstrations, not "
                f"{demonstration_count}: give a smaller --num_fewshot"
            )

    def _sign_run(self, limit: int | None, samples: list[int] | None) -> dict[str, str]:
        """Return the parts of the signature that depend on the run."""
        parts = {}
        positions = sorted(samples or self._trial(limit))
        if positions:
            parts["samples"] = signature.digest(positions)
        if self._generates_chat:
            parts["answers"] = chat.POLICY
            instruction = self.chat_instruction()
            if instruction:
                parts["instruction"] = signature.digest(instruction)
            if self._user_stops is not None:
                parts["stops"] = "given"
        return parts

    @property
    def _generates_chat(self) -> bool:
        """Whether a chat model writes the answers."""
        return self._chat and self.OUTPUT_TYPE == "generate_until"

    def doc_to_text(self, doc: Doc, doc_to_text: object = None) -> str:
        """Return the prompt's text, after the instruction if there is one."""
        text: str = super().doc_to_text(doc, doc_to_text)
        instruction = self.chat_instruction() if self._generates_chat else None
        return f"{instruction}\n\n{text}" if instruction else text

    def _trial(self, limit: int | None) -> list[int]:
        """Return the positions of the documents that a limit leaves; [] if no limit applies."""
        if not limit or limit >= len(self.eval_docs):
            return []
        trial = self.card.trial or Trial(stratify_by=(self.card.cluster.column,))
        return sorted(islice(trial.order(self.eval_docs), limit))

    def doc_iterator(
        self,
        *,
        rank: int = 0,
        limit: int | None = None,
        world_size: int = 1,
        samples: list[int] | None = None,
    ) -> Iterator[tuple[int, Doc]]:
        """Return the documents to ask with their positions; under a limit spread over all."""
        documents = self.eval_docs
        positions = [] if samples else self._trial(limit)
        if positions:
            pairs = ((position, documents[position]) for position in positions)
            return islice(pairs, rank, None, world_size)
        documents_of_rank: Iterator[tuple[int, Doc]] = super().doc_iterator(
            rank=rank, limit=limit, world_size=world_size, samples=samples
        )
        return documents_of_rank

    def dump_config(self) -> TaskConfig:
        """Return what lm-eval writes into the results file: the configuration, signed."""
        dumped: TaskConfig = super().dump_config()
        config_digest = signature.config_digest(dumped, self._replaceable_values)
        if self._generates_chat and self._user_stops is None:
            # What was really used. The signature already has the task's stop strings and the
            # template.
            dumped["generation_kwargs"] = {**dumped["generation_kwargs"], "until": []}
        shipped_card = cards().get(self.card.name)
        if not shipped_card:
            self._metrics.check(self.config.task, len(self.eval_docs))
        metadata = dict(dumped["metadata"])
        metadata[signature.METADATA_KEY] = {
            **self._signature, **self._run_signature, "config": config_digest
        }  # fmt: skip
        metadata[BENCHMARK] = self.card.name
        notes = {
            NOT_SCORABLE: self.excluded(),
            INTERVALS: self._metrics.intervals([filter_.name for filter_ in self._filters]),
        }
        if not shipped_card or self.card != shipped_card.for_task(self.config.task):
            # The task's own card, or an option that changed what is measured.
            notes[CARD] = self.card.model_dump(mode="json", exclude_defaults=True)
        for key, note in notes.items():
            if note:
                metadata[key] = note
        dumped["metadata"] = metadata
        return dumped

    def aggregation(self) -> dict[str, object]:
        """Return what computes each metric: the value of the card's question."""
        return {**super().aggregation(), **self._metrics.aggregation()}

    def download(self, dataset_kwargs: Mapping[str, object] | None = None, **_: object) -> None:
        """Do nothing: the documents were loaded before lm-eval asks for them."""

    def apply_filters(self) -> list[Instance] | None:
        """Filter the answers, keep the placeholders of missing ones, and have all judged."""
        escape_half_pairs(self._instances)
        filtered: list[Instance] | None = super().apply_filters()
        for instance in self._instances:
            placeholder = missing.find(instance.resps)
            if placeholder is not None:
                instance.filtered_resps = dict.fromkeys(instance.filtered_resps, placeholder)
            elif self.OUTPUT_TYPE == "generate_until":
                self._read_answers(instance)
        if self._generates_chat:
            chat.warn_of_unfinished_thoughts(self.config.task, self._instances)
        if callable(self.config.process_results):  # not under --predict_only
            self._judge_all()
        return filtered

    def _read_answers(self, request: Instance) -> None:
        """Replace the responses of a request by the answers in them."""
        reader = self.answer_reader(request.doc, request.idx)
        if reader is None:
            return
        prompt = request.arguments[0] if self._generates_chat else ""
        for filter_name, response in request.filtered_resps.items():
            reading = reader.explain(with_opened_thought(prompt, response))
            answer = ReadAnswer(reading.answer, reading.summary)
            request.filtered_resps[filter_name] = answer

    def _readings(self, results: Sequence[Answer]) -> list[str]:
        """Return for the log how each answer was read; nothing for a task without a reader."""
        if type(self).answer_reader is ExtTask.answer_reader:
            return []
        return [result.summary if isinstance(result, ReadAnswer) else UNREAD for result in results]

    def _judge_all(self) -> None:
        """Have all complete answers judged, and keep each verdict with its answer."""
        complete = []
        for instance in self._instances:
            for filter_name, answer in instance.filtered_resps.items():
                if missing.find([answer]) is None:
                    complete.append((instance, filter_name, answer))
        judged = self.judge_answers([(instance.doc, answer) for instance, _, answer in complete])
        for (instance, filter_name, _), answer in zip(complete, judged, strict=True):
            instance.filtered_resps[filter_name] = answer

    def process_results(self, doc: Doc, results: Sequence[Answer]) -> dict[str, Any]:
        """Score a document; one with a missing answer counts in no metric.

        lm-eval's ``n-samples`` then shows how many documents were scored.
        """
        if missing.find(results) is not None:
            return {}
        if not callable(self.config.process_results):  # under --predict_only
            scores: dict[str, Any] = super().process_results(doc, results)
            return scores
        ships = self.card.name in cards()
        with author_errors(f"scoring {doc.get('id')} of {self.config.task}", ships=ships):
            answers = self.judge_answers([(doc, answer) for answer in results])
            rows = self.score(doc, answers)
            if not ships:
                check_rows(rows, self._metrics.questions.values())
        if not rows:
            self._metrics.documents_without_rows += 1
            return {}
        is_user_data = self.card.is_user_data(self.config.task)
        clusters = self.card.cluster.names(doc, is_user_data=is_user_data)
        scored = Scored(Document(str(doc.get("id", "")), clusters, rows), self._metrics.questions)
        readings = self._readings(results)
        if readings:
            scored[READING] = readings
        verdict = verdict_record(answers)
        if verdict is not None:
            scored[VERDICT] = verdict
        return scored


def _take_card(config: TaskConfig, loader: Loader[Any]) -> Card:
    """Return a task's card, and remove from its configuration the keys that lm-eval lacks."""
    keys_of_ours = {key: config.pop(key, None) for key in (CARD, TASKS, ABOUT)}
    # A file without a card, as magnifico generate writes, may use a loader that ships.
    shipped_card = cards().get(loader.prefix.rstrip("_"))
    if shipped_card and not keys_of_ours[CARD]:
        card = shipped_card
    else:
        card = card_in({**keys_of_ours, "task": config["task"]})
    return card.for_task(config["task"])


class GroupedTask(ExtTask):
    """A document holds several prompts, whose answers are scored together.

    Documents have the column ``context``, a list of texts, and the YAML says ``doc_to_text:
    context``. Each goes through lm-eval's own prompt building, so a system instruction, a
    description or a chat template applies to it as to any task's. The scoring function gets the
    answers in their order.
    """

    def doc_to_text(self, doc: Doc, doc_to_text: object = None) -> str:
        """Return the text of one prompt; for a whole document, its different prompts joined.

        lm-eval expects a single text here. Requests are made from the prompts one by one
        (:meth:`fewshot_context`).
        """
        contexts = doc.get(CONTEXT)
        if self.config.doc_to_text != CONTEXT or not isinstance(contexts, list):
            return super().doc_to_text(doc, doc_to_text)
        distinct = dict.fromkeys(contexts)
        texts = [
            super(GroupedTask, self).doc_to_text({**doc, CONTEXT: context}, doc_to_text)
            for context in distinct
        ]
        return "\n\n".join(texts)

    def request_prompts(self, doc: Doc, ctx: str | list[str]) -> list[str]:
        """Return one prompt for each request.

        Args:
            doc: The document.
            ctx: The prompts; or the text of :meth:`doc_to_text`, which lm-eval's own tests of
                tasks pass, and which stands for the document's contexts.
        """
        if not isinstance(ctx, str):
            return ctx
        contexts = doc.get(CONTEXT)
        return contexts if isinstance(contexts, list) else [ctx]

    def fewshot_context(self, doc: Doc, *args: Any, **kwargs: Any) -> list[str]:
        """Return one prompt for each context; those of equal contexts are built once."""
        build = super().fewshot_context
        prompts = {}
        for context in dict.fromkeys(doc[CONTEXT]):
            prompts[context] = build({**doc, CONTEXT: context}, *args, **kwargs)
        return [prompts[context] for context in doc[CONTEXT]]


class GroupedLoglikelihoodTask(GroupedTask):
    """A document is a group of (context, continuation) pairs.

    Documents have the parallel columns ``context`` and ``continuation`` (lists of text, a
    continuation with the space before it).
    """

    def construct_requests(self, doc: Doc, ctx: str | list[str], **kwargs: Any) -> list[Instance]:
        """Build one loglikelihood request for each pair.

        After a chat template the continuation opens the assistant's turn, so it loses the
        space that separates it from the context in running text, as lm-eval drops its
        ``target_delimiter`` there.
        """
        after_template = kwargs.pop("apply_chat_template", False)
        kwargs.pop("chat_template", None)
        requests = []
        pairs = zip(self.request_prompts(doc, ctx), doc["continuation"], strict=True)
        for index, (prompt, continuation) in enumerate(pairs):
            text = continuation.lstrip(" ") if after_template else continuation
            requests.append(
                Instance(
                    request_type="loglikelihood",
                    doc=doc,
                    arguments=(prompt, text),
                    idx=index,
                    **kwargs,
                )
            )
        return requests


class GroupedGenerationTask(GroupedTask):
    """Each prompt of a document is answered with a text of its own."""

    def construct_requests(self, doc: Doc, ctx: str | list[str], **kwargs: Any) -> list[Instance]:
        """Build one generation request for each prompt."""
        build = super().construct_requests
        requests = [build(doc, prompt, **kwargs) for prompt in self.request_prompts(doc, ctx)]
        for index, request in enumerate(requests):
            request.idx = index
        return requests
