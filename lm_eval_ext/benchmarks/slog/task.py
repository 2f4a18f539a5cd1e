"""SLOG's task class."""

from lm_eval_ext.harness.task import ExtTask


class SlogTask(ExtTask):
    """A task that counts the forms which are longer than what the model may write."""

    def scoring_arguments(self) -> dict[str, object]:
        """The limit of this run, which ``--gen_kwargs`` may have changed."""
        return {"most_tokens": (self.config.generation_kwargs or {}).get("max_gen_toks", 0)}
