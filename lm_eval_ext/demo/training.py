"""The material of the recipe ``demo``: generated texts for four benchmarks.

Texts are of four kinds: discourses, cogs_mini's training set, recipes, and questions to databases,
made of ``grammar.yaml``. None has an item that a task asks for.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice, pairwise, product
from typing import Any, get_args

from lm_eval_ext.benchmarks.cogs import mini as cogs
from lm_eval_ext.benchmarks.diner import generated
from lm_eval_ext.benchmarks.diner import mini as diner
from lm_eval_ext.benchmarks.diner.prompt import name_prompt
from lm_eval_ext.benchmarks.lieder import items as lieder
from lm_eval_ext.benchmarks.lieder.records import Experiment, Group
from lm_eval_ext.benchmarks.magnifico import mini as magnifico
from lm_eval_ext.benchmarks.magnifico import prompt
from lm_eval_ext.lexicon import WORDLIKE
from lm_eval_ext.lexicon import draw as invent
from lm_eval_ext.reading import Strict, embedded
from lm_eval_ext.training.recipe import Material, Pair

TEXTS, BATCH = 21_600, 24
"""Texts to train on, once, and how many of them the recipe takes at a time."""

SHARES = ((0.34, 0.28), (0.09, 0.29))
"""How many of the texts are discourses and logical forms, which are short, and how many are recipes
and queries, which are long."""

SHORT = 0.62
"""How many of the batches have short texts, the others long ones: little is padding."""

OWN = 0.2
"""How often a recipe is one of diner_mini's own, of those that no split tests."""

INSTRUCTION = prompt.INSTRUCTION.format(prompt.SQLITE)
"""Follows the tables in a prompt about a database."""

BASE, FURTHER = 0.35, 0.35
"""How often a question states its meaning itself, and rows have a condition that is no meaning."""

TESTED_ITEMS, DRAWN_ITEMS = 200, 400
"""Items of the tasks lieder_fresh_..., and those drawn for training, of each experiment."""

RUN = 13
"""So many words in a row that are an item's, too, make a text unfit for training (as for GPT-3)."""

VOCABULARY_TEXTS = 6000


Options = Strict
"""There are none."""


def prepare(_: Options, seed: int) -> Material:
    """The material of the recipe."""
    drawn = list(islice(texts(seed), TEXTS))
    # What opens the prompts about a database is one token for each of its tables: otherwise a
    # prompt would have 600 tokens, too many for a model of minutes.
    whole = [f"{block}\n\n" for some in blocks().values() for block in some]
    shown = ["".join(one).rpartition(INSTRUCTION)[2] for one in drawn[:VOCABULARY_TEXTS]]
    return Material(drawn, vocabulary=shown, whole=[*whole, f"{INSTRUCTION}\n\n"])


def texts(seed: int) -> Iterator[Pair]:
    """Prompts with answers, each with its leading space, without end."""
    rng = random.Random(f"demonstration corpus {seed}")
    kinds = (_discourses(seed, rng), _forms(rng)), (_recipes(rng), _queries(rng))
    while True:
        long = rng.random() > SHORT
        for kind in rng.choices(kinds[long], SHARES[long], k=BATCH):
            yield next(kind)


def words(text: str) -> list[str]:
    """Words and Chinese characters, in lower case."""
    return re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())


def runs(of: Iterable[str]) -> set[tuple[str, ...]]:
    """All runs of :data:`RUN` words; of a shorter text, the whole of it."""
    return {
        tuple(one[start : start + RUN])
        for one in map(words, of)
        for start in range(max(1, len(one) - RUN + 1))
    }


def _discourses(seed: int, rng: random.Random) -> Iterator[Pair]:
    """Contexts with a sentence that is felicitous after them; in lieder_mini's, of other people."""
    asked = [*lieder.mini(), *_groups(TESTED_ITEMS, "seed 0")]
    tested = runs(
        text
        for group in asked
        for one in group.sentences
        for text in (one.context, one.context + one.continuation)
    )
    people = sorted({name for one in lieder.mini_items() for name in one.owners})
    mini = product(lieder.mini_items(), pairwise(people), lieder.words("mini")["families"].items())
    groups = [
        *_groups(DRAWN_ITEMS, f"demonstration {seed}"),
        *(lieder.group("", one._replace(owners=pair), *family) for one, pair, family in mini),
    ]
    remarks = [lieder.REMARK, *embedded(__file__, "grammar.yaml")["remarks"]]
    while True:
        one = rng.choice(rng.choice(groups).sentences)
        text = one.context, one.continuation if one.felicitous else rng.choice(remarks)
        if one.felicitous is not False and not runs([one.context, "".join(text)]) & tested:
            yield text


def _groups(count: int, seed: str) -> list[Group]:
    """Those of all experiments, drawn as lieder_fresh's are."""
    return [group for one in get_args(Experiment) for group in lieder.drawn(count, seed, one)]


def _forms(rng: random.Random) -> Iterator[Pair]:
    """cogs_mini's training sentences with their logical forms, again and again."""
    examples = cogs.examples("train")
    while True:
        for one in rng.sample(examples, len(examples)):
            yield one.sentence, f" {one.form}"


def _recipes(rng: random.Random) -> Iterator[Pair]:
    """Recipes with the names of their dishes."""
    tested = {text for name in diner.SPLITS for text in diner.split(name)["test"]["instructions"]}
    train = diner.split("tmcd")["train"]
    own = [one for one in zip(train["instructions"], train["names"], strict=True)
           if one[0] not in tested]  # fmt: skip
    while True:
        text, name = rng.choice(own) if rng.random() < OWN else generated.recipe(rng)
        yield name_prompt(text), f" {name}"


@cache
def blocks() -> dict[str, list[str]]:
    """How prompts show the tables of each database."""
    return {name: prompt.schema(database) for name, database in magnifico.databases().items()}


def _queries(rng: random.Random) -> Iterator[Pair]:
    """Questions about magnifico_mini's databases with their queries, in the format of its prompts.

    Meanings are of magnifico_mini's kinds, with other bounds; words are invented. No question and
    no query is one of magnifico_mini's own, support examples included.
    """
    content = magnifico.content()
    own = (*content.examples, *content.combinations, *content.solved)
    tested, golds = runs(one.question for one in own), {tuple(words(one.query)) for one in own}
    while True:
        db, question, described, query = _question(rng)
        if not runs([question]) & tested and tuple(words(f"SELECT{query}")) not in golds:
            yield prompt.for_question(blocks()[db], question, descriptions=described), query


def _question(rng: random.Random) -> tuple[str, str, list[str], str]:
    """The database, the question, a description or none, and the query without its SELECT."""
    rules, novel = embedded(__file__, "grammar.yaml"), rng.random() >= BASE
    kind = rng.choice(rules["kinds"])
    *said, select, tail = rng.choice(kind["asks"])
    conditions = kind.get("conditions", [])
    if rng.random() < FURTHER and "{many}" in said[1] and "WHERE" not in tail:
        conditions = [("{too}", "{too}", "{too_sql}"), *conditions]
    form = " ".join(invent(WORDLIKE, rng) for _ in range(rng.randint(*kind.get("words", (1, 1)))))
    while True:
        slots = _slots(rules["slots"] | rng.choice(rules["entities"]), rng)
        slots |= {"rows": slots["many"], "form": form}
        try:
            for one in conditions:
                for noun in ("one", "many"):
                    slots[noun] = _filled(one[novel], slots | {"X": slots[noun]})
            wheres = [_filled(sql, slots) for *_, sql in conditions]
            where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
            query = _filled(f" {select} FROM {{table}}{where}{tail}", slots)
            question = _filled(said[novel], slots)
            described = [prompt.description(form, _filled(kind["means"], slots))] if novel else []
        except KeyError:  # this table has no such column
            continue
        if len({one.split()[0] for one in wheres}) == len(wheres):  # each on its own column
            return slots["db"], question, described, query


def _slots(source: Mapping[str, Any], rng: random.Random) -> dict[str, str]:
    """The slots of a mapping; of a list, those of one alternative."""
    found: dict[str, str] = {}
    for key, value in source.items():
        one = rng.choice(value) if isinstance(value, list) else value
        found |= _slots(one, rng) if isinstance(one, dict) else {key: str(one)}
    return found


def _filled(text: str, slots: Mapping[str, str]) -> str:
    """A text without slots.

    Raises:
        KeyError: There is no such slot.
    """
    while "{" in text:
        text = text.format(**slots)
    return text
