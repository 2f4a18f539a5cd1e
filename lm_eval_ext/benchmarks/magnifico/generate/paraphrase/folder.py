"""Writes a generated folder anew, with paraphrases where they are kept; the first one stays."""

import csv
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path, sha256_of
from lm_eval_ext.benchmarks.magnifico.generate import lexicon
from lm_eval_ext.benchmarks.magnifico.generate import profile as profiles
from lm_eval_ext.benchmarks.magnifico.generate.folder import EXAMPLES, LEXICON, task_file, task_of
from lm_eval_ext.benchmarks.magnifico.generate.paraphrase import RULES_VERSION
from lm_eval_ext.benchmarks.magnifico.generate.paraphrase.judge import (
    Asked,
    Judge,
    Refused,
    base_of,
)
from lm_eval_ext.benchmarks.magnifico.generate.paraphrase.pair import alone
from lm_eval_ext.benchmarks.magnifico.own import GENERATED, PARAPHRASED
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.schema import read_schema

ANSWERS = "paraphrases.jsonl"
"""What the model answered to each question, and what became of it."""

PROMPT = """\
Rewrite each question in other words. Keep names, numbers and {word} exactly as they are. Ask for \
the same, in one sentence, and do not answer.

Question: Show the title of every film whose running time is above 120 and whose genre is Drama.
Rewritten: What are the titles of films in the Drama genre with a running time of more than 120?

Question: For each region, how many ubrenti wineries are there whose grape is not Riesling?
Rewritten: What is the number of ubrenti wineries per region whose grape is other than Riesling?

Question: Find the orvask salary of the nurses whose ward is Surgery.
Rewritten: Among nurses with the ward Surgery, what is the orvask salary?

Question: {question}
Rewritten:"""

_TEXTS = ("question", "base_question")
_Row = dict[str, str]
_Words = Mapping[tuple[str, str], tuple[str, str]]


@dataclass
class _Question:
    """The rows of one question, and one form of it that the model is shown.

    It is the foreign form where there is one: an invented word has no meaning that could be said
    instead, and no other forms.
    """

    rows: list[_Row]
    asked: Asked | None = None
    answer: str = ""
    verdict: str = "kept"

    @property
    def shown(self) -> _Row:
        return next((row for row in self.rows if row["form"] == "foreign"), self.rows[0])

    def words(self, known: _Words, form: str) -> dict[str, tuple[str, str]]:
        """Word and meaning by interpretation."""
        return {name: known[name, form] for name in self.shown["interpretation"].split("+")}


def paraphrase(
    folder: Path, out: Path, by: str, answers: Callable[[Sequence[str]], Sequence[str]]
) -> dict[str, Any]:
    """Makes a folder of a generated one; returns what ``generated.json`` says of paraphrases.

    ``answers`` gets all prompts at once, and ``by`` names what gives them.

    Raises:
        OptionError: ``out`` is not empty or cannot be written.
        DataError: ``folder`` is not what ``magnifico generate`` wrote.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out} exists and is not an empty folder; name a new one")
    said, rows = _read(folder)
    if engine := said["database"].get("engine"):
        raise DataError(f"{folder}: its queries are for {engine}; only SQLite's can be paraphrased")
    database = folder / f"{said['database']['name']}.sqlite"
    named = folder / LEXICON
    profile = profiles.read(
        database, lexicon.read(named if named.is_file() else None, read_schema(database))
    )
    known = {
        (row["interpretation"], row["form"]): (row["word"], row["meaning"])
        for row in rows if row["word"]
    }  # fmt: skip
    questions = list(_questions(rows))
    _ready(questions, known, Judge(profile))
    open_ones = [one for one in questions if one.asked]
    prompts = [_prompt(one, known) for one in open_ones]
    for one, answer in zip(open_ones, answers(prompts), strict=True):
        one.answer = str(answer)
    _judge(questions, known, by)
    counts = Counter(one.verdict for one in questions)
    kept = counts.pop("kept", 0)
    said["paraphrased"] = {
        "by": by, "rules": RULES_VERSION, "kept": kept, "of": len(questions),
        "refused": dict(counts.most_common()),
    }  # fmt: skip
    try:
        _write(folder, out, said, questions)
    except OSError as error:
        raise OptionError(f"cannot write {out}: {error.strerror}") from None
    return dict(said["paraphrased"])


def _read(folder: Path) -> tuple[dict[str, Any], list[_Row]]:
    try:
        said = json.loads((folder / GENERATED).read_text(encoding="utf-8"))
        same = said["examples"] == sha256_of(folder / EXAMPLES)
        with (folder / EXAMPLES).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        if said["lexicon"] and sha256_of(folder / LEXICON) != said["lexicon"]:
            same = False
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder}: not a folder of magnifico generate ({type(error).__name__}: {error}); name "
            "one, or generate it anew"
        ) from None
    if not same:
        raise DataError(f"{folder}: changed since it was generated; generate it anew")
    if "paraphrased" in said:
        raise DataError(f"{folder}: already paraphrased; name the folder that it was made of")
    return said, rows


def _questions(rows: Sequence[_Row]) -> Iterator[_Question]:
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault((row["interpretation"], row["base_question"]), []).append(row)
    yield from map(_Question, groups.values())


def _ready(questions: Sequence[_Question], known: _Words, judge: Judge) -> None:
    """Reads the questions; those that no paraphrase is asked of get a verdict."""
    readings: dict[Any, str] = {}
    for one in questions:
        row = one.shown
        try:
            words = one.words(known, row["form"])
            asked = judge.asked(row["question"], row["base_question"], words, row["query"])
            key = row["interpretation"], asked.reading
            if readings.setdefault(key, row["query"]) != row["query"]:
                raise Refused("another question has the same reading")
            one.asked = asked
        except Refused as reason:
            one.verdict = f"not asked: {reason}"


def _prompt(one: _Question, known: _Words) -> str:
    words = [f'the word "{word}"' for word, _ in one.words(known, one.shown["form"]).values()]
    return PROMPT.format(word=" and ".join(words), question=one.shown["question"])


def _judge(questions: Sequence[_Question], known: _Words, by: str) -> None:
    taken = {_plain(row[text]) for one in questions for row in one.rows for text in _TEXTS}
    for one in questions:
        if one.asked is None:
            continue
        given = one.words(known, one.shown["form"])
        try:
            base = base_of(one.asked, one.answer)
            texts = [_with_words(one.answer.strip(), given, one.words(known, row["form"]))
                     for row in one.rows]  # fmt: skip
            if taken & {_plain(text) for text in (base, *texts)}:
                raise Refused("another question has the same text")
        except Refused as reason:
            one.verdict = str(reason)
            continue
        taken |= {_plain(text) for text in (base, *texts)}
        for row, text in zip(one.rows, texts, strict=True):
            row |= {f"original_{name}": row[name] for name in _TEXTS}
            row |= {"question": text, "base_question": base, "paraphrased_by": by}


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _with_words(
    text: str, given: Mapping[str, tuple[str, str]], wanted: Mapping[str, tuple[str, str]]
) -> str:
    """The text with the words of another form."""
    pattern = "|".join(alone(word).pattern for word, _ in given.values())
    by_word = {word: wanted[name][0] for name, (word, _) in given.items()}
    return re.sub(pattern, lambda found: by_word[found[0]], text)


def _write(folder: Path, out: Path, said: dict[str, Any], questions: Sequence[_Question]) -> None:
    name = said["database"]["name"]
    with atomic_path(out) as part:
        shutil.copytree(folder, part, ignore=shutil.ignore_patterns("*.yaml", EXAMPLES, GENERATED))
        text = io.StringIO()
        rows = [row for one in questions for row in one.rows]
        columns = [*(column for column in rows[0] if column not in PARAPHRASED), *PARAPHRASED]
        writer = csv.DictWriter(text, columns, delimiter="\t", lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
        (part / EXAMPLES).write_text(text.getvalue(), encoding="utf-8", newline="")
        lines = [
            {"prompt_question": one.shown.get("original_question") or one.shown["question"],
             "answer": one.answer, "verdict": one.verdict} for one in questions
        ]  # fmt: skip
        (part / ANSWERS).write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8"
        )
        said["examples"] = sha256_of(part / EXAMPLES)
        (part / GENERATED).write_text(
            json.dumps(said, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
        task = f"{task_of(name)}_paraphrased"
        (part / f"{task}.yaml").write_text(
            task_file(out, task, {"magnifico_databases": f"{name}.sqlite"}), "utf-8"
        )


def as_text(said: Mapping[str, Any]) -> str:
    """How many were kept, and why the others were not, in some lines."""
    lines = [f"{said['kept']:,} of {said['of']:,} questions paraphrased by {said['by']}"]
    lines += [f"  {count:,} as they were: {why}" for why, count in said["refused"].items()]
    return "\n".join(lines)
