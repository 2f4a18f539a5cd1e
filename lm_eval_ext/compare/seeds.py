"""Mean and spread over seeds: models whose names differ in a seed are one condition."""

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from pydantic.dataclasses import dataclass

from lm_eval_ext.compare.comparison import MEANS, Settings, pooled, questions
from lm_eval_ext.compare.output import Section, markdown, text
from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.align import align
from lm_eval_ext.results.ask import figures, question_of, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model
from lm_eval_ext.stats.intervals import Interval
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import figure, number

_log = get_logger(__name__)

_SEED = re.compile(r"[\s,·_-]*\(?seed[\s_=:-]*(\d+)\)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Value:
    """A score of a condition.

    Attributes:
        seeds: The score of each seed.
        mean: Their mean.
        sd: Their standard deviation, n - 1 below; None for one seed.
        low: Of the 95 % interval of the mean, as ``high``: documents are averaged over seeds and
            clustered as the task's; None where there is none, as for what is no mean.
        high: See ``low``.
    """

    seeds: Mapping[int, float]
    mean: float
    sd: float | None
    low: float | None = None
    high: float | None = None

    def told(self, unit: str = "share") -> str:
        """Mean ± standard deviation and interval."""
        spread = "" if self.sd is None else f" ± {number(self.sd, unit)}"
        bounds = f" [{number(self.low, unit)}, {number(self.high, unit)}]"
        return f"{number(self.mean, unit)}{spread}{'' if self.low is None else bounds}"


def value_of(seeds: Mapping[int, float], bounds: Interval | None = None) -> Value:
    """Mean and standard deviation over seeds."""
    sd = stdev(seeds.values()) if len(seeds) > 1 else None
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    return Value(dict(seeds), fmean(seeds.values()), sd, low, high)


def interval_of(task: str, runs: Mapping[str, ResultsFile], question: Question) -> Interval | None:
    """Of the mean over runs; None, with a warning, for what is no mean of the same documents."""
    try:
        aligned = align(task, runs)
        known = all(recomputes(runs[one], task, own, question) for one, own in aligned.items())
        if question.measure.statistic not in MEANS or not known:
            return None
        found = figure(*pooled(list(aligned.values()), question))
    except LmEvalExtError as error:
        _log.warning("%s; no interval", error)
        return None
    if found.low is None or found.high is None or found.method is None:
        return None
    return Interval(found.low, found.high, found.method)  # type: ignore[arg-type]


def of_metric(task: str, metric: str, runs: Mapping[int, ResultsFile]) -> Value:
    """A metric's values by seed, with the interval of their mean.

    Raises:
        OptionError: A run lacks the metric, or it is not defined.
    """
    seeds: dict[int, float] = {}
    for seed, run in runs.items():
        found = run.scores(task).get(metric)
        if found is None or found.value is None:
            names = ", ".join(run.scores(task))
            raise OptionError(f"{run.path}: {task} has no value of {metric}; it has {names}")
        seeds[seed] = found.value
    question = question_of(next(iter(runs.values())), task, metric)
    return value_of(seeds, interval_of(task, {str(s): run for s, run in runs.items()}, question))


def table(models: Sequence[Model], tasks: Sequence[str], settings: Settings, format_: str) -> str:
    """Mean ± standard deviation over seeds, with the interval of the mean.

    Raises:
        OptionError: No two models differ in their seed alone, or the format is not one of text,
            markdown, csv and json.
        DataError: Samples are missing or cannot be read.
    """
    import pandas as pd

    conditions: dict[str, dict[int, Model]] = {}
    for model in models:
        if found := _SEED.search(model.label):
            conditions.setdefault(model.label[: found.start()], {})[int(found[1])] = model
    if not any(len(own) > 1 for own in conditions.values()):
        names = ", ".join(model.label for model in models)
        raise OptionError(f'--by-seed: no two names end with "seed N": {names}')
    rows = []
    for task in tasks:
        for condition, seeds in conditions.items():
            runs = {seed: model.runs[task] for seed, model in seeds.items() if task in model.runs}
            for name, value, unit in _values(task, runs, settings):
                rows.append({"condition": condition, "task": task, "score": name,
                             "told": value.told(unit), "seeds": len(value.seeds),
                             "mean": value.mean, "sd": value.sd, "low": value.low,
                             "high": value.high})  # fmt: skip
    frame = pd.DataFrame(rows)
    if format_ == "csv":
        return str(frame.drop(columns="told").to_csv(index=False))
    if format_ == "json":
        return str(frame.drop(columns="told").to_json(orient="records", indent=2)) + "\n"
    shown = frame[["condition", "task", "score", "told", "seeds"]].astype(str).values.tolist()
    columns = ["condition", "task", "score", "mean ± sd [95 %]", "seeds"]
    found_: list[Section] = [("Mean and standard deviation over seeds.", columns, shown)]
    if format_ not in ("text", "markdown"):
        raise OptionError(f"--by-seed has no format {format_}; use text, markdown, csv or json")
    return (text if format_ == "text" else markdown)(iter(found_))


def _values(
    task: str, runs: Mapping[int, ResultsFile], settings: Settings
) -> Iterator[tuple[str, Value, str]]:
    """The name, the values and the unit of each score."""
    if not runs:
        return
    for title, question in questions(task, next(iter(runs.values())), settings):
        found: dict[str, dict[int, float]] = {}
        for seed, run in runs.items():
            for part, own in figures(run, task, question):
                if own.value is not None:
                    name = ", ".join(part.values()) or title
                    found.setdefault(name, {})[seed] = own.value
        named = {str(seed): run for seed, run in runs.items()}
        bounds = None if question.by else interval_of(task, named, question)
        for name, seeds in found.items():
            yield name, value_of(seeds, bounds), question.measure.unit
