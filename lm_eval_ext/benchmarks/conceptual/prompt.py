"""From a sample to an input and an answer: named templates in our own words.

The paper used Promptsource templates and reported the best one per model and dataset. The
template changes scores, so each dataset has several; the first is the default, and :data:`ALL`
asks with all of them. Every template is wrapped in the format of the paper's appendix A
(:func:`framed`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from lm_eval_ext.benchmarks.conceptual.records import DatasetName, Sample
from lm_eval_ext.errors import OptionError

Template: TypeAlias = Callable[[Sample], tuple[str, str]]
"""From a sample to its input and answer."""


def framed(text: str) -> str:
    """Return an input in the paper's format, which the prediction continues."""
    return f"Input: {text} Prediction:"


def with_facts(facts: Iterable[str], text: str) -> str:
    """Put facts before a text, each ending with one period."""
    sentences = [f"{fact.rstrip('. ')}." for fact in facts]
    if not sentences:
        return text
    return f"{' '.join(sentences)}\n{text}"


def _follows(sample: Sample) -> tuple[str, str]:
    answers = {"entailment": "yes", "neutral": "maybe", "contradiction": "no"}
    claim = sample.question.rstrip(".")
    text = f'{sample.context} Does it follow that "{claim}"? Answer yes, no or maybe.'
    return text, answers[sample.answer]


def _true_or_false(sample: Sample) -> tuple[str, str]:
    answers = {"entailment": "true", "neutral": "undecided", "contradiction": "false"}
    text = (
        f"We know: {sample.context} The claim: {sample.question} "
        "Is the claim true, false or undecided?"
    )
    return text, answers[sample.answer]


def _relation(sample: Sample) -> tuple[str, str]:
    text = (
        f"First sentence: {sample.context} Second sentence: {sample.question} "
        "How does the second relate to the first: entailment, contradiction or neutral?"
    )
    return text, sample.answer


def _choose_text(sample: Sample) -> tuple[str, str]:
    options = "; ".join(option.text for option in sample.options)
    return f"{sample.question} Choose one of: {options}.", sample.answer


def _labelled_text(sample: Sample) -> tuple[str, str]:
    return f"{sample.question} {_labelled(sample)}", sample.answer


def _labelled_letter(sample: Sample) -> tuple[str, str]:
    text = f"{sample.question} {_labelled(sample)} Give the label of the right one."
    return text, sample.answer_label


def _labelled(sample: Sample) -> str:
    return " ".join(f"({option.label}) {option.text}" for option in sample.options)


def _text_then_question(sample: Sample) -> tuple[str, str]:
    return f"{sample.context}\nBy these texts, {_uncapital(sample.question)}", sample.answer


def _question_then_text(sample: Sample) -> tuple[str, str]:
    text = f"Answer this question from the texts below: {sample.question}\n{sample.context}"
    return text, sample.answer


def _uncapital(question: str) -> str:
    """Return a question as it stands inside a sentence: a common first word loses its capital."""
    first_word, space, rest = question.partition(" ")
    if first_word.lower() not in _COMMON_FIRST_WORDS:
        return question
    return f"{first_word.lower()}{space}{rest}"


_QUESTION_WORDS = {"what", "which", "who", "whom", "whose", "when", "where", "why", "how"}
_VERBS = {"is", "are", "was", "were", "did", "does", "do", "has", "have"}
_COMMON_FIRST_WORDS = _QUESTION_WORDS | _VERBS | {"in", "the"}


_CHOICE = {"options": _labelled_text, "choose": _choose_text, "letter": _labelled_letter}

TEMPLATES: Mapping[str, Mapping[str, Template]] = {
    "glue": {"follows": _follows, "true_or_false": _true_or_false, "relation": _relation},
    "openbookqa": _CHOICE,
    "hotpotqa": {"text_first": _text_then_question, "question_first": _question_then_text},
    "worldtree": _CHOICE,
    "mini": _CHOICE,
}


ALL = "all"
"""In place of a template's name: every template of the dataset."""

SHOW_LABELS = frozenset(("options", "letter"))
"""Templates that show options with their labels."""


LABELS: Mapping[str, tuple[str, ...]] = {
    "follows": ("yes", "no", "maybe"),
    "true_or_false": ("true", "false", "undecided"),
    "relation": ("entailment", "contradiction", "neutral"),
}
"""By template, the few answers that it asks for where a question has no options."""


def answers_are_labels(dataset: DatasetName, template: str) -> bool:
    """Return whether the template's answers are few and recur in many samples."""
    return dataset == "glue" or template == "letter"


def templates_of(dataset: DatasetName, name: str | None) -> Mapping[str, Template]:
    """Return a dataset's template by name, or all of them; None means the first.

    Raises:
        OptionError: The dataset has no template of that name.
    """
    templates = TEMPLATES[dataset]
    if name == ALL:
        return templates
    if name is None:
        name = next(iter(templates))
    if name not in templates:
        raise OptionError(
            f"no template {name!r} for {dataset}; use {', '.join(templates)} or {ALL} "
            "(--metadata conceptual_template=NAME)"
        )
    return {name: templates[name]}
