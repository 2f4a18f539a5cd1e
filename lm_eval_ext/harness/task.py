"""The base classes of our tasks, which extend lm-eval's configurable task.

A benchmark with one prompt for each document names :class:`ExtTask` in its YAML; one whose
documents hold several prompts, scored together, names one of the grouped classes. Neither needs
a class of its own (LIEDER has none). A subclass overrides the hooks where metrics, scoring or
signature depend on the loaded documents:

=====================  =====================================================================
``prepare``            computes what the other hooks use, once the documents are loaded
``metrics``            the names of the card's metrics that the task has
``scoring_arguments``  keywords of the YAML's scoring function
``score``              scores a document whose answers are all there
``not_scorable``       the examples that are in no metric, by cause
``sign``               changes the signature, for instance leaves out paths
``chat_instruction``   what a chat model is told before a prompt that says nothing itself
``read_chat_answer``   the answer in what a chat model wrote
=====================  =====================================================================
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from statistics import mode
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from lm_eval_ext.cards import Trial, card_in, cards, check_rows
from lm_eval_ext.errors import DataError, OptionError, of_author
from lm_eval_ext.harness import chat, missing, provenance, signature
from lm_eval_ext.harness.declared import ABOUT, TASKS, of_task
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.metrics import Document, Metrics, Scored, entry
from lm_eval_ext.harness.names import BENCHMARK, CARD, INTERVALS, NOT_SCORABLE
from lm_eval_ext.lexicon import FRESH
from lm_eval_ext.stats.table import Row

FUNCTIONS = ("custom_dataset", "process_docs", "process_results", "test_split")
"""What a user's own task file may replace, and with it the documents or the scoring."""

DEFAULTS = {"test_split": "test", "num_fewshot": 0, "doc_to_target": ""}
"""The values of lm-eval's keys that a task file does not have."""


class ExtTask(ConfigurableTask):
    """A task with one request for each document, and the base of all others.

    What it adds to lm-eval's: rows of scores in the samples, and metrics that are the card's
    questions to them; a signature in what it dumps; documents with missing answers, which count in
    no metric; one policy for chat templates (:mod:`.chat`).

    Attributes:
        card: The benchmark's.
        options: The model of options that the loading function gets.
    """

    _given_stops: Any = None
    _chat = False

    def __new__(cls, config: dict[str, Any] | None = None) -> Any:
        """An instance of the task's own class, where its file holds several tasks."""
        if config is None:  # for a copy
            return super().__new__(cls)
        own = of_task(config)
        made = super().__new__(own.pop("class", cls))
        if not isinstance(made, cls):
            raise DataError(f"{own['task']}: its class must derive from its file's, {cls.__name__}")
        made._config = own
        return made

    def __init__(self, config: dict[str, Any]) -> None:
        config = {**DEFAULTS, **self._config}
        load = config.get("custom_dataset")
        if not isinstance(load, Loader):
            raise DataError(f"{config['task']}: decorate its custom_dataset with loader()")
        own = {key: config.pop(key, None) for key in (CARD, TASKS, ABOUT)}
        # A file without a card, as magnifico generate writes, may use a loader that ships.
        ships = None if own[CARD] else cards().get(load.prefix.rstrip("_"))
        self.card = ships or card_in({**own, "task": config["task"]})
        self.options: Any = load.options(config["metadata"])
        # lm-eval would load the documents after it has read the metric list, which may depend
        # on them.
        self.dataset = load(**config["metadata"])
        self.prepare(config)
        for problem in self._problems(config):
            raise DataError(f"{config['task']}: {problem}")
        self._noted: dict[str, str] = {}
        names = self.metrics() or config.get("metric_list") or list(self.card.metrics)
        self._metrics = Metrics({name: self.card.question_of(name) for name in names})
        config["metric_list"] = [entry(*named) for named in self._metrics.questions.items()]
        super().__init__(config=config)
        # As the file has them: --predict_only and --gen_kwargs replace them later.
        self._functions = {key: config.get(key) for key in FUNCTIONS}
        self._signature = signature.of_task(
            config["task"],
            config["metadata"],
            provenance.of_dataset(self.dataset),
            {
                name: value
                for name, value in vars(self.options).items()
                if value is not None or name != FRESH
            },
        )
        self.sign(self._signature)

    def _problems(self, config: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with a file and its documents, before any model is loaded."""
        if not callable(config.get("process_results")):
            yield "process_results must name a scoring function"
        docs, text = self.dataset["test"], config.get("doc_to_text")
        if text is None:
            yield "doc_to_text is missing"
        columns = {"doc_to_text": text, "doc_to_target": config["doc_to_target"]}
        for key, name in {"cluster": self.card.cluster.column, **columns}.items():
            if str(name).isidentifier() and name not in docs.column_names:
                # lm-eval would ask the name itself, or take it for the answer.
                has = ", ".join(docs.column_names) or "none, since there are no documents"
                yield f"{key}: documents have no column {name}; they have: {has}"
        several = isinstance(self, GroupedTask) and text == "context"
        if isinstance(docs[0].get(text), list) is not several:
            yield (
                "several prompts are a list in the column context, with the class "
                "GroupedGenerationTask and doc_to_text: context"
            )
        if self.card.name in cards():
            return
        if not isinstance(config["metadata"].get("version"), str):
            yield 'metadata has no version, a text in quotes, such as version: "1.0"'
        for name in filter(signature.TAKEN.fullmatch, vars(self.options)):
            yield f"the option {name} has the name of a part of the signature; rename it"
        ids = docs["id"][:] if "id" in docs.column_names else []
        if len({*ids}) < len(ids):
            yield f"two documents have the id {mode(ids)!r}; give each its own"

    def fewshot_docs(self) -> Any:
        """None where demonstrations are locked out: lm-eval would read all documents for them."""
        return None if self.config.num_fewshot == 0 else super().fewshot_docs()

    def prepare(self, config: dict[str, Any]) -> None:
        """Hook: computes what the other hooks use, from ``dataset`` and ``options``.

        It may change the configuration that lm-eval will read.
        """

    def metrics(self) -> Sequence[str] | None:
        """Hook: names of metrics where documents decide about them; None leaves it to the YAML."""
        return None

    def scoring_arguments(self) -> dict[str, Any]:
        """Hook: keywords of the YAML's ``process_results``."""
        return {}

    def score(self, doc: dict[str, Any], answers: Sequence[Any]) -> Sequence[Row] | None:
        """Hook: the rows of a document whose answers are all there, by the YAML's function.

        None if it cannot be scored. One mapping is one row.
        """
        rows = self.config.process_results(doc, answers, **self.scoring_arguments())
        return [rows] if isinstance(rows, Mapping) else rows

    def not_scorable(self) -> dict[str, list[str]]:
        """Hook: ids of the examples that are in no metric, by cause, for the results file."""
        return provenance.left_out(self.dataset)

    def sign(self, own: dict[str, str]) -> None:
        """Hook: changes the task's part of the signature."""

    def chat_instruction(self) -> str | None:
        """Hook: what a chat model is told before the prompt; None if prompts say it themselves."""
        return None

    def read_chat_answer(self, answer: str) -> str:
        """Hook: the answer in what a chat model wrote; here all of it, for the filters to read."""
        return answer

    def set_config(self, key: str, value: Any, update: bool = False) -> None:  # noqa: FBT001, FBT002 (lm-eval's signature)
        """Notes that a user gave stop strings: this is how lm-eval merges ``--gen_kwargs``."""
        if key == "generation_kwargs" and isinstance(value, Mapping) and "until" in value:
            self._given_stops = value["until"]
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
        """Builds the requests, and adds to the signature what lm-eval's configuration lacks.

        That is a choice of documents (``--limit``, ``--samples``), and after a chat template how
        answers are read, the instruction, and whether the user gave stop strings: the task's own
        would have been dropped.

        Requests are never kept (``--cache_requests``): lm-eval's key for them knows neither seed,
        data nor options.

        Raises:
            OptionError: More demonstrations are asked for than there are.
        """
        shown, source = self.config.num_fewshot or 0, self.config.fewshot_split
        if source and shown > len(self.dataset[source]):
            raise OptionError(
                f"{self.config.task} has {len(self.dataset[source])} demonstrations, not {shown}: "
                "give a smaller --num_fewshot"
            )
        self._chat = apply_chat_template
        given = self._given_stops is not None
        self._noted = {}
        if chosen := sorted(samples or self._trial(limit)):
            self._noted["samples"] = signature.digest(chosen)
        if self._generates_chat:
            self._noted["answers"] = chat.POLICY
            if told := self.chat_instruction():
                self._noted["instruction"] = signature.digest(told)
            if given:
                self._noted["stops"] = "given"
        super().build_all_requests(
            limit=limit, samples=samples, apply_chat_template=apply_chat_template, **kwargs
        )
        for request in self._instances:
            missing.allow(request)
            if self._generates_chat and not given:
                text, generation, *others = request.arguments
                request.arguments = (text, {**generation, "until": []}, *others)

    @property
    def _generates_chat(self) -> bool:
        """Whether a chat model writes the answers."""
        return self._chat and self.OUTPUT_TYPE == "generate_until"

    def doc_to_text(self, doc: Any, doc_to_text: Any = None) -> Any:
        """The prompt's text, after the instruction if there is one."""
        text = super().doc_to_text(doc, doc_to_text)
        told = self.chat_instruction() if self._generates_chat else None
        return f"{told}\n\n{text}" if told else text

    def _trial(self, limit: int | None) -> list[int]:
        """The places of the documents under a limit; none for all."""
        if not limit or limit >= len(self.eval_docs):
            return []
        spread = self.card.trial or Trial(across=(self.card.cluster.column,))
        return sorted(islice(spread.order(self.eval_docs), limit))

    def doc_iterator(
        self,
        *,
        rank: int = 0,
        limit: int | None = None,
        world_size: int = 1,
        samples: list[int] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """The documents to ask with their places; under a limit spread over all."""
        docs = self.eval_docs
        if not samples and (chosen := self._trial(limit)):
            return islice(((place, docs[place]) for place in chosen), rank, None, world_size)
        found: Iterator[tuple[int, Any]] = super().doc_iterator(
            rank=rank, limit=limit, world_size=world_size, samples=samples
        )
        return found

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file: the configuration, signed."""
        dumped: dict[str, Any] = super().dump_config()
        config = signature.of_config(dumped, self._functions)
        signed = {**self._signature, **self._noted, "config": config}
        if self._generates_chat and self._given_stops is None:
            # As it was used; the signature has the task's own, and that there was a template.
            dumped["generation_kwargs"] = {**dumped["generation_kwargs"], "until": []}
        noted = {
            NOT_SCORABLE: self.not_scorable(),
            INTERVALS: self._metrics.noted([one.name for one in self._filters]),
        }
        shipped = cards().get(self.card.name)
        if self.card != shipped:  # an option may change what is measured
            noted[CARD] = self.card.model_dump(mode="json", exclude_defaults=True)
        if not shipped:
            self._metrics.check(self.config.task, len(self.eval_docs))
        noted = {key: one for key, one in noted.items() if one}
        own = {signature.METADATA_KEY: signed, BENCHMARK: self.card.name}
        dumped["metadata"] = dumped["metadata"] | own | noted
        return dumped

    def aggregation(self) -> dict[str, Any]:
        """By metric, the figure of the card's question."""
        return {**super().aggregation(), **self._metrics.aggregation()}

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Nothing is left to do: the documents were loaded before lm-eval asks for them."""

    def apply_filters(self) -> list[Instance] | None:
        """Filters the answers, and keeps the placeholders of those that are missing."""
        filtered: list[Instance] | None = super().apply_filters()
        for instance in self._instances:
            placeholder = missing.find(instance.resps)
            if placeholder is not None:
                instance.filtered_resps = dict.fromkeys(instance.filtered_resps, placeholder)
            elif self._generates_chat:
                prompt = instance.arguments[0]
                instance.filtered_resps = {
                    name: self.read_chat_answer(chat.continued(prompt, answer))
                    for name, answer in instance.filtered_resps.items()
                }
        if self._generates_chat:
            chat.warn_of_thoughts(self.config.task, self._instances)
        return filtered

    def process_results(self, doc: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores a document; one with a missing answer counts in no metric.

        lm-eval's ``n-samples`` then shows how many documents were scored.
        """
        if missing.find(results) is not None:
            return {}
        if callable(self.config.process_results):
            ships = self.card.name in cards()
            with of_author(f"scoring {doc.get('id')} of {self.config.task}", ships=ships):
                rows = self.score(doc, results)
                if not ships:
                    check_rows(rows, self._metrics.questions.values())
            if not rows:
                self._metrics.without += 1
                return {}
            clusters = self.card.cluster.names(doc, own=self.card.asks_own(self.config.task))
            return Scored(Document(str(doc.get("id", "")), clusters, rows), self._metrics.questions)
        scores: dict[str, Any] = super().process_results(doc, results)  # under --predict_only
        return scores


class GroupedTask(ExtTask):
    """A document holds several prompts, whose answers are scored together.

    Documents have the column ``context``, a list of texts, and the YAML says ``doc_to_text:
    context``. Each goes through lm-eval's own prompt building, so a system instruction, a
    description or a chat template applies to it as to any task's. The scoring function gets the
    answers in their order.
    """

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> list[str]:
        """Returns one prompt per context, built once for each distinct one."""
        build = super().fewshot_context
        prompts = {
            context: build({**doc, "context": context}, *args, **kwargs)
            for context in dict.fromkeys(doc["context"])
        }
        return [prompts[context] for context in doc["context"]]


class GroupedLoglikelihoodTask(GroupedTask):
    """A document is a group of (context, continuation) pairs.

    Documents have the parallel columns ``context`` and ``continuation`` (lists of text, a
    continuation with the space before it).
    """

    def construct_requests(
        self, doc: dict[str, Any], ctx: list[str], **kwargs: Any
    ) -> list[Instance]:
        """Builds one loglikelihood request per pair.

        After a chat template the continuation opens the assistant's turn, so it loses the
        space that separates it from the context in running text, as lm-eval drops its
        ``target_delimiter`` there.
        """
        after_template = kwargs.pop("apply_chat_template", False)
        kwargs.pop("chat_template", None)
        return [
            Instance(
                request_type="loglikelihood",
                doc=doc,
                arguments=(prompt, continuation.lstrip(" ") if after_template else continuation),
                idx=index,
                **kwargs,
            )
            for index, (prompt, continuation) in enumerate(
                zip(ctx, doc["continuation"], strict=True)
            )
        ]


class GroupedGenerationTask(GroupedTask):
    """Each prompt of a document is answered with a text of its own."""

    def construct_requests(
        self, doc: dict[str, Any], ctx: list[str], **kwargs: Any
    ) -> list[Instance]:
        """Builds one generation request per prompt."""
        build = super().construct_requests
        requests = [build(doc, prompt, **kwargs) for prompt in ctx]
        for index, request in enumerate(requests):
            request.idx = index
        return requests
