"""What users bring to tasks that ask about their own documents, or whose data cannot be fetched."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from lm_eval_ext.benchmarks.conceptual import worldtree
from lm_eval_ext.benchmarks.conceptual.records import Sample
from support import diner_own, spacy_pipeline
from support.databases import written

EXAMPLE = Path(__file__).parents[2] / "examples" / "magnifico_own"
QUESTIONS = 12


HOTPOTQA = [
    Sample(f"h{n}", f"Where is {n}?", "Oslo", frozenset(["is there"]), "Oslo: A city.")
    for n in range(QUESTIONS)
]
"""As if they were read: files of ours would have other checksums."""


def brought(task: str, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Metadata and environment variables with which a task can be loaded.

    The task's own sources are read from the shared data.
    """
    if task == "conceptual_openbookqa":
        return {"conceptual_pipeline": str(spacy_pipeline.trained())}, {}
    if task == "conceptual_worldtree":
        write_worldtree(folder)
        return {}, {"LM_EVAL_EXT_DATA": str(folder)}
    if task.startswith("diner_"):
        split = "random" if task.endswith("_random") else "tmcd"
        return {"diner_dir": str(diner_own.write(folder / "built", split))}, {}
    assert task.startswith("magnifico_own_")
    script = (EXAMPLE / "yard.sql").read_text(encoding="utf-8")
    database = written(folder / "yard.sqlite", script)
    files: Mapping[str, Path] = {"databases": database, "file": EXAMPLE / "yard.tsv"}
    return {f"magnifico_{key}": str(path) for key, path in files.items()}, {}


def write_worldtree(copy: Path) -> None:
    """An archive of questions that share a fact."""
    packed = copy / worldtree.FOLDER / f"{worldtree.NAME}.zip"
    packed.parent.mkdir(parents=True)
    rows = [f"Q{n}\tA\tf1|CENTRAL\tWhat is {n}? (A) hot (B) cold" for n in range(QUESTIONS)]
    head = "QuestionID\tAnswerKey\texplanation\tquestion"
    with zipfile.ZipFile(packed, "w") as content:
        content.writestr(worldtree.QUESTIONS, "\n".join([head, *rows]) + "\n")
        content.writestr(f"{worldtree.TABLES}KINDOF.tsv", "NOUN\t[SKIP] UID\nfire\tf1\n")
