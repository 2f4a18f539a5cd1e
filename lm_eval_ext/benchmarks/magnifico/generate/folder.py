"""Writes a folder that the tasks ``magnifico_own_...`` read, with a task file to share."""

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path, atomic_text, sha256_of
from lm_eval_ext.benchmarks.magnifico.generate import GRAMMAR_VERSION, dialogues, lexicon
from lm_eval_ext.benchmarks.magnifico.generate.make import Asked, Made, make
from lm_eval_ext.benchmarks.magnifico.generate.profile import open_database
from lm_eval_ext.benchmarks.magnifico.own import GENERATED, OPTIONAL, REQUIRED, SHIPPED
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.distill.report import POPULATE_VERSION
from lm_eval_ext.sql.distill.shipped import pack
from lm_eval_ext.sql.engines.places import kind_of
from lm_eval_ext.sql.schema import read_schema

EXAMPLES, TALKS, LEXICON = "examples.tsv", "dialogues", "lexicon.yml"
"""``.yml``, since lm-eval takes every ``.yaml`` file for a task."""

_COLUMNS = (*REQUIRED, *OPTIONAL[1:])
_YES = "yes"

_TASK = """\
# Made by lm-eval-ext magnifico generate. Paths are relative to where lm_eval is started.
# lm_eval --include_path {folder} --tasks {task} --model ...
class: !function lm_eval_ext.benchmarks.magnifico.task.MagnificoTask
custom_dataset: !function lm_eval_ext.benchmarks.magnifico.load.dataset
task: {task}
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: query
process_results: !function lm_eval_ext.benchmarks.magnifico.score.by_execution
filter_list:
  - name: query
    filter:
      - function: magnifico_query
      - function: take_first
generation_kwargs:
  do_sample: false
  temperature: 0.0
  max_gen_toks: 128
  until: [";", "\\n\\n", "--", "#"]
num_fewshot: 0
metadata:
  version: "{grammar}.0"
  magnifico_corpus: own
  magnifico_subset: all
  magnifico_prompt: desc
{databases}
  magnifico_file: {examples}
  lm_eval_ext: {{prompt: create-table-select-3, scoring: relative-performance}}
"""


def generate(
    source: str | Path, out: Path, *, seed: int, questions: int, words: Path | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> tuple[Made, dict[str, Any]]:  # fmt: skip
    """Makes a folder of examples; returns them and what ``generated.json`` says.

    Args:
        source: A SQLite file.
        out: The folder.
        seed: The same seed gives the same files.
        questions: How many.
        words: A lexicon.
        progress: Called with the number of questions made.

    Raises:
        OptionError: The folder is not empty or cannot be written, a number is too small, or the
            database is no file of SQLite.
        DataError: As :func:`.make.make`.
    """
    if questions < 1:
        raise OptionError(f"--questions {questions}: use 1 or more")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out} exists and is not an empty folder; name a new one")
    database = Path(source)
    if "://" in str(source) or kind_of(database) == "duckdb":
        raise OptionError(f"{source}: questions are made on a SQLite file only; name one")
    open_database(database).close()  # before anything is written
    try:
        with atomic_path(out) as part:
            part.mkdir(parents=True)
            if words:
                shutil.copyfile(words, part / LEXICON)
            made, said = _of_sqlite(database, part, out, seed, questions, words, progress)
            said["lexicon"] = sha256_of(words) if words else None
            with atomic_text(part / GENERATED) as file:
                file.write(json.dumps(said, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise OptionError(f"cannot write {out}: {error.strerror}") from None
    return made, said


def _of_sqlite(  # noqa: PLR0917
    database: Path, part: Path, out: Path, seed: int, questions: int, words: Path | None,
    progress: Callable[[int], object],
) -> tuple[Made, dict[str, Any]]:  # fmt: skip
    named = lexicon.read(words, read_schema(database))
    home = part / f"{database.stem}.sqlite"
    shutil.copyfile(database, home)
    script = database.with_name("schema.sql")
    if script.is_file():
        shutil.copyfile(script, part / script.name)
    copy = part / "copy.sqlite"
    made = make(database, named, seed, questions, copy, progress)
    (part / SHIPPED).write_text(pack({home.stem: (home, copy, made.report)}))
    copy.unlink()
    said = _written(part, out, home.stem, made, seed, {"magnifico_databases": home.name})
    said["database"] = {"name": home.stem, "sha256": sha256_of(home)}
    return made, said


def _written(  # noqa: PLR0917
    part: Path, out: Path, name: str, made: Made, seed: int, sources: Mapping[str, str]
) -> dict[str, Any]:  # fmt: skip
    """Writes the files; ``sources`` has metadata, as names of the folder or URLs."""
    (part / TALKS).mkdir()
    for kind, meaning in made.meanings.items():
        text = dialogues.dialogue(made.profile, meaning, seed)
        (part / TALKS / f"{kind}.txt").write_text(text, encoding="utf-8")
    (part / EXAMPLES).write_text(_table(made), encoding="utf-8", newline="")
    task = task_of(name)
    (part / f"{task}.yaml").write_text(task_file(out, task, sources), encoding="utf-8")
    asked = [one for one in made.asked if not one.support]
    return {
        "grammar": GRAMMAR_VERSION,
        "populated": POPULATE_VERSION,
        "seed": seed,
        "questions": len(asked),
        "support": len(made.asked) - len(asked),
        "drawn": made.drawn,
        "dropped": dict(sorted(made.dropped.items(), key=lambda item: -item[1])),
        "unsaid": dict(made.profile.unsaid),
        "words": {
            kind: {"meaning": one.text, **one.words} for kind, one in made.meanings.items()
        },
        "examples": sha256_of(part / EXAMPLES),
        "made_with": {name: version(name) for name in ("pyspellchecker", "sqlglot")}
        | {"sqlite": sqlite3.sqlite_version},
    }  # fmt: skip


def task_file(out: Path, task: str, sources: Mapping[str, str]) -> str:
    """The task file of a folder; ``sources`` as for :func:`_written`."""
    lines = [f"  {key}: {name if '://' in name else out / name}" for key, name in sources.items()]
    return _TASK.format(
        folder=out, task=task, grammar=GRAMMAR_VERSION, databases="\n".join(lines),
        examples=out / EXAMPLES,
    )  # fmt: skip


def task_of(name: str) -> str:
    """The name of a database's task."""
    return "magnifico_generated_" + "".join(c if c.isalnum() else "_" for c in name.lower())


def _table(made: Made) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    for one in made.asked:
        writer.writerows(_rows(one, made))
    return text.getvalue()


def _rows(one: Asked, made: Made) -> Iterator[Mapping[str, str]]:
    for form in one.forms(made.meanings):
        row = {
            "interpretation": "+".join(one.kinds),
            "question": one.novel(made.meanings, form),
            "base_question": one.base,
            "query": one.gold,
            "form": form,
        }
        if len(one.kinds) == 1:
            (kind,) = one.kinds
            row |= {
                "word": made.meanings[kind].words[form],
                "meaning": made.meanings[kind].text,
                "support": _YES if one.support else "",
                "dialogue": f"{TALKS}/{kind}.txt",
            }
        yield row


def as_text(said: Mapping[str, Any]) -> str:
    """What was made, and what was dropped by reason, in some lines."""
    words = len(said["words"])
    lines = [
        f"{said['questions']:,} questions on {words} words and phrases, {said['support']:,} solved "
        f"examples; {said['drawn']:,} were drawn",
        *(f"  {count:,} dropped: {reason}" for reason, count in said["dropped"].items()),
        *(f"  {count:,} not asked about: {reason}" for reason, count in said["unsaid"].items()),
    ]
    return "\n".join(lines)
