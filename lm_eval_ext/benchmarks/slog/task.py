"""SLOG's task class."""

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.slog.answers import READERS
from lm_eval_ext.harness.lm_eval_types import Doc
from lm_eval_ext.harness.task import ExtTask


class SlogTask(ExtTask):
    """A task that reads logical forms, and counts those longer than what the model may write."""

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader:
        """Return the reader of the document's notation, with a template and without."""
        del index
        return READERS[doc["notation"]]

    def scoring_arguments(self) -> dict[str, object]:
        """Return the limit of this run, which ``--gen_kwargs`` may have changed."""
        return {"most_tokens": (self.config.generation_kwargs or {}).get("max_gen_toks", 0)}
