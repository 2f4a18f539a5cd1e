"""The material of the recipe ``demo``: generated texts for four benchmarks.

Texts are of four kinds: discourses, cogs_mini's training set, recipes, and questions to databases,
made of ``grammar.yaml``. None has an item that a task asks for.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise, product
from typing import Any, NamedTuple, TypeAlias, TypedDict, get_args

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

TEXTS = 21_600
"""Texts to train on, once."""

BATCH = 24
"""Texts that the recipe takes at a time."""

SHORT_SHARE = 0.62
"""The share of the batches that have short texts; the others have long ones: little is padding."""

SHORT_WEIGHTS = (0.34, 0.28)
"""How often a short text is a discourse, and how often a logical form."""

LONG_WEIGHTS = (0.09, 0.29)
"""How often a long text is a recipe, and how often a query."""

MINI_SHARE = 0.2
"""How often a recipe is one of diner_mini's own, of those that no split tests."""

INSTRUCTION = prompt.INSTRUCTION.format(prompt.SQLITE)
"""Follows the tables in a prompt about a database."""

STATED_SHARE = 0.35
"""How often a question states its meaning itself, without an invented word."""

CONDITION_SHARE = 0.35
"""How often the rows of a question have a condition that is no meaning."""

TESTED_ITEMS = 200
"""Items of each experiment in the tasks lieder_fresh_..."""

DRAWN_ITEMS = 400
"""Items of each experiment that are drawn for training."""

RUN = 13
"""So many words in a row that are an item's, too, make a text unfit for training (as for GPT-3)."""

VOCABULARY_TEXTS = 6000

WordRun: TypeAlias = tuple[str, ...]


Options = Strict
"""There are none."""


class QuestionForm(NamedTuple):
    """A form of questions in ``grammar.yaml``.

    Attributes:
        stated: The question that states its meaning itself.
        novel: The question with the invented word.
        select: The selected columns.
        tail: The end of the query, behind the table.
    """

    stated: str
    novel: str
    select: str
    tail: str


class Condition(NamedTuple):
    """A condition on rows in ``grammar.yaml``, in words and in SQL; {X} stands for the rows."""

    stated: str
    novel: str
    sql: str


class Kind(TypedDict, total=False):
    """A meaning of an invented word in ``grammar.yaml``, with the questions that need it."""

    means: str
    asks: list[list[str]]
    conditions: list[list[str]]
    words: tuple[int, int]


@dataclass(frozen=True)
class Question:
    """A question to a database.

    Attributes:
        database: The database's name.
        text: The question.
        descriptions: The description of an invented word, if there is one.
        query: The query without its SELECT.
    """

    database: str
    text: str
    descriptions: list[str]
    query: str


def prepare(_: Options, seed: int) -> Material:
    """Return the material of the recipe."""
    drawn_texts = list(islice(texts(seed), TEXTS))
    # Each table at the beginning of a prompt about a database is one token: otherwise a prompt
    # would have 600 tokens, too many for a model of minutes.
    whole_tokens = []
    for database_blocks in blocks().values():
        whole_tokens += [f"{block}\n\n" for block in database_blocks]
    whole_tokens.append(f"{INSTRUCTION}\n\n")
    vocabulary = []
    for text, answer in drawn_texts[:VOCABULARY_TEXTS]:
        vocabulary.append((text + answer).rpartition(INSTRUCTION)[2])
    return Material(drawn_texts, vocabulary=vocabulary, whole=whole_tokens)


def texts(seed: int) -> Iterator[Pair]:
    """Yield prompts with answers, each with its leading space, without end."""
    rng = random.Random(f"demonstration corpus {seed}")
    short_texts = (_discourses(seed, rng), _forms(rng))
    long_texts = (_recipes(rng), _queries(rng))
    while True:
        if rng.random() > SHORT_SHARE:
            kinds, weights = long_texts, LONG_WEIGHTS
        else:
            kinds, weights = short_texts, SHORT_WEIGHTS
        for kind in rng.choices(kinds, weights, k=BATCH):
            yield next(kind)


def words(text: str) -> list[str]:
    """Return the words and Chinese characters of a text, in lower case."""
    return re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())


def runs(texts: Iterable[str]) -> set[WordRun]:
    """Return all runs of :data:`RUN` words; of a shorter text, the whole of it."""
    word_runs = set()
    for text in texts:
        text_words = words(text)
        for start in range(max(1, len(text_words) - RUN + 1)):
            word_runs.add(tuple(text_words[start : start + RUN]))
    return word_runs


def _discourses(seed: int, rng: random.Random) -> Iterator[Pair]:
    """Yield contexts with a sentence that is felicitous after them."""
    tested = _tested_discourses()
    groups = _training_groups(seed)
    remarks = [lieder.REMARK, *embedded(__file__, "grammar.yaml")["remarks"]]
    while True:
        sentence = rng.choice(rng.choice(groups).sentences)
        continuation = sentence.continuation
        if not sentence.felicitous:
            continuation = rng.choice(remarks)
        if sentence.felicitous is False:
            continue
        if not runs([sentence.context, sentence.context + continuation]) & tested:
            yield sentence.context, continuation


def _tested_discourses() -> set[WordRun]:
    """Return the runs of words of all discourses that tasks ask."""
    discourses = []
    for group in [*lieder.mini_groups(), *_drawn_groups(TESTED_ITEMS, "seed 0")]:
        for sentence in group.sentences:
            discourses += [sentence.context, sentence.context + sentence.continuation]
    return runs(discourses)


def _training_groups(seed: int) -> list[Group]:
    """Return groups of drawn items, and those of lieder_mini's items with other people."""
    groups = _drawn_groups(DRAWN_ITEMS, f"demonstration {seed}")
    people = sorted(set().union(*(item.owners for item in lieder.mini_items())))
    families = lieder.read_words("mini")["families"].items()
    for item, owners, (family, contexts) in product(
        lieder.mini_items(), pairwise(people), families
    ):
        groups.append(lieder.make_group("", item._replace(owners=owners), family, contexts))
    return groups


def _drawn_groups(count: int, seed: str) -> list[Group]:
    """Return groups of all experiments, drawn as lieder_fresh's are."""
    groups: list[Group] = []
    for experiment in get_args(Experiment):
        groups += lieder.draw_groups(count, seed, experiment)
    return groups


def _forms(rng: random.Random) -> Iterator[Pair]:
    """Yield cogs_mini's training sentences with their logical forms, again and again."""
    examples = cogs.examples("train")
    while True:
        for example in rng.sample(examples, len(examples)):
            yield example.sentence, f" {example.form}"


def _recipes(rng: random.Random) -> Iterator[Pair]:
    """Yield recipes with the names of their dishes."""
    tested: set[str] = set()
    for split in diner.SPLITS:
        tested.update(diner.split(split)["test"]["instructions"])
    train = diner.split("tmcd")["train"]
    mini_recipes = []
    for instruction, name in zip(train["instructions"], train["names"], strict=True):
        if instruction not in tested:
            mini_recipes.append((instruction, name))
    while True:
        if rng.random() < MINI_SHARE:
            instruction, name = rng.choice(mini_recipes)
        else:
            instruction, name = generated.recipe(rng)
        yield name_prompt(instruction), f" {name}"


@cache
def blocks() -> dict[str, list[str]]:
    """Return how prompts show the tables of each database."""
    return {name: prompt.schema(database) for name, database in magnifico.databases().items()}


def _queries(rng: random.Random) -> Iterator[Pair]:
    """Yield questions about magnifico_mini's databases with their queries, as its prompts do.

    Meanings are of ten of magnifico_mini's kinds, with other bounds; words are invented. No
    question and no query is one of magnifico_mini's own, support examples included.
    """
    content = magnifico.content()
    examples = (*content.examples, *content.combinations, *content.solved)
    tested = runs(example.question for example in examples)
    tested_queries = {tuple(words(example.query)) for example in examples}
    while True:
        question = _draw_question(rng)
        if runs([question.text]) & tested:
            continue
        if tuple(words(f"SELECT{question.query}")) in tested_queries:
            continue
        tables = blocks()[question.database]
        text = prompt.for_question(tables, question.text, descriptions=question.descriptions)
        yield text, question.query


def _draw_question(rng: random.Random) -> Question:
    """Draw a question, with an invented word or without."""
    rules = embedded(__file__, "grammar.yaml")
    is_novel = rng.random() >= STATED_SHARE
    kind: Kind = rng.choice(rules["kinds"])
    form = QuestionForm(*rng.choice(kind["asks"]))
    conditions = [Condition(*condition) for condition in kind.get("conditions", [])]
    if rng.random() < CONDITION_SHARE and "{many}" in form.novel and "WHERE" not in form.tail:
        conditions.insert(0, Condition("{too}", "{too}", "{too_sql}"))
    word_count = rng.randint(*kind.get("words", (1, 1)))
    novel_words = " ".join(invent(WORDLIKE, rng) for _ in range(word_count))
    while True:
        slots = _draw_slots(rules["slots"] | rng.choice(rules["entities"]), rng)
        slots["rows"] = slots["many"]
        slots["form"] = novel_words
        try:
            question = _fill_question(kind, form, conditions, slots, is_novel=is_novel)
        except KeyError:  # this table has no such column
            continue
        if question is not None:
            return question


def _fill_question(
    kind: Kind,
    form: QuestionForm,
    conditions: list[Condition],
    slots: dict[str, str],
    *,
    is_novel: bool,
) -> Question | None:
    """Return a form of questions with its slots filled; None if two conditions are on one column.

    Args:
        kind: The kind of meaning that the form belongs to.
        form: The form.
        conditions: Conditions on the rows, which are added to their names.
        slots: The slots, which are changed.
        is_novel: Whether the question has the invented word.

    Raises:
        KeyError: There is no such slot.
    """
    for condition in conditions:
        for noun in ("one", "many"):
            template = condition.novel if is_novel else condition.stated
            slots[noun] = _fill(template, slots | {"X": slots[noun]})
    where_parts = [_fill(condition.sql, slots) for condition in conditions]
    where = f" WHERE {' AND '.join(where_parts)}" if where_parts else ""
    query = _fill(f" {form.select} FROM {{table}}{where}{form.tail}", slots)
    text = _fill(form.novel if is_novel else form.stated, slots)
    descriptions = []
    if is_novel:
        descriptions.append(prompt.description(slots["form"], _fill(kind["means"], slots)))
    columns = {part.split()[0] for part in where_parts}
    if len(columns) < len(where_parts):
        return None
    return Question(slots["db"], text, descriptions, query)


def _draw_slots(source: Mapping[str, Any], rng: random.Random) -> dict[str, str]:
    """Return the slots of a mapping; of a list, those of one alternative."""
    slots: dict[str, str] = {}
    for key, entry in source.items():
        value = rng.choice(entry) if isinstance(entry, list) else entry
        if isinstance(value, dict):
            slots |= _draw_slots(value, rng)
        else:
            slots[key] = str(value)
    return slots


def _fill(text: str, slots: Mapping[str, str]) -> str:
    """Return a text without slots.

    Raises:
        KeyError: There is no such slot.
    """
    while "{" in text:
        text = text.format(**slots)
    return text
