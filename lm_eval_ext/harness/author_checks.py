"""Checks of a task file and its documents, which run before any model is loaded."""

from statistics import mode
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.lm_eval_types import TaskConfig

if TYPE_CHECKING:
    from datasets import Dataset


def problem_of_task(
    config: TaskConfig, card: Card, documents: "Dataset", options: object, *, grouped: bool
) -> str:
    """Return the first thing that is wrong with a task file or its documents; "" if all is well.

    Args:
        config: The task's keys.
        card: The benchmark's card.
        documents: The split ``test``.
        options: The loading function's options.
        grouped: Whether the task's class takes several prompts for each document.
    """
    if not callable(config.get("process_results")):
        return "process_results must name a scoring function"
    if config.get("doc_to_text") is None:
        return "doc_to_text is missing"
    problem = _missing_column(config, card, documents) or _wrong_class(config, documents, grouped)
    if problem or card.name in cards():
        return problem
    return _problem_of_new_benchmark(config, documents, options)


def _missing_column(config: TaskConfig, card: Card, documents: "Dataset") -> str:
    columns = {
        "cluster": card.cluster.column,
        "doc_to_text": config["doc_to_text"],
        "doc_to_target": config["doc_to_target"],
    }
    for key, name in columns.items():
        if str(name).isidentifier() and name not in documents.column_names:
            # lm-eval would take the name itself for the prompt or the answer.
            available = ", ".join(documents.column_names) or "none, since there are no documents"
            return f"{key}: documents have no column {name}; they have: {available}"
    return ""


def _wrong_class(config: TaskConfig, documents: "Dataset", grouped: bool) -> str:  # noqa: FBT001
    column = config["doc_to_text"]
    has_several_prompts = isinstance(documents[0].get(column), list)
    takes_several_prompts = grouped and column == "context"
    if has_several_prompts != takes_several_prompts:
        return (
            "several prompts are a list in the column context, with the class "
            "GroupedGenerationTask and doc_to_text: context"
        )
    return ""


def _problem_of_new_benchmark(config: TaskConfig, documents: "Dataset", options: object) -> str:
    """Return what would go wrong later with a benchmark that does not ship."""
    if not isinstance(config["metadata"].get("version"), str):
        return 'metadata has no version, a text in quotes, such as version: "1.0"'
    for name in vars(options):
        if signature.RESERVED.fullmatch(name):
            return f"the option {name} has the name of a part of the signature; rename it"
    ids = documents["id"][:] if "id" in documents.column_names else []
    if len(set(ids)) < len(ids):
        return f"two documents have the id {mode(ids)!r}; give each its own"
    return ""
