"""``lm-eval-ext magnifico positions``: how much it matters where a word is described.

A position's figure is its relative performance divided by that of the end (paper, section 5.4 and
figure 9). It needs logged runs of a model that differ in nothing but the position.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.magnifico import score
from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.harness.signature import METADATA_KEY
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.files import ResultsFile, Score, find
from lm_eval_ext.results.samples import Sample, read_samples
from lm_eval_ext.stats import Interval, interval
from lm_eval_ext.stats.intervals import jackknife

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = get_logger(__name__)

END = "end"
OTHERS = ("start", "mid")

_FREE = ("task", "position")
"""Parts of a signature in which the runs may differ."""
_PROMPTS = ("desc", "desc_fewshot", "dialogue")

FILTER = "query"


@dataclass(frozen=True)
class Row:
    """One position of one model, relative to the end.

    Attributes:
        model: As lm-eval names it.
        task: The run with the description at the end.
        position: ``start`` or ``mid``.
        database: ``populated`` or ``original``.
        form: A novel form; "all" for all that were asked.
        here: Relative performance at the position.
        end: Relative performance at the end.
        relative: 100 x ``here`` / ``end``; None where one is undefined or ``end`` is 0.
        interval: The 95 % interval of ``relative``, clustered by database.
    """

    model: str
    task: str
    position: str
    database: str
    form: str
    here: float | None
    end: float | None
    relative: float | None
    interval: Interval | None


@dataclass(frozen=True)
class _Run:
    results: ResultsFile
    task: str
    prompt: str

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """By the example's id."""
        found = read_samples(self.results, self.task).get(FILTER, {})
        return {str(one.doc["id"]): one for one in found.values()}


def compare(folder: Path) -> list[Row]:
    """Reads results and samples, and compares each position with the end.

    Raises:
        OptionError: No model has runs at the end and at another position.
        DataError: A file is not lm-eval's, or two runs have different examples.
    """
    rows = []
    for (model, *_), runs in _groups(find(folder)).items():
        if END in runs:
            for position in (place for place in OTHERS if place in runs):
                rows += _compared(model, position, runs[position], runs[END])
    if not rows:
        raise OptionError(
            f"{folder}: no model has a run with the description at the end and one at the start or "
            "in the middle that differ in nothing else; run magnifico_desc, magnifico_desc_start "
            "and magnifico_desc_mid (or the dialogue tasks) with --log_samples"
        )
    return rows


def of_models(files: Mapping[str, Sequence[ResultsFile]]) -> dict[tuple[str, ...], Score]:
    """For the figure ``magnifico-9``, by model, prompt, nothing, and position.

    Args:
        files: By model. Those without what :func:`compare` needs have no values.
    """
    found: dict[tuple[str, ...], Score] = {}
    for model, own in files.items():
        for runs in _groups(own).values():
            for position in (place for place in OTHERS if place in runs and END in runs):
                try:
                    rows = _compared(model, position, runs[position], runs[END])
                except DataError as error:
                    _log.warning("%s", error)
                    continue
                prompt = runs[END].prompt
                for row in rows:
                    if row.database == score.POPULATED and row.form == "all":
                        spread = row.interval
                        bounds = (spread.low, spread.high) if spread else None
                        found[model, prompt, "", position] = Score(row.relative, None, bounds)
                        found[model, prompt, "", END] = Score(100.0, None)
    return found


def _groups(files: Iterable[ResultsFile]) -> dict[tuple[str, ...], dict[str, _Run]]:
    """The runs by model and signature without the position, then by position."""
    groups: dict[tuple[str, ...], dict[str, _Run]] = {}
    for results in files:
        for task in results.tasks:
            metadata = results.content["configs"][task].get("metadata") or {}
            own = metadata.get(METADATA_KEY)
            if not isinstance(own, Mapping) or own.get("prompt") not in _PROMPTS:
                continue
            if "position" not in own or "layout" not in own:
                continue
            same = sorted(f"{key}:{value}" for key, value in own.items() if key not in _FREE)
            arguments = str(results.content["config"].get("model_args"))
            chat = str(results.content.get("chat_template_sha"))
            key = (results.model, arguments, chat, *same)
            groups.setdefault(key, {})[str(own["position"])] = _Run(
                results, task, str(own["prompt"])
            )
    return groups


def _compared(model: str, position: str, here: _Run, end: _Run) -> list[Row]:
    first, second = here.samples, end.samples
    if first.keys() != second.keys():
        raise DataError(
            f"{here.results.path} and {end.results.path}: {here.task} and {end.task} have "
            "different examples; run both with the same --limit and compare again"
        )
    ids = sorted(first)
    forms = list(dict.fromkeys(str(second[one].doc["form"]) for one in ids))
    novel = sorted(form for form in forms if form != BASE)
    rows = []
    for database in score.DATABASES:
        metric = f"{database}/{score.RELATIVE}"
        for form in ("all", *(novel if len(novel) > 1 else ())):
            chosen = [one for one in ids if form == "all" or first[one].doc["form"] in (BASE, form)]
            both = [
                _outcomes([samples[one] for one in chosen], metric) for samples in (first, second)
            ]
            values = [score.relative_performance(outcomes) for outcomes in both]
            ratio = None
            if values[0] is not None and values[1]:
                ratio = 100 * values[0] / values[1]
            spread = None if ratio is None else _interval(*both)
            rows.append(
                Row(model, end.task, position, database, form, values[0], values[1], ratio, spread)
            )
    return rows


def _outcomes(samples: Sequence[Sample], metric: str) -> list[score.Outcome]:
    clusters = [str(one.doc["db_id"]).casefold() for one in samples]
    return score.logged_outcomes(samples, metric, clusters)


def _interval(here: Sequence[score.Outcome], end: Sequence[score.Outcome]) -> Interval | None:
    """Of the ratio: both positions without the same databases."""
    import numpy as np

    tables = [score.tabulate(outcomes)[1] for outcomes in (here, end)]
    totals = {
        name: np.array([table[name] for table in tables], dtype=np.float64) for name in tables[0]
    }
    return interval(jackknife(totals, _ratio, score.sizes_of(end)), (0.0, None))


def _ratio(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """From sums of shape (resample, position, pair, 4); NaN where it is undefined."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        values: Any = 100 * score.relative_of(sums[:, 0]) / score.relative_of(sums[:, 1])
    values[~np.isfinite(values)] = np.nan
    return values  # type: ignore[no-any-return]


def as_text(rows: Iterable[Row]) -> str:
    """A line for each row, under a heading for each model and task."""
    lines: list[str] = []
    last = None
    for row in rows:
        if (row.model, row.task) != last:
            last = (row.model, row.task)
            lines += [f"{row.model}: {row.task}, relative to the end"]
        bounds = ""
        if row.interval is not None:
            bounds = f" [{row.interval.low:.2f}, {row.interval.high:.2f}]"
        lines.append(
            f"  {row.position:<5} {row.database:<9} {row.form:<11} {_number(row.relative)}"
            f"{bounds} ({_number(row.here)} / {_number(row.end)})"
        )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"
