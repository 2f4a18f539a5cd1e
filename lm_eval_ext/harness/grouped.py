"""Documents that ask for several texts, which are scored together."""

from copy import deepcopy
from typing import Any

from lm_eval.api.instance import Instance

from lm_eval_ext.harness.task import ExtTask


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
