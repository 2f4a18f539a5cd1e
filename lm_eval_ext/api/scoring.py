"""A task's documents, and scores of answers and of SQL that no ``lm_eval`` run gave."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.errors import OptionError, nearest, writing

if TYPE_CHECKING:
    from pandas import DataFrame

    from lm_eval_ext.api.frames import AnyPath, Results
    from lm_eval_ext.models.precomputed import DocumentAnswers

Document: TypeAlias = Mapping[str, Any]
"""A document of a task with its columns."""


def load_documents(task: str, **metadata: Any) -> list[dict[str, Any]]:
    """Return the documents of a task, from which its prompts, right answers and scores are made.

    Args:
        task: The name of one of our tasks (``lm-eval-ext tasks`` lists them).
        metadata: The task's options, as for ``lm_eval --metadata``, such as ``cogs_seed=7``.

    Raises:
        OptionError: There is no such task, or an option is not legal.
        DataError: Data are missing or broken.
    """
    return [dict(doc) for doc in load_task(task, metadata).eval_docs]


def score(
    task: str,
    documents: Sequence[Document],
    answers: "Sequence[DocumentAnswers]",
    *,
    output: "AnyPath" = "",
    model: str = "answers",
    chat: bool = False,
    **metadata: Any,
) -> "Results":
    """Score answers as ``lm_eval`` would have scored them, and write the same files.

    Args:
        task: The name of one of our tasks.
        documents: From :func:`load_documents` with the same options: all, or some.
        answers: One for each document. To one request it is the text that the model wrote; where
            a document has several requests, a list with one for each. Instead of a text LIEDER
            takes a continuation's log-probability. None is a missing answer, whose document then
            counts in no metric.
        output: A folder for the files, as for ``--output_path``; without one they go with what is
            returned.
        model: The name of what gave the answers.
        chat: Whether a chat model gave the answers, so that they are read as after a chat
            template (docs/chat.md).
        metadata: The task's options.

    Returns:
        Values with intervals (``to_dataframe()``) and scores per document (``samples(task)``).

    Raises:
        OptionError: Answers or documents do not fit the task, or an option is not legal.
        DataError: Data are missing or broken.
    """
    from lm_eval import __version__, evaluate

    from lm_eval_ext.api.frames import Results
    from lm_eval_ext.models.precomputed import PrecomputedLM
    from lm_eval_ext.results.models import read_models

    loaded = load_task(task, metadata)
    answer_at = _answers_by_position(task, list(loaded.eval_docs), documents, answers)
    positions = sorted(answer_at)
    selection = None if len(positions) == len(loaded.eval_docs) else {task: positions}
    content = evaluate(
        PrecomputedLM([answer_at[position] for position in positions]),
        {"tasks": {task: loaded}, "groups": {}},
        samples=selection,
        bootstrap_iters=0,
        apply_chat_template=chat,
    )
    samples = content.pop("samples")
    content |= {"config": {"samples": selection}, "lm_eval_version": __version__}
    temporary = TemporaryDirectory()
    folder = Path(output or temporary.name).expanduser() / model.replace("/", "__")
    file = _write_results(folder, model, content, samples[task], task, chat=chat)
    return Results(read_models([file]), temporary)


def _write_results(
    folder: Path,
    model: str,
    content: dict[str, Any],
    samples: Sequence[Mapping[str, Any]],
    task: str,
    *,
    chat: bool,
) -> Path:
    """Write the files that ``lm_eval --log_samples`` would write; return the results file."""
    from lm_eval.loggers import EvaluationTracker

    from lm_eval_ext.harness.signature import UNKNOWN_TEMPLATE

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    tracker = EvaluationTracker(output_path=str(folder / "results.json"))
    run_config = tracker.general_config_tracker
    run_config.model_name = model
    run_config.chat_template = UNKNOWN_TEMPLATE if chat else None
    tracker.save_results_aggregated(content, {task: samples})
    tracker.save_results_samples(task, samples)
    return folder / f"results_{tracker.date_id}.json"


def load_task(name: str, metadata: Mapping[str, Any]) -> Any:
    """Return a task, checked as before a run.

    Args:
        name: The name of one of our tasks.
        metadata: The task's options, as for ``lm_eval --metadata``.

    Raises:
        OptionError: There is no such task, or an option is not legal.
        DataError: Data are missing or broken.
    """
    from lm_eval_ext.harness import preflight
    from lm_eval_ext.runs.tasks import our_task_manager

    manager = our_task_manager(metadata=dict(metadata))
    if name not in manager.all_subtasks:
        hint = nearest(name, manager.all_subtasks) or "; lm-eval-ext tasks lists all"
        raise OptionError(f"no task {name!r}{hint}")
    preflight.check(manager, [name], metadata_keys=metadata)
    return manager.load([name])["tasks"][name]


def _answers_by_position(
    task: str,
    task_documents: Sequence[Document],
    documents: Sequence[Document],
    answers: "Sequence[DocumentAnswers]",
) -> "dict[int, DocumentAnswers]":
    """Return the answers by their document's position among the task's documents."""
    from lm_eval_ext.harness.signature import digest

    position_of = {digest(document): number for number, document in enumerate(task_documents)}
    digests = [digest(document) for document in documents]
    positions = [position_of[key] for key in digests if key in position_of]
    different = len(set(positions))
    if not documents or different != len(documents) or len(answers) != len(documents):
        raise OptionError(
            f"{task}: {len(documents)} documents, {different} of them different ones of the "
            f"task with these options, and {len(answers)} answers; take one or more of "
            "load_documents, each once, with an answer for each (None where there is none)"
        )
    return dict(zip(positions, answers, strict=True))


def score_sql(
    frame: "DataFrame",
    databases: str | os.PathLike[str],
    *,
    semantics: str = "reference",
    suites: str | os.PathLike[str] | None = None,
    timeout_s: float = 10.0,
    workers: int = 2,
) -> "DataFrame":
    """Execute predicted queries safely and compare their results with those of gold queries.

    Args:
        frame: A frame with the columns ``db_id``, ``gold_sql`` and ``predicted_sql``; a missing
            prediction (None, NaN) counts as an empty one.
        databases: A folder of databases, ``<db_id>/<db_id>.sqlite`` or ``<db_id>.sqlite``, or one
            database by its path or URL (docs/sql.md).
        semantics: The rule by which two results are equal: ``reference``, ``strict``, ``sets``,
            ``spider``, ``spider-distinct`` or ``bird`` (docs/sql.md).
        suites: A folder of test suites, as ``lm-eval-ext magnifico populate`` writes it; None: the
            given databases alone judge.
        timeout_s: Seconds of processor time per query.
        workers: The number of processes that execute queries.

    Returns:
        The same rows with the columns ``status`` (``correct``, ``wrong``, and so on) and
        ``reason``; with suites also ``deciding_database`` and ``original_status``. The signature
        of the comparison is in ``attrs["signature"]``, and lines about predictions that no suite
        judges in ``attrs["remarks"]``.

    Raises:
        OptionError: A column is missing, or an argument is invalid.
        DataError: A database or suite cannot be read or used.
    """
    from lm_eval_ext.sql.predictions import COLUMNS
    from lm_eval_ext.sql.scoring import JudgeOptions, opened_judge, verdict_columns, verdict_record
    from lm_eval_ext.sql.suite_choice import SuiteSource
    from lm_eval_ext.sql.values import Prediction

    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise OptionError(
            f"the frame has no column {', '.join(missing)}; needed are {', '.join(COLUMNS)}"
        )
    source = None if suites is None else SuiteSource(Path(suites))
    options = JudgeOptions(os.fspath(databases), semantics, source, timeout_s, workers)
    texts = frame[list(COLUMNS)].astype("string").fillna("")
    predictions = [Prediction(*row) for row in texts.itertuples(index=False)]
    with opened_judge(options, predictions) as open_judge:
        verdicts = open_judge.judge.judge_all(predictions, progress=None)
    records = [verdict_record(verdict) for verdict in verdicts]
    scored = frame.copy()
    for name in verdict_columns(has_suite=open_judge.has_suite):
        scored[name] = [record[name] for record in records]
    signature = open_judge.signature
    # The version of SQLite, which is the machine's, is in the signature of sql-score only.
    kept_parts = [part for part in signature.split("|") if not part.startswith("sqlite:")]
    scored.attrs["signature"] = "|".join(kept_parts)
    scored.attrs["remarks"] = list(open_judge.remarks)
    return scored
