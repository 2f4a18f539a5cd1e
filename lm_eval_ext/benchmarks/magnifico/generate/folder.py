"""Writes a folder that the tasks ``magnifico_own_...`` read, with a task file to share."""

import csv
import json
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder, sha256_of, sha256_of_text
from lm_eval_ext.benchmarks.magnifico.generate import GRAMMAR_VERSION
from lm_eval_ext.benchmarks.magnifico.generate.english import word_list
from lm_eval_ext.benchmarks.magnifico.generate.make import (
    GeneratedQuestion,
    Generation,
    Progress,
    make,
    no_progress,
)
from lm_eval_ext.benchmarks.magnifico.generate.tree import Question
from lm_eval_ext.benchmarks.magnifico.own import GENERATED, REQUIRED
from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import OptionError

EXAMPLES, LEXICON = "examples.tsv", "lexicon.yml"
"""``.yml``, since lm-eval takes every ``.yaml`` file for a task."""

_SMALL_TABLE = 30
"""Rows of a table that is too small to supply most questions."""

_TASK_FILE = """\
# Generation by lm-eval-ext magnifico generate. Paths are relative to where lm_eval is started.
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
    database: Path,
    out: Path,
    *,
    seed: int,
    questions: int,
    lexicon: Path | None = None,
    progress: Progress = no_progress,
) -> tuple[Generation, dict[str, Any]]:
    """Make a folder of examples; return them and the content of ``generated.json``.

    Nothing is written before all examples are made.

    Args:
        database: A SQLite file.
        out: The folder.
        seed: The same seed gives the same files; 0 or more.
        questions: The number of questions; 1 or more.
        lexicon: A file with names of tables and columns (:mod:`.profile`).
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
    lock_name = sha256_of_text(str(out.resolve()))[:16]
    try:
        with filelock.FileLock(locks / f"generate-{lock_name}", blocking=False):
            for remains in out.parent.glob(f".{escape(out.name)}.*.part"):  # of a killed run
                shutil.rmtree(remains, ignore_errors=True)
            generation = make(database, lexicon, seed, questions, progress)
            with atomic_folder(out) as unfinished:
                writer = _Writer(unfinished, out, database, generation, seed, lexicon)
                return generation, writer.write()
    except filelock.Timeout:
        raise OptionError(f"{out}: another run is making this folder; name another one") from None


@dataclass(frozen=True)
class _Writer:
    """Writes the files of a folder.

    Attributes:
        unfinished: The folder under its temporary name.
        out: The folder that the files are for.
        database: The user's database.
        generation: The examples.
        seed: The seed that they were drawn from.
        lexicon: The user's lexicon.
    """

    unfinished: Path
    out: Path
    database: Path
    generation: Generation
    seed: int
    lexicon: Path | None

    @property
    def _copy(self) -> Path:
        """The copy of the database."""
        return self.unfinished / f"{self.database.stem}.sqlite"

    def write(self) -> dict[str, Any]:
        """Write all files, and return the content of ``generated.json``."""
        self._copy_inputs()
        self._write_examples()
        self._write_task()
        note = self._note()
        text = json.dumps(note, indent=1, ensure_ascii=False) + "\n"
        (self.unfinished / GENERATED).write_text(text, encoding="utf-8", newline="")
        return note

    def _copy_inputs(self) -> None:
        copies = {
            self.database: self._copy,
            self.database.with_name("schema.sql"): self.unfinished / "schema.sql",
        }
        if self.lexicon:
            copies[self.lexicon] = self.unfinished / LEXICON
        for file, copy in copies.items():
            if file.is_file():
                shutil.copyfile(file, copy)

    def _write_examples(self) -> None:
        with (self.unfinished / EXAMPLES).open("w", encoding="utf-8", newline="") as file:
            columns = (*REQUIRED, "form", "support")
            table = csv.DictWriter(file, columns, delimiter="\t", lineterminator="\n")
            table.writeheader()
            for example in self.generation.examples:
                table.writerows(_rows(example, self.generation))

    def _write_task(self) -> None:
        task = task_name(self._copy.stem)
        text = _TASK_FILE.format(
            folder=shlex.quote(str(self.out)),
            task=task,
            grammar=GRAMMAR_VERSION,
            database=json.dumps(str(self.out / self._copy.name)),
            examples=json.dumps(str(self.out / EXAMPLES)),
        )
        (self.unfinished / f"{task}.yaml").write_text(text, encoding="utf-8")

    def _note(self) -> dict[str, Any]:
        """Return the content of ``generated.json``."""
        support_count = sum(example.is_support for example in self.generation.examples)
        words: dict[str, dict[str, str]] = {}
        for kind, meaning in self.generation.meanings.items():
            words[kind] = {"meaning": meaning.text, **dict(meaning.words.items())}
        versions = {name: version(name) for name in ("pyspellchecker", "sqlglot")}
        versions["sqlite"] = sqlite3.sqlite_version
        return {
            "grammar": GRAMMAR_VERSION,
            "seed": self.seed,
            "questions": len(self.generation.examples) - support_count,
            "support": support_count,
            "drawn": self.generation.drawn,
            "dropped": dict(Counter(self.generation.dropped).most_common()),
            "unsaid": dict(self.generation.profile.not_asked),
            "warnings": list(_warnings(self.generation)),
            "words": words,
            "examples": sha256_of(self.unfinished / EXAMPLES),
            "made_with": versions,
            "database": {"name": self._copy.stem, "sha256": sha256_of(self._copy)},
            "lexicon": sha256_of(self.lexicon) if self.lexicon else None,
        }


def _rows(example: GeneratedQuestion, generation: Generation) -> Iterator[Mapping[str, str]]:
    """Yield a row for each form of a question."""
    meaning = generation.meanings[example.kind]
    for form, word in meaning.words.items():
        yield {
            "interpretation": example.kind,
            "word": word,
            "meaning": meaning.text,
            "question": example.texts[form],
            "base_question": example.texts[BASE],
            "query": example.gold,
            "form": form,
            "support": "yes" if example.is_support else "",
        }


def _warnings(generation: Generation) -> Iterator[str]:
    """Yield what a user should know before the questions are asked."""
    questions = [example.question for example in generation.examples if not example.is_support]
    tables = Counter(question.entity.table for question in questions)
    table, count = tables.most_common(1)[0]
    rows = generation.profile.entities[table].rows
    advice = "name more in a lexicon (--lexicon FILE)"
    if rows < _SMALL_TABLE and 2 * count > len(questions):
        yield (
            f"{count} of {len(questions)} questions are on {table}, a table of {rows} rows; "
            f"{advice}"
        )
    odd_count = sum(_names_words_of_sql(question) for question in questions)
    if 2 * odd_count > len(questions):
        yield (
            f"{odd_count} of {len(questions)} questions name tables or columns that are words of "
            f"SQL; their English may be poor: {advice}"
        )
    if not generation.profile.links:
        yield "no foreign keys are declared, so no question joins tables"


def _names_words_of_sql(question: Question) -> bool:
    """Return whether a table or column of a question has the name of a word of SQL."""
    names = set()
    for column in question.columns():
        names |= {column.field.table.lower(), column.field.name.lower()}
    return not names.isdisjoint(word_list("keywords"))


def task_name(name: str) -> str:
    """Return the name of a database's task."""
    letters = [character if character.isalnum() else "_" for character in name.lower()]
    return "magnifico_generated_" + "".join(letters)


def report_text(note: Mapping[str, Any]) -> str:
    """Return what was made, and what was dropped by reason, in some lines.

    Args:
        note: The content of ``generated.json``.
    """
    lines = [
        f"{note['questions']:,} questions on {len(note['words'])} words and phrases, "
        f"{note['support']:,} solved examples; {note['drawn']:,} were drawn"
    ]
    for reason, count in note["dropped"].items():
        lines.append(f"  {count:,} dropped: {reason}")
    for reason, count in note["unsaid"].items():
        lines.append(f"  {count:,} not asked about: {reason}")
    for warning in note["warnings"]:
        lines.append(f"Warning: {warning}")
    return "\n".join(lines)
