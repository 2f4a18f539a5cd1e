"""Writes a folder that the tasks ``magnifico_own_...`` read, with a task file to share."""

import csv
import hashlib
import io
import json
import random
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_folder, sha256_of
from lm_eval_ext.benchmarks.magnifico.generate import GRAMMAR_VERSION
from lm_eval_ext.benchmarks.magnifico.generate.draw import Meaning
from lm_eval_ext.benchmarks.magnifico.generate.english import (
    among,
    known,
    listed,
    plural,
    value_text,
)
from lm_eval_ext.benchmarks.magnifico.generate.make import Asked, Made, asked_only, make
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.own import GENERATED, OPTIONAL, REQUIRED
from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import OptionError

EXAMPLES, TALKS, LEXICON = "examples.tsv", "dialogues", "lexicon.yml"
"""``.yml``, since lm-eval takes every ``.yaml`` file for a task."""

TURNS = 20
"""Of a dialogue, as in the paper (figure 19), with the two of the definition."""

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
        seed: The same seed gives the same files.
        questions: How many.
        lexicon: What tables and columns are called (:mod:`.profile`).
        progress: Called with the number of questions made since the last call.

    Raises:
        OptionError: The folder is not empty, cannot be written, or another run makes it; a number
            is too small; there is no such lexicon.
        DataError: As :func:`.make.make`.
    """
    import filelock

    if questions < 1 or seed < 0:
        option = f"--questions {questions}: use 1" if questions < 1 else f"--seed {seed}: use 0"
        raise OptionError(f"{option} or more")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out} exists and is not an empty folder; name a new one")
    locks = cache_dir() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:16]
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
    shutil.copyfile(database, home)
    script = database.with_name("schema.sql")
    if script.is_file():
        shutil.copyfile(script, part / script.name)
    if lexicon:
        shutil.copyfile(lexicon, part / LEXICON)
    (part / TALKS).mkdir()
    for name, meaning in made.meanings.items():
        talk = dialogue(made.profile, meaning, seed)
        (part / TALKS / f"{name}.txt").write_text(talk, encoding="utf-8", newline="")
    (part / EXAMPLES).write_text(_table(made), encoding="utf-8", newline="")
    task = task_of(home.stem)
    (part / f"{task}.yaml").write_text(task_file(out, task, home.name), encoding="utf-8")
    asked = asked_only(made.asked)
    said = {
        "grammar": GRAMMAR_VERSION,
        "seed": seed,
        "questions": len(asked),
        "support": len(made.asked) - len(asked),
        "drawn": made.drawn,
        "dropped": dict(Counter(made.dropped).most_common()),
        "unsaid": dict(made.profile.unsaid),
        "warnings": list(_warnings(made)),
        "words": {name: {"meaning": one.text, **one.words} for name, one in made.meanings.items()},
        "examples": sha256_of(part / EXAMPLES),
        "made_with": {name: version(name) for name in ("pyspellchecker", "sqlglot")}
        | {"sqlite": sqlite3.sqlite_version},
        "database": {"name": home.stem, "sha256": sha256_of(home)},
        "lexicon": sha256_of(lexicon) if lexicon else None,
    }
    text = json.dumps(said, indent=1, ensure_ascii=False) + "\n"
    (part / GENERATED).write_text(text, encoding="utf-8", newline="")
    return said


def _warnings(made: Made) -> Iterator[str]:
    """What a user should know before the questions are asked."""
    asked = asked_only(made.asked)
    table, count = Counter(one.question.entity.table for one in asked).most_common(1)[0]
    rows, advice = made.profile.entities[table].rows, "name more in a lexicon (--lexicon FILE)"
    if rows < _TINY and 2 * count > len(asked):
        yield f"{count} of {len(asked)} questions are on {table}, a table of {rows} rows; {advice}"
    odd = [one for one in asked if any(
        name.lower() in among("keywords")
        for column in one.question.columns() for name in (column.field.table, column.field.name)
    )]  # fmt: skip
    if 2 * len(odd) > len(asked):
        yield (
            f"{len(odd)} of {len(asked)} questions name tables or columns that are words of SQL; "
            f"their English may be poor: {advice}"
        )
    if not made.profile.links:
        yield "no foreign keys are declared, so no question joins tables"


def task_file(out: Path, task: str, database: str) -> str:
    """The task file of a folder; ``database`` is a name in it."""
    return _TASK.format(
        folder=shlex.quote(str(out)), task=task, grammar=GRAMMAR_VERSION,
        database=json.dumps(str(out / database)), examples=json.dumps(str(out / EXAMPLES)),
    )  # fmt: skip


def task_of(name: str) -> str:
    """The name of a database's task."""
    return "magnifico_generated_" + "".join(c if c.isalnum() else "_" for c in name.lower())


def _table(made: Made) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, (*REQUIRED, *OPTIONAL[1:]), delimiter="\t", lineterminator="\n")
    writer.writeheader()
    for one in made.asked:
        writer.writerows(_rows(one, made.meanings))
    return text.getvalue()


def _rows(one: Asked, meanings: Mapping[str, Meaning]) -> Iterator[Mapping[str, str]]:
    for form, question in one.texts.items():
        row = {
            "interpretation": "+".join(one.words),
            "question": question,
            "base_question": one.texts[BASE],
            "query": one.gold,
            "form": form,
        }
        if len(one.words) == 1:
            (name,) = one.words
            row |= {
                "word": meanings[name].words.get(form, ""),
                "meaning": meanings[name].text,
                "support": "yes" if one.support else "",
                "dialogue": f"{TALKS}/{name}.txt",
            }
        if form != BASE:
            yield row


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


def dialogue(profile: Profile, meaning: Meaning, seed: int) -> str:
    """Two people talk about the database: the text for :func:`.own.read_dialogue`.

    The word is ``{word}``, and only the marked turns are about it.
    """
    rng, fixed = random.Random(f"{seed} {meaning.name} dialogue"), known()["dialogues"]
    facts = list(_facts(profile))
    rng.shuffle(facts)
    nouns = listed([entity.many for entity in profile.entities.values()][:3])
    turns = [[one.format(nouns=nouns) for one in fixed["opening"]], *facts][: TURNS // 2 - 1]
    turns += rng.sample(fixed["closing"], max(0, TURNS // 2 - 1 - len(turns)))
    asked = rng.choice(fixed["questions"])
    answer = rng.choice(fixed["answers"]).replace("{meaning}", meaning.text)
    lines = [f"User1: {one}\n\nUser2: {two}" for one, two in turns]
    definition = f"[definition]\nUser1: {asked}\n\nUser2: {answer}\n[/definition]"
    return "\n\n".join([definition, *lines]) + "\n"


def _facts(profile: Profile) -> Iterator[list[str]]:
    facts = known()["dialogues"]["facts"]
    for entity in profile.entities.values():
        words = {"many": entity.many, "one": entity.one, "rows": f"{entity.rows:,}"}
        words["columns"] = listed([field.phrase for field in entity.fields[:4]])
        kinds = ["rows", "columns"] if entity.fields else ["rows"]
        for field in entity.having("category", "place")[:1]:
            some = listed([value_text(value) for value in field.common[:2]])
            words |= {"column": plural(field.phrase), "some": some, "distinct": str(field.distinct)}
            kinds.append("values")
        yield from ([turn.format_map(words) for turn in facts[kind]] for kind in kinds)
