"""The verdict on one logged sample of a task whose answers are SQL, explained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.api.scoring import load_task
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.lexicon import FRESH
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, read_models, runs_by_model
from lm_eval_ext.results.table import samples, unreadable_sample
from lm_eval_ext.sql.explaining import ExplainedRow, explain_with
from lm_eval_ext.sql.values import Prediction
from lm_eval_ext.text import one_line

BENCHMARK = "magnifico"
"""The benchmark whose answers are SQL."""

_SHOWN_NAMES = 300


@dataclass(frozen=True)
class SampleRef:
    """Which sample of some results is meant.

    Attributes:
        document: The document's id, or its number in lm-eval's log. If it is the id of one sample
            and the number of another, the id counts.
        task: The task; "" if the results have only one with SQL.
        model: The model's label; "" if the results are of only one.
    """

    document: str
    task: str = ""
    model: str = ""


def explain_sample(paths: Sequence[Path], reference: SampleRef) -> ExplainedRow:
    """Return what shows the verdict on a logged sample, judged again as in its run.

    Raises:
        OptionError: The results do not have that sample, or have several.
        DataError: Samples were not logged, or data are missing.
    """
    model, run = _run_of(read_models(paths), reference)
    sample = _sample_of(run, reference.document)
    doc = sample["doc"]
    answers = sample["filtered_resps"]
    query = answers[0] if answers else ""
    if isinstance(query, list):
        query = query[0] if query else ""
    task = load_task(run.task, _options_of(run))
    prediction = Prediction(str(doc["db_id"]).casefold(), str(doc["query"]), str(query))
    title = f"{doc.get('id', sample['doc_id'])} of {run.task}, {model}"
    with task.judge as judge:
        return explain_with(judge, prediction, title)


def _options_of(run: Run) -> dict[str, Any]:
    """Return the task's options in the run.

    lm-eval lays ``--metadata`` over the metadata of the task, and does not write it anywhere else.
    """
    metadata: Mapping[str, Any] = run.config["metadata"]
    return {
        key: value
        for key, value in metadata.items()
        if key == FRESH or key.startswith(f"{BENCHMARK}_")
    }


def _run_of(models: Sequence[Model], reference: SampleRef) -> tuple[str, Run]:
    """Return the model's label and the run that are meant."""
    tasks = []
    for model in models:
        for task, run in model.runs.items():
            if run.card is not None and run.card.name == BENCHMARK:
                tasks.append(task)
    task = _choose("--task", reference.task, list(dict.fromkeys(tasks)))
    runs = runs_by_model(models, task)
    label = _choose("--model", reference.model, list(runs))
    return label, runs[label]


def _choose(option: str, name: str, names: Sequence[str]) -> str:
    """Return the name if it is one of some, or the only one if none is named."""
    if name in names:
        return name
    if not names:
        raise OptionError(f"the results have no task of {BENCHMARK}, whose answers are SQL")
    if not name and len(names) == 1:
        return names[0]
    shown_names = one_line(", ".join(names), limit=_SHOWN_NAMES)
    if not name:
        raise OptionError(f"{option}: name one of {shown_names}")
    raise OptionError(f"{option} {name}: not in the results, which have {shown_names}")


def _sample_of(run: Run, document: str) -> Mapping[str, Any]:
    """Return the logged sample of a document: by its id, or else by its number in lm-eval's log."""
    ids: list[str] = []
    sample_with_number: Mapping[str, Any] | None = None
    for location, sample in samples(run):
        try:
            doc_id = str(sample["doc"].get("id", ""))
            number = str(sample["doc_id"])
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable_sample(location, error) from None
        if document == doc_id:
            return sample
        if document == number and sample_with_number is None:
            sample_with_number = sample
        ids.append(doc_id)
    if sample_with_number is not None:
        return sample_with_number
    hint = ""
    if ids:
        hint = nearest(document, ids) or f"; the first is {ids[0]}"
    raise OptionError(f"--doc {document}: {run.task} has no such sample{hint}")
