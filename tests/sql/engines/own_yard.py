"""The documentation's example of own questions, on any engine."""

from pathlib import Path
from typing import Any

from support.tasks import load_task

from lm_eval_ext.benchmarks.magnifico import load

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "magnifico_own"


def documents_of(database: str, folder: Path, **options: str) -> Any:
    for file in EXAMPLE.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return load.dataset(
        magnifico_corpus="own", magnifico_databases=database, magnifico_prompt="desc",
        magnifico_subset="all", magnifico_file=str(folder / "yard.tsv"), **options,
    )["test"]  # fmt: skip


def check_own(database: str, folder: Path, engine: str) -> str:
    """Asks and scores; returns a prompt."""
    made = documents_of(database, folder)
    docs = list(made)
    assert len(docs) == 8
    task = own_task(database, folder)
    metrics = [one["metric"] for one in task.metrics()]
    assert metrics
    assert not any(one.startswith("populated/") for one in metrics)
    signature = task.dump_config()["metadata"]["signature"]
    assert signature["engine"].startswith(f"{engine}:")
    assert "populated" not in signature
    scores = [task.process_results(doc, [doc["query"]]) for doc in docs]
    assert {float(one["original/execution_accuracy:base"]) for one in scores if one[
        "original/execution_accuracy:base"] is not None} == {1.0}  # fmt: skip
    wrong = task.process_results(docs[0], ["SELECT 42"])
    assert wrong["original/execution_accuracy:base"] == 0
    return str(docs[1]["prompt"])


def own_task(database: str, folder: Path) -> Any:
    file = str(folder / "yard.tsv")
    return load_task("magnifico_own_desc", magnifico_databases=database, magnifico_file=file)
