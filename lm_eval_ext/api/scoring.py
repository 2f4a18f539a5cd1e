"""A task's documents, and the scores of answers to them that no ``lm_eval`` run gave."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.errors import OptionError, nearest

if TYPE_CHECKING:
    from lm_eval_ext.api.frames import Results


def load_documents(task: str, **metadata: Any) -> list[dict[str, Any]]:
    """The documents of a task, as its prompts, right answers and scores are made from them.

    Args:
        task: The name of one of our tasks (``lm-eval-ext tasks`` lists them).
        metadata: The task's options, as for ``lm_eval --metadata``, such as ``cogs_seed=7``.

    Raises:
        OptionError: There is no such task, or an option is not legal.
        DataError: Data are missing or broken.
    """
    return [dict(doc) for doc in _load(task, metadata).eval_docs]


def score(
    task: str,
    documents: Sequence[Mapping[str, Any]],
    answers: Sequence[Any],
    *,
    chat: bool = False,
    **metadata: Any,
) -> "Results":
    """Scores answers as ``lm_eval`` would have scored them.

    Args:
        task: The name of one of our tasks.
        documents: From :func:`load_documents` with the same options: all, or some.
        answers: One for each document. To one request it is the text that the model wrote; where
            a document has several requests, a list with one for each. Instead of a text LIEDER
            takes a continuation's log-probability. None is a missing answer, whose document then
            counts in no metric.
        chat: Whether a chat model gave the answers, so that they are read as after a chat
            template (docs/chat.md).
        metadata: The task's options.

    Returns:
        Figures with intervals (``to_dataframe()``) and scores per document (``samples(task)``).

    Raises:
        OptionError: Answers or documents do not fit the task, or an option is not legal.
        DataError: Data are missing or broken.
    """
    from lm_eval import __version__, evaluate

    from lm_eval_ext.api.frames import Results
    from lm_eval_ext.harness.signature import UNKNOWN_TEMPLATE
    from lm_eval_ext.models.given import GivenLM
    from lm_eval_ext.results.files import ResultsFile
    from lm_eval_ext.results.models import Model

    loaded = _load(task, metadata)
    given = _by_place(task, list(loaded.eval_docs), documents, answers)
    places = sorted(given)
    some = None if len(places) == len(loaded.eval_docs) else {task: places}
    content = evaluate(
        GivenLM([given[place] for place in places]),
        {"tasks": {task: loaded}, "groups": {}},
        samples=some,
        bootstrap_iters=0,
        apply_chat_template=chat,
    )
    rows = content.pop("samples")[task]
    for row in rows:
        row["arguments"] = {
            f"gen_args_{number}": {f"arg_{place}": part for place, part in enumerate(asked)}
            for number, asked in enumerate(row["arguments"])
        }
    content |= {"config": {}, "model_name": "answers", "lm_eval_version": __version__}
    if chat:
        content["chat_template"] = UNKNOWN_TEMPLATE
    run = ResultsFile(Path("answers"), content)
    return Results([Model("answers", {task: run})], {task: rows})


def _load(name: str, metadata: Mapping[str, Any]) -> Any:
    """The task itself, checked as before a run."""
    from lm_eval_ext.cards import cards
    from lm_eval_ext.harness import preflight
    from lm_eval_ext.runs.tasks import own_manager

    tasks = [task for card in cards().values() for task in card.tasks]
    if name not in tasks:
        groups = {name: of for card in cards().values() for name, of in card.groups.items()}
        if name in groups:
            hint = f"; it is a group: name one of {', '.join(groups[name])}"
        else:
            hint = nearest(name, tasks) or "; lm-eval-ext tasks lists all"
        raise OptionError(f"no task {name!r}{hint}")
    manager = own_manager(metadata=dict(metadata))
    preflight.check(manager, [name], given=metadata)
    return manager.load([name])["tasks"][name]


def _by_place(
    task: str,
    own: Sequence[Mapping[str, Any]],
    documents: Sequence[Mapping[str, Any]],
    answers: Sequence[Any],
) -> dict[int, Any]:
    """The answers by their document's place among the task's own."""
    from lm_eval_ext.harness.signature import digest

    if len(documents) != len(answers) or not documents:
        raise OptionError(
            f"{len(documents)} documents and {len(answers)} answers; give one answer for each of "
            "one or more documents (None where there is none)"
        )
    places = {digest(doc): place for place, doc in enumerate(own)}
    found: dict[int, Any] = {}
    for number, (doc, answer) in enumerate(zip(documents, answers, strict=True)):
        place = places.get(digest(doc))
        if place is None or place in found:
            what = "is not one of the task's" if place is None else "is given twice"
            raise OptionError(
                f"{task}: documents[{number}] {what}; take them from load_documents with the same "
                "options"
            )
        found[place] = answer
    return found
