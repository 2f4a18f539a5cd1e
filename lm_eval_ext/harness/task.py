"""The base classes of our tasks, which extend lm-eval's configurable task.

A benchmark with one prompt for each document names :class:`ExtTask` in its YAML; one whose
documents hold several prompts, scored together, names one of the grouped classes. Neither needs
a class of its own (LIEDER has none). A subclass overrides the hooks where metrics, scoring or
signature depend on the loaded documents:

=====================  =====================================================================
``prepare``            computes what the other hooks use, once the documents are loaded
``metrics``            the names of the card's metrics that the task has
``scoring_arguments``  what the YAML's scoring function gets besides document and answers
``score``              scores a document whose answers are all there
``not_scorable``       the examples that are in no metric, by cause
``sign``               changes the signature, for instance leaves out paths
``chat_instruction``   what a chat model is told before a prompt that says nothing itself
``read_chat_answer``   the answer in what a chat model wrote
=====================  =====================================================================
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from pydantic import ValidationError

from lm_eval_ext.cards import Card, card_in, cards
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.harness import chat, missing, provenance, signature
from lm_eval_ext.harness.declared import ABOUT, TASKS, of_task, written
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.metrics import Document, Metrics, Row, Scored, entry
from lm_eval_ext.harness.names import BENCHMARK, CARD, INTERVALS, NOT_SCORABLE, TRIAL
from lm_eval_ext.harness.trial import Trials
from lm_eval_ext.stats.measures import Question

FUNCTIONS = ("custom_dataset", "process_docs", "process_results", "test_split")
"""What a user's own task file may replace, and with it the documents or the scoring."""


DEFAULTS = {"test_split": "test", "num_fewshot": 0}
"""Of lm-eval's keys, where a task file does not have them."""


class ExtTask(ConfigurableTask):
    """A task with one request for each document, and the base of all others.

    What it adds to lm-eval's: rows of scores in the samples, and metrics that are the card's
    questions to them; a signature in what it dumps; documents with missing answers, which count in
    no metric; one policy for chat templates (:mod:`.chat`).

    Attributes:
        options: The loading function's arguments, by name.
    """

    _given_stops: Any = None
    _limit: int | None = None
    _noted: Mapping[str, str] = MappingProxyType({})
    _chat = False

    def __new__(cls, config: dict[str, Any] | None = None) -> Any:
        """An instance of the task's own class, where its file holds several tasks."""
        if config is None:  # for a copy
            return super().__new__(cls)
        file = Path(str((config.get("metadata") or {}).get("config_source", "")))
        said = written(file, config) if file.is_file() else config
        own = of_task(config, said)
        made = super().__new__(own.pop("class", cls))
        if not isinstance(made, cls):
            raise DataError(f"{own['task']}: its class must derive from its file's, {cls.__name__}")
        made._config = own
        # Without what lm-eval merges into it: --metadata and --model_args overwrite any key, and a
        # model may well have an argument called version.
        listed = (config.get(TASKS) or {}).get(own["task"]) or {}
        both = (said, listed) if TASKS in said else (listed, said)
        made._metadata = {k: v for one in both for k, v in (one.get("metadata") or {}).items()}
        return made

    def __init__(self, config: dict[str, Any]) -> None:
        config = {**DEFAULTS, **self._config}
        metadata = config.get("metadata") or {}
        load = config["custom_dataset"]
        ours = isinstance(load, Loader)
        self.options: dict[str, Any] = load.options(metadata) if ours else {}
        # lm-eval would load the documents after it has read the metric list, which may depend
        # on them.
        self.dataset = load(**metadata, **(config.get("dataset_kwargs") or {}))
        self.prepare(config)
        prefix = load.prefix if ours else ""
        self._card = _card(config, prefix)
        every = list(self._card.metrics) if self._card else []
        names = config["metric_list"] = self.metrics() or config.get("metric_list") or every
        self._metrics: Metrics | None = None
        if self._card and names and all(isinstance(name, str) for name in names):
            asked = {name: self._card.question_of(name) for name in names}
            self._metrics = Metrics(self.questions(asked))
            config["metric_list"] = [entry(*named) for named in self._metrics.questions.items()]
        super().__init__(config=config)
        # As the file has them: --predict_only and --gen_kwargs replace them later.
        self._functions = {key: config.get(key) for key in FUNCTIONS}
        self._trials = Trials(self._card, config["task"])
        self._signature = signature.of_task(
            config["task"],
            self._metadata,
            provenance.of_dataset(self.dataset),
            {name.removeprefix(prefix): value for name, value in self.options.items()},
        )
        self.sign(self._signature)

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

    def questions(self, found: dict[str, Question]) -> dict[str, Question]:
        """Hook: changes the questions behind the metrics, where an option decides."""
        return found

    def scoring_arguments(self) -> dict[str, Any]:
        """Hook: what the YAML's ``process_results`` gets, if it declares keywords of that name."""
        return {}

    def score(
        self, doc: dict[str, Any], answers: Sequence[Any]
    ) -> Sequence[Row] | Mapping[str, Any]:
        """Hook: the rows of a document whose answers are all there, by the YAML's function.

        None if it cannot be scored. A user's own function may return metrics instead.
        """
        function = self.config.process_results
        available = self.scoring_arguments()
        wanted = inspect.signature(function).parameters if available else ()
        scores: Sequence[Row] | Mapping[str, Any] = function(
            doc, answers, **{name: available[name] for name in available if name in wanted}
        )
        return scores

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
        **kwargs: Any,
    ) -> None:
        """Builds the requests, and adds to the signature what lm-eval's configuration lacks.

        That is a choice of documents (``--limit``, ``--samples``), and after a chat template how
        answers are read, the instruction, and whether the user gave stop strings: the task's own
        would have been dropped.

        lm-eval's key for requests that it keeps (``--cache_requests``) knows the task's name
        and the number of demonstrations, but neither seed, data nor options; so the signature
        goes into the part of the key that is free.

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
        self._limit = None if samples else limit
        chosen = sorted(samples) if samples else self._trials.chosen(self.eval_docs, limit)
        noted = {"samples": None if chosen is None else signature.digest(chosen)}
        if self._generates_chat:
            told = self.chat_instruction()
            noted |= {
                "answers": chat.POLICY,
                "instruction": signature.digest(told) if told else None,
                "stops": "given" if given else None,
            }
        self._noted = {name: value for name, value in noted.items() if value is not None}
        if kwargs.get("cache_requests"):
            signed = self.dump_config()["metadata"][signature.METADATA_KEY]
            kwargs["tokenizer_name"] = (
                f"{kwargs.get('tokenizer_name', '')}-{signature.digest(signed)}"
            )
        # Without the limit where the documents are chosen here: of kept requests lm-eval would
        # take the first ones.
        super().build_all_requests(
            limit=limit if chosen is None else None,
            samples=samples,
            apply_chat_template=apply_chat_template,
            **kwargs,
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

    def doc_iterator(
        self,
        *,
        rank: int = 0,
        limit: int | None = None,
        world_size: int = 1,
        samples: list[int] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """The documents to ask with their places; under a limit spread over all (:mod:`.trial`)."""
        docs = self.eval_docs
        chosen = None if samples else self._trials.chosen(docs, limit or self._limit)
        if chosen is None:
            found: Iterator[tuple[int, Any]] = super().doc_iterator(
                rank=rank, limit=limit, world_size=world_size, samples=samples
            )
            return found
        return islice(((place, docs[place]) for place in chosen), rank, None, world_size)

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file: the configuration, signed."""
        dumped: dict[str, Any] = super().dump_config()
        config = signature.of_config(dumped, self._functions)
        signed = {**self._signature, **self._noted, "config": config}
        if self._generates_chat and self._given_stops is None:
            # As it was used; the signature has the task's own, and that there was a template.
            dumped["generation_kwargs"] = {**dumped["generation_kwargs"], "until": []}
        dumped["metadata"] = {**(dumped.get("metadata") or {}), signature.METADATA_KEY: signed}
        if named := self.not_scorable():
            dumped["metadata"][NOT_SCORABLE] = named
        if self._limit:
            dumped["metadata"][TRIAL] = self._trials.note(self.eval_docs)
        if self._metrics and self._card:
            dumped["metadata"][BENCHMARK] = self._card.name
            if self._card.name not in cards():
                own = self._card.model_dump(mode="json", exclude_defaults=True)
                dumped["metadata"][CARD] = own
            filters = [one.name for one in self._filters]
            if noted := self._metrics.noted(filters):
                dumped["metadata"][INTERVALS] = noted
        return dumped

    def aggregation(self) -> dict[str, Any]:
        """By metric, the figure of the card's question."""
        found: dict[str, Any] = super().aggregation()
        return {**found, **self._metrics.aggregation()} if self._metrics else found

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
            rows = self.score(doc, results)
            if isinstance(rows, Mapping):
                return dict(rows)
            if not rows or not self._metrics or not self._card:
                return {}
            own = self._card.asks_own(self.config.task)
            document = Document(
                str(doc.get("id", "")), self._card.cluster.names(doc, own=own), rows
            )
            return Scored(document, self._metrics.questions)
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


def _card(config: dict[str, Any], prefix: str) -> Card | None:
    """The card of the task's file, or of the benchmark that ships with this prefix of keys.

    Keys that lm-eval does not know are taken out of the configuration.
    """
    own = {key: config.pop(key, None) for key in (CARD, TASKS, ABOUT)}
    if not own[CARD]:
        return cards().get(prefix.rstrip("_"))
    shipped = cards().get(own[CARD].get("name"))
    if shipped and shipped.title == own[CARD].get("title"):
        return shipped
    try:
        if shipped:
            raise DataError(f"{shipped.name} is a benchmark that ships; rename yours")
        return card_in({**own, "task": config["task"]})
    except (DataError, ValidationError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise DataError(f"the card of {config['task']}: {problem}") from None
