"""Questions about magnifico_mini's databases with their queries, in the format of its prompts.

They are made of a small grammar: rows with conditions, and what is asked about them. Meanings are
of magnifico_mini's kinds, with other bounds; words are invented. No question and no query is one of
magnifico_mini's own.
"""

import random
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import yaml

from lm_eval_ext.benchmarks.magnifico import mini, prompt
from lm_eval_ext.lexicon.words import WORDLIKE
from lm_eval_ext.lexicon.words import draw as invent
from lm_eval_ext.training.material import Pair

BASE, VALUE, JOINED, FURTHER = 0.35, 0.4, 0.2, 0.35
"""How often a question states its meaning itself, a meaning is a value, rows are asked about
through another table, and have a condition that is no meaning."""

RUN = 13
"""So many words in a row that are an item's, too, make a text unfit for training (as for GPT-3)."""

Condition = tuple[str, str]
"""What stands behind the noun (before it with "^"), and its SQL, which begins with a column."""


class Meaning(NamedTuple):
    """A condition as stated, as said with the word ``{form}``, and its description."""

    stated: Condition
    said: str
    text: str


@cache
def lexicon(name: str) -> Any:
    """The content of a YAML file beside this module, which says itself what is in it."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def words(text: str) -> list[str]:
    """Words and Chinese characters, in lower case."""
    return re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())


def runs(texts: Iterable[str]) -> set[tuple[str, ...]]:
    """All runs of :data:`RUN` words; of a shorter text, the whole of it."""
    found = set()
    for text in texts:
        of_text = words(text)
        for start in range(max(1, len(of_text) - RUN + 1)):
            found.add(tuple(of_text[start : start + RUN]))
    return found


@cache
def blocks() -> dict[str, list[str]]:
    """How prompts show the tables of each database."""
    return {name: prompt.schema(database) for name, database in mini.databases().items()}


@cache
def _tested() -> tuple[set[tuple[str, ...]], set[str]]:
    """Runs of words of magnifico_mini's questions, and its queries; support examples too."""
    content = mini.content()
    found = (*content.examples, *content.combinations, *content.solved)
    return runs(one.question for one in found), {" ".join(words(one.query)) for one in found}


def draw(rng: random.Random) -> Pair:
    """A prompt and its query."""
    while True:
        db, question, meaning, query = _draw(rng)
        tested, golds = _tested()
        if not runs([question]) & tested and " ".join(words(f"SELECT{query}")) not in golds:
            return prompt.for_question(blocks()[db], question, descriptions=meaning), query


def _draw(rng: random.Random) -> tuple[str, str, Sequence[str], str]:
    """The database, the question, a description or none, and the query without its SELECT."""
    grammar = lexicon("queries")
    valued = rng.random() < VALUE
    text = rng.choice(tuple(grammar["values"])) if valued else ""
    needs = {"the code": "code", "half of": "middle"}
    need = next((key for start, key in needs.items() if text.startswith(start)), "")
    entity = rng.choice([one for one in grammar["entities"].values() if not need or need in one])
    novel = rng.random() >= BASE
    form = invent(WORDLIKE, rng)
    conditions: list[Condition] = []
    if not valued and (meanings := _meanings(entity, rng)):
        meaning = rng.choice(meanings)
        text = meaning.text
        if meaning.said.startswith("that"):  # a phrase
            form = " ".join(invent(WORDLIKE, rng) for _ in range(rng.randint(2, 5)))
        conditions = [
            (meaning.said.format(form=form) if novel else meaning.stated[0], meaning.stated[1])
        ]
    if entity["where"] and rng.random() < FURTHER and need != "middle":
        conditions += _further(entity, rng, {sql.split()[0] for _, sql in conditions})
    asked, source, alias = entity, entity["table"], ""
    one, many = entity["one"], entity["many"]
    for phrase, _ in sorted(conditions, key=lambda c: not c[0].startswith("^")):
        one, many = (_put(noun, phrase) for noun in (one, many))
    wheres = [sql for _, sql in conditions]
    joins = [
        (child, phrase, sql)
        for child in grammar["entities"].values()
        for phrase, sql, to in child.get("joins", ())
        if grammar["entities"][to] is entity
    ]
    if joins and not need and conditions and rng.random() < JOINED:
        asked, phrase, source = rng.choice(joins)
        one, many = (f"{noun} {phrase} {many}" for noun in (asked["one"], asked["many"]))
        alias, wheres = "a.", [f"b.{sql}" for sql in wheres]
    values = _slots(asked, alias, rng) | {"one": one, "many": many, "form": form}
    frames = (
        grammar["values"][text] if valued else [(q, q, *rest) for q, *rest in grammar["frames"]]
    )
    usable = [f for f in frames if not _names("".join(f)) - set(values)]
    if not usable:
        return _draw(rng)
    base, said, select, tail = rng.choice(usable)
    where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    query = f" {select} FROM {source}{where}{tail}".format(**values)
    question = (said if novel else base).format(**values)
    described = [prompt.description(form, text)] if novel and text else []
    return entity["db"], question, described, query


def _names(template: str) -> set[str]:
    return set(re.findall(r"{(\w+)}", template))


def _put(noun: str, phrase: str) -> str:
    return f"{phrase[1:]} {noun}" if phrase.startswith("^") else f"{noun} {phrase}"


def _further(entity: Any, rng: random.Random, used: set[str]) -> list[Condition]:
    """A condition on a column that is not used yet, if there is one."""
    free = [one for one in entity["where"] if one[1].split()[0] not in used]
    if not free:
        return []
    phrase, sql, values = rng.choice(free)
    value = rng.choice(values)
    return [(phrase.format(value), sql.format(value))]


def _meanings(entity: Any, rng: random.Random) -> list[Meaning]:
    """What a word can say of an entity's rows."""
    found = []
    for key, (said, text, choices, number) in lexicon("queries")["meanings"].items():
        if key in entity:
            some = [rng.choice(choices)] if number == 1 else rng.sample(choices, number)
            phrase, sql = (part.format(*some) for part in entity[key])
            found.append(Meaning((phrase, sql), said, text.format(*some)))
    table = entity["table"]
    if entity["numbers"]:
        column, phrase = rng.choice(tuple(entity["numbers"].items()))
        stated = f"whose {phrase} is at least half of the largest {phrase}"
        sql = f"{column} >= (SELECT MAX({column}) / 2.0 FROM {table})"
        text = "values of at least half of the largest value"
        found.append(Meaning((stated, sql), f"with a {{form}} {phrase}", text))
    if entity["categories"]:
        column, (phrase, _) = rng.choice(tuple(entity["categories"].items()))
        stated = f"whose {phrase} occurs exactly once among the {entity['many']}"
        sql = f"{column} IN (SELECT {column} FROM {table} GROUP BY {column} HAVING COUNT(*) = 1)"
        text = "values that occur exactly once in their column"
        found.append(Meaning((stated, sql), f"with a {{form}} {phrase}", text))
    return found


def _slots(entity: Any, alias: str, rng: random.Random) -> dict[str, str]:
    """What stands in the places of a frame; those that an entity has."""
    which = (entity["name"], "name") if "name" in entity else entity["id"]
    values = {"W": f"{alias}{which[0]}", "which": which[1]}
    if "code" in entity:
        values["K"] = entity["code"]
    if entity["numbers"]:
        column, phrase = rng.choice(tuple(entity["numbers"].items()))
        values |= {"N": f"{alias}{column}", "n": phrase}
    columns = rng.sample(tuple(entity["categories"].items()), len(entity["categories"]))
    for letter, (column, (phrase, several)) in zip("cd", columns, strict=False):
        values |= {letter.upper(): f"{alias}{column}", letter: phrase, f"{letter}s": several}
    if "middle" in entity:
        both, its, middle, low, high, bounds = entity["middle"]
        values |= {"both": both, "its": its, "middle": middle, "low": low, "high": high}
        values |= {"x": rng.choice(entity["names"]), "k": str(rng.choice(bounds))}
    return values
