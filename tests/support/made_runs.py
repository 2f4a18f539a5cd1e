"""Runs without a model: a seed decides which answers are right; files are lm-eval's own."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from lm_eval_ext.compare.command import run
from lm_eval_ext.results.query import ScoreQuery
from support import legal, logged


class Guesser(LM):
    """Answers a share of the requests correctly; the seed decides which ones."""

    def __init__(self, seed: int, skill: float) -> None:
        super().__init__()
        self.seed, self.skill = seed, skill

    def luck(self, *parts: Any) -> float:
        text = json.dumps([self.seed, *parts], default=str)
        return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        return [(-10 * self.luck(*request.args), False) for request in requests]

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        return [-1.0 for _ in requests]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Instance) -> str:
        doc = request.doc
        if self.luck(doc["id"], request.idx) > self.skill:
            return "nothing"
        gold = doc.get("query") or doc.get("form") or doc["answer"]
        return str(gold[request.idx] if isinstance(gold, list) else gold)


HEADLINES = ScoreQuery()


def make(
    folder: Path,
    tasks: Sequence[str],
    *,
    seed: int = 0,
    skill: float = 0.5,
    name: str = "",
    include: Sequence[str] = (),
    **options: Any,
) -> Path:
    """Evaluate a :class:`Guesser` and write what ``lm_eval --log_samples`` would."""
    logged.evaluate(
        folder,
        Guesser(seed, skill),
        tasks,
        include=include,
        config={"model_args": {"seed": seed}},
        name=name or f"guesser {seed}",
        **options,
    )
    assert legal.check_folder(folder) or include, "only tasks that are not ours have no intervals"
    return folder


def compared(*paths: Path, query: ScoreQuery = HEADLINES, **options: Any) -> dict[str, Any]:
    """Return the figures and pairs of a comparison, each with the facts of its table."""
    text, refused = run(paths, query, format_="json", **options)
    assert not refused
    figures = []
    pairs = []
    for table in json.loads(text)["tables"]:
        for name, figure in table["figures"].items():
            is_best = name in table["best"]
            figures.append({**table, **figure, "system": name, "best": is_best})
        for pair in table["pairs"]:
            pairs.append({**table, **pair})
    legal.check_pairs(pairs)
    return {"figures": figures, "pairs": pairs}
