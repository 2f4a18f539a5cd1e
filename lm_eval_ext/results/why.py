"""Why a figure has no value or no interval, in words, and which ``--limit`` would give one."""

from collections.abc import Iterable

from lm_eval_ext.cards import Card, card_of
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.results.files import ResultsFile, Score
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.text import several

MOST = 3
"""Metrics that a reason names."""


def reasons(results: ResultsFile, task: str, metrics: Iterable[str]) -> list[str]:
    """One line for each reason, with the metrics that it is about.

    Metrics without notes in the results file, as those of other tasks, have none.
    """
    card = card_of(task)
    scores = results.scores(task)
    found: dict[str, list[str]] = {}
    for metric in metrics if card else ():
        why = _why(results, task, metric, scores[metric], card) if card else ""
        if why:
            found.setdefault(why, []).append(metric)
    return [f"{_named(metrics, len(scores))}{why}" for why, metrics in found.items()]


def _named(metrics: list[str], total: int) -> str:
    if len(metrics) == total:
        return ""
    more = f" and {len(metrics) - MOST} more" if len(metrics) > MOST else ""
    return f"{', '.join(metrics[:MOST])}{more}: "


def _why(results: ResultsFile, task: str, metric: str, score: Score, card: Card) -> str:
    if score.clusters is None or score.interval is not None:
        return ""
    scored, total = results.documents(task)
    trial = results.trial(task)
    if score.value is None:
        aggregation = str(results.entry(task, metric).get("aggregation"))
        text = "there are none of its documents"
        if score.documents:
            text = card.undefined.get(aggregation, "it is not defined")
        return f"{NONE}, since {text}" + (
            f" among {scored:,} of {total:,}; a larger --limit may give one" if trial else ""
        )
    unit = card.cluster.unit_at(score.level)
    if score.clusters >= LEAST_CLUSTERS:
        return f"no interval, since it hangs on one {unit}"
    some = f"1 {unit}" if score.clusters == 1 else f"{score.clusters} {several(unit)}"
    text = f"no interval from {some}, fewer than {LEAST_CLUSTERS}"
    if trial is None:
        return text
    enough = trial.get("enough")
    if not enough:
        return f"{text}; no --limit has more"
    # A metric over a part of the documents may need more than the task.
    return f"{text}; --limit {enough} would do" if enough > scored else text
