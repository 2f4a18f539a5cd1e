"""Time to build the leaderboard of many models, and the size of its page."""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Row, in_turn
from lm_eval_ext.leaderboard.site import build

MODELS, TASKS, SAMPLES = 30, 40, 500


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for models whose skill rises with their number."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from support.results_files import write_run

    models, tasks, samples = (max(1, round(n * share)) for n in (MODELS, TASKS, SAMPLES))
    with tempfile.TemporaryDirectory() as temporary:
        results, site = Path(temporary, "results"), Path(temporary, "site")
        for task in range(tasks):
            for model in range(models):
                drawn = random.Random(f"{task} {model}")
                right = [drawn.random() < 0.3 + model / models / 2 for _ in range(samples)]
                answers = [
                    {
                        "doc": {"id": f"t{task}-{number}"}, "target": f"answer {number}",
                        "prompt": f"question {number} of task {task} {'word ' * 120}",
                        "answer": f"{'answer' if yes else 'guess'} {number}", "score": float(yes),
                    }
                    for number, yes in enumerate(right)
                ]  # fmt: skip
                folder, date = results / f"model-{model:02}", f"2026-01-02T03-04-05.{task:06}"
                write_run(folder, folder.name, f"task_{task:02}", answers, date=date)
        (_, ours), _, page = in_turn(rounds, lambda: site, lambda: build([results], site))
        size = page.stat().st_size / 1e6
    work = f"leaderboard of {models} models and {tasks} tasks, a page of {size:.1f} MB"
    yield Row(work, models * tasks * samples, "", [], ours)
