"""Time to build the leaderboard of many models, and the size of its page."""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Row, in_turn
from lm_eval_ext.leaderboard.site import build

MODELS, TASKS, SAMPLES = 30, 40, 500
TESTS = str(Path(__file__).resolve().parents[1] / "tests")


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yield a row for models whose skill rises with their number."""
    models = max(1, round(MODELS * share))
    tasks = max(1, round(TASKS * share))
    samples = max(1, round(SAMPLES * share))
    with tempfile.TemporaryDirectory() as temporary:
        results, site = Path(temporary, "results"), Path(temporary, "site")
        for task in range(tasks):
            for model in range(models):
                write_results(results, task, model, skill=0.3 + model / models / 2, samples=samples)
        measured = in_turn(rounds, lambda: site, lambda: build([results], site))
        size = measured.our_result.stat().st_size / 1e6
    work = f"leaderboard of {models} models and {tasks} tasks, a page of {size:.1f} MB"
    yield Row(work, models * tasks * samples, "", [], measured.ours)


def write_results(results: Path, task: int, model: int, *, skill: float, samples: int) -> None:
    """Write a results file with samples of a model that answers a share of them rightly."""
    if TESTS not in sys.path:
        sys.path.insert(0, TESTS)
    from support.results_files import write_run

    generator = random.Random(f"{task} {model}")
    answers = []
    for number in range(samples):
        is_right = generator.random() < skill
        verb = "answer" if is_right else "guess"
        answers.append(
            {
                "doc": {"id": f"t{task}-{number}"},
                "target": f"answer {number}",
                "prompt": f"question {number} of task {task} {'word ' * 120}",
                "answer": f"{verb} {number}",
                "score": float(is_right),
            }
        )
    folder = results / f"model-{model:02}"
    date = f"2026-01-02T03-04-05.{task:06}"
    write_run(folder, folder.name, f"task_{task:02}", answers, date=date)
