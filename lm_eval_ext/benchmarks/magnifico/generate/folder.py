"""Writes a folder that the tasks ``magnifico_own_...`` read, with a task file to share."""

import csv
import json
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder, sha256_of, sha256_of_text
from lm_eval_ext.benchmarks.magnifico.generate import GRAMMAR_VERSION
from lm_eval_ext.benchmarks.magnifico.generate.english import among
from lm_eval_ext.benchmarks.magnifico.generate.make import Asked, Made, make
from lm_eval_ext.benchmarks.magnifico.own import GENERATED, REQUIRED
from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import OptionError

EXAMPLES, LEXICON = "examples.tsv", "lexicon.yml"
"""``.yml``, since lm-eval takes every ``.yaml`` file for a task."""

_TINY = 30
"""Rows of a table that is too small to supply most questions."""

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
  magnifico_semantics: strict
  magnifico_databases: {database}
  magnifico_file: {examples}
  lm_eval_ext: {{prompt: create-table-select-3, scoring: relative-performance}}
"""


def generate(
    database: Path, out: Path, *, seed: int, questions: int, lexicon: Path | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> tuple[Made, dict[str, Any]]:  # fmt: skip
    """Makes a folder of examples; returns them and what ``generated.json`` says.

    Nothing is written before all examples are made.

    Args:
        database: A SQLite file.
        out: The folder.
        seed: The same seed gives the same files; 0 or more.
        questions: How many; 1 or more.
        lexicon: What tables and columns are called (:mod:`.profile`).
        progress: Called with the number of questions made since the last call.

    Raises:
        OptionError: The folder is not empty, cannot be written, or another run makes it; there is
            no such lexicon.
        DataError: As :func:`.make.make`.
    """
    import filelock

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out} exists and is not an empty folder; name a new one")
    locks = cache_dir() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    name = sha256_of_text(str(out.resolve()))[:16]
    try:
        with filelock.FileLock(locks / f"generate-{name}", blocking=False):
            for left in out.parent.glob(f".{escape(out.name)}.*.part"):  # of a run that was killed
                shutil.rmtree(left, ignore_errors=True)
            made = make(database, lexicon, seed, questions, progress)
            with atomic_folder(out) as part:
                said = _write(part, out, database, made, seed, lexicon)
            return made, said
    except filelock.Timeout:
        raise OptionError(f"{out}: another run is making this folder; name another one") from None


def _write(  # noqa: PLR0917
    part: Path, out: Path, database: Path, made: Made, seed: int, lexicon: Path | None
) -> dict[str, Any]:
    home = part / f"{database.stem}.sqlite"
    copied = {database: home, database.with_name("schema.sql"): part / "schema.sql"}
    if lexicon:
        copied[lexicon] = part / LEXICON
    for file, copy in copied.items():
        if file.is_file():
            shutil.copyfile(file, copy)
    with (part / EXAMPLES).open("w", encoding="utf-8", newline="") as lines:
        names = (*REQUIRED, "form", "support")
        table = csv.DictWriter(lines, names, delimiter="\t", lineterminator="\n")
        table.writeheader()
        table.writerows(row for one in made.asked for row in _rows(one, made))
    task = task_of(home.stem)
    text = _TASK.format(
        folder=shlex.quote(str(out)), task=task, grammar=GRAMMAR_VERSION,
        database=json.dumps(str(out / home.name)), examples=json.dumps(str(out / EXAMPLES)),
    )  # fmt: skip
    (part / f"{task}.yaml").write_text(text, encoding="utf-8")
    count = Counter(one.support for one in made.asked)
    said = {
        "grammar": GRAMMAR_VERSION,
        "seed": seed,
        "questions": count[False],
        "support": count[True],
        "drawn": made.drawn,
        "dropped": dict(Counter(made.dropped).most_common()),
        "unsaid": dict(made.profile.unsaid),
        "warnings": list(_warnings(made)),
        "words": {kind: {"meaning": one.text, **one.words} for kind, one in made.meanings.items()},
        "examples": sha256_of(part / EXAMPLES),
        "made_with": {name: version(name) for name in ("pyspellchecker", "sqlglot")}
        | {"sqlite": sqlite3.sqlite_version},
        "database": {"name": home.stem, "sha256": sha256_of(home)},
        "lexicon": sha256_of(lexicon) if lexicon else None,
    }
    text = json.dumps(said, indent=1, ensure_ascii=False) + "\n"
    (part / GENERATED).write_text(text, encoding="utf-8", newline="")
    return said


def _rows(one: Asked, made: Made) -> Iterator[Mapping[str, str]]:
    for form, word in made.meanings[one.kind].words.items():
        yield {
            "interpretation": one.kind,
            "word": word,
            "meaning": made.meanings[one.kind].text,
            "question": one.texts[form],
            "base_question": one.texts[BASE],
            "query": one.gold,
            "form": form,
            "support": "yes" if one.support else "",
        }


def _warnings(made: Made) -> Iterator[str]:
    """What a user should know before the questions are asked."""
    asked = [one.question for one in made.asked if not one.support]
    table, count = Counter(one.entity.table for one in asked).most_common(1)[0]
    rows, advice = made.profile.entities[table].rows, "name more in a lexicon (--lexicon FILE)"
    if rows < _TINY and 2 * count > len(asked):
        yield f"{count} of {len(asked)} questions are on {table}, a table of {rows} rows; {advice}"
    odd = sum(
        not among("keywords").isdisjoint(
            name.lower() for one in question.columns() for name in (one.field.table, one.field.name)
        )
        for question in asked
    )
    if 2 * odd > len(asked):
        yield (
            f"{odd} of {len(asked)} questions name tables or columns that are words of SQL; "
            f"their English may be poor: {advice}"
        )
    if not made.profile.links:
        yield "no foreign keys are declared, so no question joins tables"


def task_of(name: str) -> str:
    """The name of a database's task."""
    return "magnifico_generated_" + "".join(c if c.isalnum() else "_" for c in name.lower())


def as_text(said: Mapping[str, Any]) -> str:
    """What was made, and what was dropped by reason, in some lines."""
    lines = [
        f"{said['questions']:,} questions on {len(said['words'])} words and phrases, "
        f"{said['support']:,} solved examples; {said['drawn']:,} were drawn",
        *(f"  {count:,} dropped: {reason}" for reason, count in said["dropped"].items()),
        *(f"  {count:,} not asked about: {reason}" for reason, count in said["unsaid"].items()),
        *(f"Warning: {warning}" for warning in said["warnings"]),
    ]
    return "\n".join(lines)
