"""The documentation's example of own questions, on any engine."""

from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.magnifico import load
from lm_eval_ext.cards import cards
from support.asking import pick
from support.tasks import load_task

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "magnifico_own"


def documents_of(database: str, folder: Path) -> Any:
    for file in EXAMPLE.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return load.dataset(
        magnifico_corpus="own", magnifico_databases=database, magnifico_prompt="desc",
        magnifico_subset="all", magnifico_file=str(folder / "yard.tsv"),
    )["test"]  # fmt: skip


def check_own(database: str, folder: Path, engine: str) -> str:
    """Asks and scores; returns a prompt."""
    documents = documents_of(database, folder)
    docs = list(documents)
    assert len(docs) == 8
    task = own_task(database, folder)
    headline = cards()["magnifico"].headline_of(task.metrics())
    assert headline == "relative_performance/original", "no copies on this engine"
    signature = task.dump_config()["metadata"]["signature"]
    assert signature["engine"].startswith(f"{engine}:")
    assert "populated" not in signature
    scores = [task.process_results(doc, [doc["query"]]) for doc in docs]
    assert {pick(score["rows"], "correct", database="original") for score in scores} == {1.0}
    wrong = task.process_results(docs[0], ["SELECT 42"])
    assert pick(wrong["rows"], "correct", database="original") == 0
    return str(docs[1]["prompt"])


def own_task(database: str, folder: Path) -> Any:
    file = str(folder / "yard.tsv")
    return load_task("magnifico_own_desc", magnifico_databases=database, magnifico_file=file)
