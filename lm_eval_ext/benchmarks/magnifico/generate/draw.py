"""Draws what words can mean on a database, and questions about that.

The interpretations are MAGNIFICo's 24 (paper, tables 4 and 5). Ten are about any column. The others
name columns or values there, so here each is bound once to columns and values of the database.

What cannot be said well is not drawn: the average of a year, the highest minimum.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from lm_eval_ext.benchmarks.magnifico.generate.english import grammar, word_list
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Profile, Role
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    COUNT,
    Aggregate,
    Clause,
    ColumnTerm,
    Question,
    Term,
    Top,
)
from lm_eval_ext.benchmarks.magnifico.records import Form
from lm_eval_ext.lexicon import WORDLIKE, draw_words, is_english
from lm_eval_ext.sql.values import Value

Node: TypeAlias = Clause | Aggregate | Top
ItemT = TypeVar("ItemT")

_MIN_DISTINCT = 4
"""Different values of a column that questions are about."""
_MIN_GROUPS = 2
"""Different values of a column that rows are grouped by, or that are listed."""
_MAX_GROUPS = 30
_MAX_TEXT = 32
"""Characters of a value in a sentence."""
_COMMON_VALUES = 8
"""Values of a column, the most frequent first, that conditions name."""
_STYLES = 6

_CATEGORIES: tuple[Role, ...] = ("category", "place")
_NUMBERS: tuple[Role, ...] = ("amount", "total")
_SUMMABLE: tuple[Role, ...] = ("total",)
_NAME_ROLES = frozenset({"first", "last", "name"})
_THRESHOLD_RULES = frozenset({">", "<", ">=", "<=", "after", "before"})
_QUOTING = frozenset("\\\"'`;{}")
"""Characters that no value in a sentence has."""

# Chances of what is drawn.
_TOP_IS_HIGHEST = 0.6
_SHOWS_VALUE_OF_SECOND = 0.3
_HAS_FURTHER_CONDITION = 0.65
_FURTHER_ON_ENTITY = 0.7
_FURTHER_ON_CHILDREN = 1 / 3
"""The chance of a condition on the children, where there are conditions on parents as well."""

# Shares of draws, added up: below the first one only names are shown, below the second one names
# with another column, and from there on another column alone.
_ONLY_NAMES = 1 / 2
_NAMES_AND_MORE = 3 / 4


class ImpossibleDraw(Exception):  # noqa: N818 (no error: callers draw again)
    """A draw needs something that the database does not have; another draw may not."""


@dataclass(frozen=True)
class Meaning:
    """An interpretation on a database.

    Attributes:
        text: Completes "The word '...' refers to".
        words: The word or phrase by form.
        entity: The table that it is bound to; None if it is about any.
        node: Its node in a tree, if it is bound.
    """

    text: str
    words: Mapping[Form, str]
    entity: Entity | None = None
    node: Node | None = None


def meanings_of(profile: Profile, seed: int) -> dict[str, Meaning]:
    """Return the interpretations that the schema allows, with their words, by kind."""
    names = _names_in(profile)
    rng = random.Random(f"{seed} words")
    rules = grammar()["meanings"]
    foreign_words = draw_words(WORDLIKE, len(rules), rng, taken=names, refused=is_english)
    meanings = {}
    for (kind, rule), foreign in zip(rules.items(), foreign_words, strict=True):
        forms = _draw_forms(rule["words"], foreign, names, rng)
        if "means" in rule:
            meanings[kind] = Meaning(rule["means"], forms)
            continue
        drawer = Drawer(profile, random.Random(f"{seed} {kind}"))
        bound = drawer.bind(kind)
        if bound is not None:
            entity, node = bound
            text = f"those {node.words({})}"
            if "behind" in rule:
                text = text.partition(rule["behind"])[2]
            meanings[kind] = Meaning(text, forms, entity, replace(node, kind=kind))
    return meanings


def _names_in(profile: Profile) -> set[str]:
    """Return all names of tables and columns, as declared and in words."""
    names: set[str] = set()
    for entity in profile.entities.values():
        names |= {entity.table, entity.singular, entity.plural}
        for field in entity.fields:
            names |= {field.name, field.phrase}
    return {name.casefold() for name in names}


def _draw_forms(
    choices: Sequence[Sequence[str]], foreign: str, names: Collection[str], rng: random.Random
) -> dict[Form, str]:
    """Draw the words of a meaning; words that stand in names are the last choice.

    Args:
        choices: Plausible words, each with its adversarial one; phrases have none.
        foreign: The foreign word.
        names: Names of tables and columns.
        rng: The generator.
    """
    unused = []
    for words in choices:
        stands_in_name = any(word in name for word in words for name in names)
        if not stands_in_name:
            unused.append(words)
    plausible, *adversarial = rng.choice(unused or choices)
    forms: dict[Form, str] = {"plausible": plausible}
    if adversarial:
        forms["foreign"] = foreign
        forms["adversarial"] = adversarial[0]
    return forms


@dataclass(frozen=True)
class _Result:
    """The parts of a question that decide about its result, as in :class:`.tree.Question`."""

    show: tuple[Term, ...]
    group_by: ColumnTerm | None = None
    top: Top | None = None


class Drawer:
    """Draws nodes and questions on one database."""

    def __init__(self, profile: Profile, rng: random.Random) -> None:
        self.profile = profile
        self.rng = rng

    def bind(self, kind: str) -> tuple[Entity, Node] | None:
        """Draw a table and a node that express a kind of meaning; None if there is none."""
        bindings = []
        for entity in self.profile.entities.values():
            bindings += [(entity, node) for node in self.nodes(kind, entity)]
        if not bindings:
            return None
        # Tables of which more can be asked give more questions.
        weights = [len(entity.fields) ** 2 or 1 for entity, _ in bindings]
        return self.rng.choices(bindings, weights)[0]

    def nodes(self, kind: str, entity: Entity) -> Iterator[Node]:
        """Yield what a word of a kind can mean on a table; values are drawn."""
        rule: Mapping[str, Any] = grammar()["meanings"][kind]
        for expression in rule["as"]:
            if expression == "COUNT":
                yield COUNT
            elif expression in grammar()["groups"]:
                yield Top(COUNT, rank=grammar()["groups"][expression])
            elif rule["of"] == "link":
                yield from self._link_conditions(expression, entity)
            else:
                columns = self._askable_columns(entity, *rule["of"].split())
                yield from self._nodes_of_columns(expression, entity, columns)

    def _nodes_of_columns(
        self, expression: str, entity: Entity, columns: Iterable[ColumnTerm]
    ) -> Iterator[Node]:
        for column in columns:
            node = self._node(expression, entity, column)
            if node is not None:
                yield node

    def _node(self, expression: str, entity: Entity, column: ColumnTerm) -> Node | None:
        if expression in grammar()["functions"]:
            return Aggregate(expression, column)
        if expression in grammar()["ranks"]:
            return Top(column, *grammar()["ranks"][expression])
        return self._draw_condition(expression, entity, column)

    def question(self, kind: str, meaning: Meaning) -> Question:
        """Draw one question with a meaning.

        Raises:
            Impossible: This draw led nowhere; another one may not.
        """
        if meaning.entity and meaning.node:
            return self._question_about(meaning.entity, meaning.node)
        entities = list(self.profile.entities.values())
        weights = [len(entity.fields) + 1 for entity in entities]
        entity = self.rng.choices(entities, weights)[0]
        node = self._pick(list(self.nodes(kind, entity)))
        return self._question_about(entity, replace(node, kind=kind))

    def _question_about(self, entity: Entity, node: Node) -> Question:
        """Draw a question in which a node stands where it can."""
        shape = self.rng.choice(grammar()["asks"][type(node).__name__].split())
        mentioned = _phrases([node])
        result = self._draw_result(entity, node, shape, mentioned)
        where: tuple[Clause, ...] = (node,) if isinstance(node, Clause) else ()
        has_further = self._happens(_HAS_FURTHER_CONDITION)
        if has_further and (not where or shape in {"count", "measure", "list"}):
            mentioned_so_far = mentioned | _phrases([*result.show, result.group_by, result.top])
            where += self._draw_further_conditions(entity, mentioned_so_far)
        return Question(
            entity,
            result.show,
            where,
            result.group_by,
            result.top,
            distinct=shape == "different",
            style=self.rng.randrange(_STYLES),
        )

    # Parts of questions. ``mentioned`` are the phrases of columns that are not mentioned again.

    def _draw_result(
        self, entity: Entity, node: Node, shape: str, mentioned: Collection[str]
    ) -> "_Result":
        if isinstance(node, Top) and node.term == COUNT:
            return _Result((), group_by=self._draw_group_column(entity, mentioned), top=node)
        if shape == "groups":
            show = node if isinstance(node, Aggregate) else COUNT
            return _Result((show,), group_by=self._draw_group_column(entity, mentioned))
        if shape == "top":
            top, shown_terms = self._draw_top(entity, node, mentioned)
            return _Result(shown_terms, top=top)
        return _Result(self._draw_shown_terms(entity, node, shape, mentioned))

    def _draw_shown_terms(
        self, entity: Entity, node: Node, shape: str, mentioned: Collection[str]
    ) -> tuple[Term, ...]:
        """Draw what is shown where a question is about all rows."""
        if shape == "different":
            columns = self._askable_columns(
                entity, *_CATEGORIES, mentioned=mentioned, min_distinct=_MIN_GROUPS
            )
            return (self._pick(columns),)
        if isinstance(node, Aggregate):
            return (node,)
        if shape == "measure":
            return (self._draw_measure(entity, mentioned),)
        if shape == "list":
            return self._draw_shown_columns(entity, mentioned)
        return (COUNT,)

    def _draw_top(
        self, entity: Entity, node: Node, mentioned: Collection[str]
    ) -> tuple[Top, tuple[Term, ...]]:
        """Draw a row at a rank, and what is shown of it."""
        amounts = self._askable_columns(entity, *_NUMBERS, mentioned=mentioned)
        if isinstance(node, Top):
            top = node
        else:
            top = Top(self._pick(amounts), self._happens(_TOP_IS_HIGHEST))
        if top.rank > 1 and self._happens(_SHOWS_VALUE_OF_SECOND):
            return top, (top.term,)
        return top, self._draw_shown_columns(entity, {*mentioned, *_phrases([top])})

    def _draw_measure(self, entity: Entity, mentioned: Collection[str]) -> Aggregate:
        """Draw a function of a column."""
        function = self.rng.choice(list(grammar()["functions"]))
        roles = _SUMMABLE if function == "SUM" else _NUMBERS
        columns = self._askable_columns(entity, *roles, mentioned=mentioned)
        return Aggregate(function, self._pick(columns))

    def _happens(self, chance: float) -> bool:
        return self.rng.random() < chance

    def _pick(self, items: Sequence[ItemT]) -> ItemT:
        if not items:
            raise ImpossibleDraw
        return self.rng.choice(items)

    def _askable_columns(
        self,
        entity: Entity,
        *roles: Role,
        mentioned: Collection[str] = (),
        min_distinct: int = _MIN_DISTINCT,
    ) -> list[ColumnTerm]:
        """Return the columns of these roles that questions can be about."""
        columns = []
        for field in entity.with_roles(*roles):
            if field.distinct < min_distinct or field.phrase in mentioned:
                continue
            has_unknown_category = field.nulls and field.role in _CATEGORIES
            # "the highest minimum salary"
            names_extreme = not word_list("extremes").isdisjoint(field.phrase.split())
            is_extreme = field.role in _NUMBERS and names_extreme
            if not has_unknown_category and not is_extreme:
                columns.append(ColumnTerm(field))
        return columns

    def _askable_parent_columns(
        self, entity: Entity, mentioned: Collection[str], *roles: Role
    ) -> list[ColumnTerm]:
        """Return columns of the tables that links lead to."""
        columns = []
        for link in self.profile.parents(entity):
            parent = self.profile.entities[link.parent]
            for column in self._askable_columns(parent, *roles, min_distinct=_MIN_GROUPS):
                linked = replace(column, link=link)
                if column.field.distinct <= _MAX_GROUPS and linked.phrase not in mentioned:
                    columns.append(linked)
        return columns

    def _draw_group_column(self, entity: Entity, mentioned: Collection[str]) -> ColumnTerm:
        """Draw what to group by: a category of the table, or the name of what a link leads to."""
        categories = self._askable_columns(
            entity, *_CATEGORIES, mentioned=mentioned, min_distinct=_MIN_GROUPS
        )
        columns = [column for column in categories if column.field.distinct <= _MAX_GROUPS]
        for column in self._askable_parent_columns(entity, mentioned, "name"):
            parent = self.profile.entities[column.field.table]
            if column.field.distinct == parent.rows:
                columns.append(column)
        return self._pick(columns)

    def _draw_further_conditions(
        self, entity: Entity, mentioned: Collection[str]
    ) -> tuple[Clause, ...]:
        """Draw a further condition on the entity, its parents or its children; maybe none."""
        parent_columns = self._askable_parent_columns(entity, mentioned, *_CATEGORIES, "name")
        child_clauses = list(self._link_conditions("linked", entity))
        clause: Clause | None
        if self._happens(_FURTHER_ON_ENTITY) or not (parent_columns or child_clauses):
            clause = self._draw_condition_on(entity, mentioned)
        elif child_clauses and (not parent_columns or self._happens(_FURTHER_ON_CHILDREN)):
            clause = self.rng.choice(child_clauses)
        else:
            clause = self._draw_condition("=", entity, self.rng.choice(parent_columns))
        return (clause,) if clause else ()

    def _link_conditions(self, rule: str, entity: Entity) -> Iterator[Clause]:
        """Yield conditions that rows of other tables refer to these."""
        for link in self.profile.children(entity):
            child = self.profile.entities[link.child]
            if rule != "linked where":
                yield Clause(rule, link=link, child=child)
                continue
            for column in self._askable_columns(child, *_CATEGORIES, min_distinct=_MIN_GROUPS):
                inner = self._draw_condition("=", child, column)
                if inner:
                    yield Clause(rule, inner=inner, link=link, child=child)

    def _draw_condition_on(self, entity: Entity, mentioned: Collection[str]) -> Clause | None:
        """Draw a condition on a column of the entity."""
        rules: Mapping[str, str] = grammar()["rules"]
        fields = []
        for field in entity.fields:
            if field.role in rules and field.distinct > 1 and field.phrase not in mentioned:
                fields.append(field)
        if not fields:
            return None
        field = self.rng.choice(fields)
        rule = self.rng.choice(rules[field.role].split())
        return self._draw_condition(rule, entity, ColumnTerm(field))

    def _draw_condition(self, rule: str, entity: Entity, column: ColumnTerm) -> Clause | None:
        """Draw a condition with values of the column; None if it has no fitting ones."""
        if rule == "exceeds":
            inner = self._draw_condition_on(entity, {column.phrase})
            if inner is None or inner.rule == "or":
                return None
            return Clause(rule, column, inner=inner)
        values = self._draw_values(rule, column)
        if values is None:
            return None
        return Clause(rule, column, values)

    def _draw_values(self, rule: str, column: ColumnTerm) -> tuple[Value, ...] | None:
        """Draw the values of a condition; None if the column has no fitting ones."""
        field = column.field
        if rule in {"=", "<>", "or"}:
            return self._draw_named_values(rule, column)
        if rule == "shorter":
            lengths = sorted(len(str(value)) for value in field.values)
            return (lengths[len(lengths) // 3] + 1,)
        if rule == "during":
            year = int(str(self.rng.choice(field.values))[:4])
            return (f"{year}-01-01", f"{year + 1}-01-01", str(year))
        if rule in _THRESHOLD_RULES:
            limit = self._draw_threshold(field)
            return None if limit is None else (limit,)
        return ()

    def _draw_named_values(self, rule: str, column: ColumnTerm) -> tuple[Value, ...] | None:
        """Draw a value, or two for "or", that a sentence can name; None if there are too few."""
        field = column.field
        nameable = [value for value in field.common[:_COMMON_VALUES] if _can_be_said(value)]
        count = 2 if rule == "or" else 1
        # What "is not Oslo" says of rows without a city is not decided by English.
        is_unclear = rule == "<>" and (field.nulls or column.link)
        if is_unclear or len(nameable) < count * 2 - 1:
            return None
        return tuple(self.rng.sample(nameable, count))

    def _draw_shown_columns(self, entity: Entity, mentioned: Collection[str]) -> tuple[Term, ...]:
        """Draw columns to show: those that name a row, or another one beside or instead."""
        names = []
        for field in entity.naming_fields:
            if field.phrase not in mentioned:
                names.append(ColumnTerm(field))
        further = []
        for field in entity.fields:
            if field.phrase not in mentioned and field.role not in _NAME_ROLES:
                further.append(ColumnTerm(field))
        chance = self.rng.random()
        if names and (chance < _ONLY_NAMES or not further):
            return tuple(names)
        column = self._pick(further)
        if chance < _NAMES_AND_MORE:
            return (*names, column)
        return (column,)

    def _draw_threshold(self, field: Field) -> Value:
        """Draw a round number, or a date; None if the column has too few values.

        A sixth of the values or more are on either side.
        """
        margin = max(1, len(field.values) // 6)
        if len(field.values) < 2 * margin + 1:
            return None
        value = self.rng.choice(field.values[margin:-margin])
        if not isinstance(value, int | float) or field.role == "year":
            return value
        rounded = float(f"{value:.2g}")
        return int(rounded) if rounded.is_integer() else rounded


def _phrases(nodes: Iterable[Term | Clause | Top | None]) -> set[str]:
    """Return the phrases of all columns of some nodes."""
    phrases: set[str] = set()
    for node in nodes:
        if node:
            phrases.update(column.phrase for column in node.columns())
    return phrases


def _can_be_said(value: Value) -> bool:
    """Return whether a value can stand in a sentence."""
    if isinstance(value, int | float):
        return True
    if not isinstance(value, str) or not 1 < len(value) <= _MAX_TEXT:
        return False
    return value.isprintable() and value.strip() == value and not _QUOTING & set(value)
