"""What users bring to tasks that ask about their own documents, or whose data cannot be fetched."""

import zipfile
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class UserData:
    """The settings with which a task finds a user's documents: metadata, environment variables."""

    metadata: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


def write_user_data(task: str, folder: Path) -> UserData:
    """Write the documents with which a task can be loaded; return the settings that name them.

    The task's own sources are read from the shared data.
    """
    if task == "conceptual_openbookqa":
        return UserData(metadata={"conceptual_pipeline": str(spacy_pipeline.trained())})
    if task == "conceptual_worldtree":
        write_worldtree(folder)
        return UserData(environment={"LM_EVAL_EXT_DATA": str(folder)})
    if task.startswith("diner_"):
        split = "random" if task.endswith("_random") else "tmcd"
        return UserData(metadata={"diner_dir": str(diner_own.write(folder / "built", split))})
    assert task.startswith("magnifico_own_"), task
    script = (EXAMPLE / "yard.sql").read_text(encoding="utf-8")
    database = written(folder / "yard.sqlite", script)
    return UserData(
        metadata={
            "magnifico_databases": str(database),
            "magnifico_file": str(EXAMPLE / "yard.tsv"),
        }
    )


def write_worldtree(copy: Path) -> None:
    """Write an archive of questions that share a fact."""
    archive = copy / worldtree.FOLDER / f"{worldtree.NAME}.zip"
    archive.parent.mkdir(parents=True)
    lines = ["QuestionID\tAnswerKey\texplanation\tquestion"]
    for n in range(QUESTIONS):
        lines.append(f"Q{n}\tA\tf1|CENTRAL\tWhat is {n}? (A) hot (B) cold")
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr(worldtree.QUESTIONS, "\n".join(lines) + "\n")
        content.writestr(f"{worldtree.TABLES}KINDOF.tsv", "NOUN\t[SKIP] UID\nfire\tf1\n")
