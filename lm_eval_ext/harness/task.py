"""The classes behind our tasks: lm-eval's configurable task, with what its YAML cannot say.

Documents that ask for several texts, which are scored together.
"""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

from lm_eval_ext.harness import metrics as _metrics  # noqa: F401 (registers the aggregations)
from lm_eval_ext.harness import provenance, signature
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.missing import LeftOut

FUNCTIONS = ("custom_dataset", "process_docs", "process_results", "test_split")
"""What a user's own task file may replace, and with it the documents or the scoring."""


class ExtTask(ConfigurableTask):
    """A task of ours.

    Over lm-eval's own it adds: a ``metric_list`` that the scorer computes (``!function``, so
    the names stand in one place), a signature in what it dumps, and documents that are left
    out and counted where an answer is missing.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        config = {key: value for key, value in config.items() if key != "class"}
        metadata = config.get("metadata") or {}
        if callable(config.get("metric_list")):
            config["metric_list"] = config["metric_list"](**metadata)
        super().__init__(config=config)
        # As the file names them: --predict_only replaces them later.
        self._functions = {key: config.get(key) for key in FUNCTIONS}
        load = config["custom_dataset"]
        options = load.options(metadata) if isinstance(load, Loader) else {}
        self._signature = signature.of_task(
            config["task"],
            _as_written(metadata),
            provenance.of_dataset(self.dataset),
            {name.removeprefix(load.prefix): value for name, value in options.items()},
        )

    def build_all_requests(self, *, samples: list[int] | None = None, **kwargs: Any) -> None:
        """Builds the requests, and notes a choice of documents (``--samples``) to sign it.

        lm-eval's key for requests that it keeps (``--cache_requests``) knows the task's name
        and the number of demonstrations, but neither seed, data nor options; so the signature
        goes into the part of the key that is free.
        """
        self._signature.pop("samples", None)
        if samples is not None:
            self._signature["samples"] = signature.digest(sorted(samples))
        if kwargs.get("cache_requests"):
            signed = self.dump_config()["metadata"][signature.METADATA_KEY]
            kwargs["tokenizer_name"] = (
                f"{kwargs.get('tokenizer_name', '')}-{signature.digest(signed)}"
            )
        super().build_all_requests(samples=samples, **kwargs)

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file: the configuration, signed."""
        dumped: dict[str, Any] = super().dump_config()
        signed = {**self._signature, "config": signature.of_config(dumped, self._functions)}
        dumped["metadata"] = {**(dumped.get("metadata") or {}), signature.METADATA_KEY: signed}
        return dumped

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Loads the documents (without lm-eval's warning that metadata could be passed)."""
        load = self.config.custom_dataset
        self.dataset = load(**(self.config.metadata or {}), **(dataset_kwargs or {}))

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        """Builds the document's requests, each marked as one that may be left out."""
        requests = super().construct_requests(doc, ctx, **kwargs)
        requests = requests if isinstance(requests, list) else [requests]
        for request in requests:
            request.may_be_left_out = True
        return requests

    def apply_filters(self) -> list[Instance] | None:
        """Filters the answers, and keeps the mark on those that are not there."""
        filtered: list[Instance] | None = super().apply_filters()
        for instance in self._instances:
            missing = next((r for r in instance.resps if isinstance(r, LeftOut)), None)
            if missing is not None:
                instance.filtered_resps = dict.fromkeys(instance.filtered_resps, missing)
        return filtered

    def process_results(self, doc: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores a document; one with a missing answer counts in no metric.

        lm-eval's ``n-samples`` then shows how many documents were scored.
        """
        if any(isinstance(result, LeftOut) for result in results):
            return {}
        scores: dict[str, Any] = super().process_results(doc, results)
        return scores


class GroupedLoglikelihoodTask(ExtTask):
    """A document is a group of (context, continuation) pairs that are scored together.

    Documents have the parallel columns ``context`` and ``continuation`` (lists of text, a
    continuation with the space before it), and the YAML says ``doc_to_text: context``. Each
    context goes through lm-eval's own prompt building, so a system instruction, a
    description or a chat template applies to it as to any task's.
    """

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> list[str]:
        """Returns one prompt per pair, built once for each distinct context."""
        build = super().fewshot_context
        prompts = {
            context: build({**doc, "context": context}, *args, **kwargs)
            for context in dict.fromkeys(doc["context"])
        }
        return [prompts[context] for context in doc["context"]]

    def construct_requests(
        self, doc: dict[str, Any], ctx: list[str], **kwargs: Any
    ) -> list[Instance]:
        """Builds one loglikelihood request per pair.

        After a chat template the continuation opens the assistant's turn, so it loses the
        space that separates it from the context in running text, as lm-eval drops its
        ``target_delimiter`` there.
        """
        chat = kwargs.pop("apply_chat_template", False)
        kwargs.pop("chat_template", None)
        requests = []
        for index, (prompt, continuation) in enumerate(zip(ctx, doc["continuation"], strict=True)):
            request = Instance(
                request_type="loglikelihood",
                doc=doc,
                arguments=(prompt, continuation.lstrip(" ") if chat else continuation),
                idx=index,
                **kwargs,
            )
            request.may_be_left_out = True
            requests.append(request)
        return requests


def _as_written(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata of the task's file, without what lm-eval lays over it.

    ``--metadata`` and ``--model_args`` go over all keys, and a model may well have an argument
    called ``version``.
    """
    file = Path(str(metadata.get("config_source", "")))
    if not file.is_file():
        return metadata
    written = load_yaml(file, resolve_func=False).get("metadata")
    return written if isinstance(written, dict) else metadata


class GroupedGenerationTask(ExtTask):
    """A document holds several prompts; each is answered with a text of its own.

    Documents have the column ``context``, a list of texts, and the YAML says ``doc_to_text:
    context``. Each goes through lm-eval's own prompt building. ``process_results`` gets the
    answers in their order.
    """

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> list[str]:
        """Returns one prompt per context."""
        build = super().fewshot_context
        return [build({**doc, "context": context}, *args, **kwargs) for context in doc["context"]]

    def construct_requests(
        self, doc: dict[str, Any], ctx: list[str], **kwargs: Any
    ) -> list[Instance]:
        """Builds one generation request per prompt, each marked as one that may be left out."""
        kwargs.pop("apply_chat_template", None)
        kwargs.pop("chat_template", None)
        requests = []
        for index, prompt in enumerate(ctx):
            generation = deepcopy(self.config.generation_kwargs)
            request = Instance(
                request_type="generate_until",
                doc=doc,
                arguments=(prompt, generation),
                idx=index,
                **kwargs,
            )
            request.may_be_left_out = True
            requests.append(request)
        return requests
