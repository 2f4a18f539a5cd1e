"""The search for rows that distinguish golds from their near misses, and harm no rewrite.

It proposes rows for one gold after the other and keeps those that help.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.sql.distill.aggregate_targets import add_target, comparisons, restore_targets
from lm_eval_ext.sql.distill.attempt import AggregateTarget, Attempt
from lm_eval_ext.sql.distill.cases import Case, examine, ties
from lm_eval_ext.sql.distill.cuts import tied
from lm_eval_ext.sql.distill.inserting import Added, Inserter, RefusedError
from lm_eval_ext.sql.distill.original_rows import OriginalRows
from lm_eval_ext.sql.distill.proposals import propose
from lm_eval_ext.sql.distill.row_builder import RowBuilder
from lm_eval_ext.sql.distill.scratch_db import NoResultError, ScratchDb
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.distill.values import Pools
from lm_eval_ext.sql.schema import Schema

ROUNDS = (80, 120, 160, 160, 160)
"""Proposals tried per gold and round without success before it waits for the next round; half as
many for each round in which none helped it."""

_FEW = 12
"""Proposals for a gold that may as well be left out: what 12 do not find, more seldom do."""

_RELAXED = (0, 1, 1, 2, 2)
"""What fits a column in each round, see :attr:`.shapes.Shape.relaxed`."""

_MORE = 3
_MOST = 800
"""Rounds in addition, and proposals in all of them: most databases have few golds left by then."""

_MENDING = 8
"""Tries to change rows that help a gold and harm others."""
_TARGETS = 0.7
_FOR_HARMED = 0.5
"""Rows for the harmed gold are added, if it compares with an average mostly those that make it
equal to a value; otherwise values are changed."""

_FOR_CUTS = 3
"""Rounds in which ties at a LIMIT alone are a reason to try: some cannot be broken."""

_WORK_PER_TRY = 12
"""Units of :attr:`Runner.work` that a round has per proposal: fewer proposals are tried where
queries take long, as on tables of many thousand rows."""

# Chances per proposal (attempt.py says what a change entails).
_FOR_NEAR_MISS = 0.3
"""Rows are built for a near miss: what only it selects distinguishes it as well."""
_WHOLE = 0.5
"""Only one complete combination is added for a gold whose result is empty."""


@dataclass
class Search:
    """Adds rows to a database until its golds are distinguished from their near misses.

    ``cases`` must come in an order that does not depend on how golds were given. ``added`` counts
    rows per table, ``proposed`` the proposals.
    """

    scratch_db: ScratchDb
    schema: Schema
    cases: Sequence[Case]
    originals: OriginalRows
    shapes: Shapes
    seed: int = 0

    def __post_init__(self) -> None:
        # Rows that satisfy many conditions also serve golds with fewer.
        self.cases = sorted(self.cases, key=lambda case: (-len(case.misses), case.gold))
        self.added: dict[str, int] = {}
        self._changes: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._harms: Counter[str] = Counter()
        self._helped = 0
        self.proposed = 0
        self._hopeless: Counter[str] = Counter()
        self._pools = Pools(self.scratch_db.connection, self.schema, self.shapes)
        self._targets: dict[str, AggregateTarget] = {}
        self._cache: dict[Any, Any] = {}

    def run(self, progress: Callable[[int], None]) -> None:
        """Runs all rounds; ``progress`` gets the number of golds examined since its last call."""
        for number, tries in enumerate(ROUNDS):
            self.shapes.relax(_RELAXED[number])
            for case in self.cases:
                self._refresh(case)
                if case.open or case.empty or (case.lacking and number < _FOR_CUTS):
                    self._improve(case, tries, number)
                progress(1)
        most = self.proposed + _MOST
        for number in range(len(ROUNDS), len(ROUNDS) + _MORE):
            for case in self.cases:
                self._refresh(case)
                if (case.open or case.empty) and self.proposed < most:
                    self._improve(case, ROUNDS[-1], number)
        for case in self.cases:
            self._refresh(case)

    def add(self, case: Case) -> None:
        """Takes one more gold, which is examined, and adds rows for it."""
        self.cases = [*self.cases, case]
        self._seen[case.gold] = self._changed(case)
        self.look_again(case)

    def look_again(self, case: Case) -> None:
        """Adds rows for a gold if it lacks some, within a few tries."""
        self._refresh(case)
        if case.lacking:
            self._improve(case, _FEW, 1)

    def remove(self, case: Case) -> None:
        """Forgets a gold; rows that were added for it stay."""
        self.cases = [other for other in self.cases if other is not case]

    def _changed(self, case: Case) -> int:
        return sum(self._changes.get(table, 0) for table in case.query.tables)

    def _refresh(self, case: Case) -> None:
        """Examines a case again if a table that it reads has changed."""
        now = self._changed(case)
        if now != self._seen.get(case.gold, 0) or case.query.opaque:
            examine(case, self.scratch_db.runner, self.schema, self.originals)
            self._seen[case.gold] = now

    def _improve(self, case: Case, tries: int, number: int) -> None:
        rng = random.Random(f"{self.seed} {number} {case.gold}")
        helped = self._helped
        tries = max(min(ROUNDS[0], tries), tries >> self._hopeless[case.gold])
        left = tries
        end = self.scratch_db.runner.work + tries * _WORK_PER_TRY
        while left > 0 and case.lacking and self.scratch_db.runner.work < end:
            left -= 1
            self.proposed += 1
            if self._try(case, rng, careful=number > 0):
                left = tries
                end = self.scratch_db.runner.work + tries * _WORK_PER_TRY
        if case.lacking and self._helped == helped:
            self._hopeless[case.gold] += 1

    def _try(self, case: Case, rng: random.Random, *, careful: bool) -> bool:
        with self.scratch_db.transaction() as transaction:
            inserter = Inserter(
                self.scratch_db.connection, self.schema, self._pools.rows, self.shapes
            )
            query = case.query
            if case.open and rng.random() < _FOR_NEAR_MISS:
                query = case.read_miss(rng.choice(sorted(case.open)), self.schema)
            runner = self.scratch_db.runner
            attempt = Attempt(
                self.schema,
                self._pools,
                self.shapes,
                runner,
                inserter,
                rng,
                self._cache,
                self._targets,
            )
            builder = RowBuilder(query, attempt)
            try:
                propose(builder, whole=case.empty and rng.random() < _WHOLE)
                fits = all(inserter.holds(added) for added in inserter.added)
            except RefusedError:
                return False
            if not fits or not self._better(case):
                return False
            self._helped += 1
            rows = self._needed(case, inserter)
            if careful:
                rows += self._repair(builder, rows)
            if not self._mended(case, builder, rows, careful=careful):
                return False
            transaction.keep()
            self._targets.update((target.sql, target) for target in attempt.new_targets)
        for added in rows:
            name = added.table.name
            self.added[name] = self.added.get(name, 0) + 1
            self._changes[name.lower()] = self._changes.get(name.lower(), 0) + 1
        self._pools.reread(frozenset(added.table.name.lower() for added in rows))
        self._cache = {}
        self._refresh(case)
        return True

    def _repair(self, builder: RowBuilder, rows: list[Added]) -> list[Added]:
        """Adds rows that keep other golds' aggregate targets; returns them."""
        inserter = builder.inserter
        start, targets = len(inserter.added), list(builder.attempt.new_targets)
        self.scratch_db.connection.execute("SAVEPOINT repair")
        try:
            restore_targets(builder, {added.table.name.lower() for added in rows})
            fine = all(inserter.holds(added) for added in inserter.added[start:])
        except RefusedError:
            fine = False
        if not fine:
            self.scratch_db.connection.execute("ROLLBACK TO repair")
            builder.attempt.new_targets[:] = targets
        self.scratch_db.connection.execute("RELEASE repair")
        return inserter.added[start:] if fine else []

    def _better(self, case: Case) -> bool:
        """Whether the gold lacks less than before, near misses distinguished before included."""
        return self._lacking(case, case.lacking) < case.lacking

    def _lacking(self, case: Case, limit: int) -> int:
        """Returns what the gold lacks now, at most ``limit``."""
        runner = self.scratch_db.runner
        try:
            rows = runner.rows(case.gold)
        except NoResultError:
            return limit
        missing = int(not rows and case.always_empty is None)
        if not rows and case.rows:
            return limit
        first = sorted(case.open)
        same, slow = ties(case, rows, first, runner)
        count = missing + len(same) + len(slow)
        if count >= limit:
            return limit
        count += len(tied([case.cuts[number] for number in sorted(case.cut_ties)], runner))
        if count >= limit:
            return limit
        rest = [
            number
            for number in range(len(case.misses))
            if number not in case.open and case.proven.get(number) is None
        ]
        same, _ = ties(case, rows, rest, runner)
        return min(count + len(same), limit)

    def _needed(self, case: Case, inserter: Inserter) -> list[Added]:
        """Removes rows that do not help the gold; returns the others."""
        reached = self._lacking(case, case.lacking)
        needed = list(inserter.added)
        for added in reversed(inserter.added):
            rest = [other for other in needed if other is not added]
            if not rest:
                break
            self.scratch_db.connection.execute("SAVEPOINT needed")
            inserter.remove(added)
            fine = all(inserter.holds(other) for other in rest)
            if fine and self._lacking(case, reached + 1) <= reached:
                needed = rest
            else:
                self.scratch_db.connection.execute("ROLLBACK TO needed")
            self.scratch_db.connection.execute("RELEASE needed")
        return needed

    def _mended(self, case: Case, builder: RowBuilder, rows: list[Added], *, careful: bool) -> bool:
        """Whether rows harm no other gold more than they help, possibly after changes to them.

        Values on which nothing depends are changed, or rows for the harmed gold are added.
        """
        connection, inserter, rng = self.scratch_db.connection, builder.inserter, builder.rng
        harmed = self._harmed(case, rows, careful=careful)
        for _ in range(_MENDING):
            if harmed is None:
                return True
            connection.execute("SAVEPOINT mend")
            start, more = len(inserter.added), list[Added]()
            try:
                if rng.random() < _FOR_HARMED:
                    other = builder.on(harmed.query)
                    if harmed.query.cached("comparisons", comparisons) and rng.random() < _TARGETS:
                        add_target(other)
                    else:
                        propose(other)
                    more = inserter.added[start:]
                    changed = all(inserter.holds(added) for added in more)
                else:
                    changed = self._redrawn(inserter, rng.choice(rows), rng)
            except RefusedError:
                changed = False
            still = self._harmed(case, [*rows, *more], careful=careful) if changed else harmed
            if still is None and self._better(case):
                rows += more
                harmed = None
            else:
                connection.execute("ROLLBACK TO mend")
                del inserter.added[start:]
            connection.execute("RELEASE mend")
        return harmed is None

    def _redrawn(self, inserter: Inserter, added: Added, rng: random.Random) -> bool:
        """Gives some cells of a row other values; whether there were any."""
        values = inserter.read(added) or {}
        table = added.table
        keys = {name.lower() for key in table.unique_keys for name in key}
        keys |= {name.lower() for reference in table.foreign_keys for name in reference.columns}
        free = [c for c in table.columns if c.name.lower() not in keys and not c.generated]
        if not free:
            return False
        for column in rng.sample(free, rng.randint(1, min(len(free), 3))):
            shape = self.shapes[table.name.lower(), column.name.lower()]
            inserter.update(added, column.name, shape.other(values[column.name.lower()], rng))
        return True

    def _harmed(self, case: Case, rows: list[Added], *, careful: bool) -> Case | None:
        """Returns a gold that rows harm; None if they harm none, or less than they help.

        A tie at a LIMIT that a gold or a rewrite of it did not have is never accepted.
        """
        touched = {added.table.name.lower() for added in rows}
        others = [other for other in self.cases if touched & other.query.tables]
        # Those that rows have harmed most often tell soonest.
        others.sort(key=lambda other: -self._harms[other.gold])
        gain = case.lacking - self._lacking(case, case.lacking) if careful else 1
        for other in others:
            if careful and other is not case:
                gain -= self._lacking(other, other.lacking + gain) - other.lacking
            if gain <= 0 or self._ties_anew(other) or (not careful and self._emptied(other)):
                self._harms[other.gold] += 1
                return other
        return None

    def _emptied(self, case: Case) -> bool:
        return bool(case.rows) and not self.scratch_db.runner.has_rows(case.gold)

    def _ties_anew(self, case: Case) -> bool:
        """Whether rows tie where a LIMIT of a gold, or of a rewrite of it, cuts."""
        runner = self.scratch_db.runner
        new = [cut for number, cut in enumerate(case.cuts) if number not in case.cut_ties]
        return bool(tied(new, runner)) or any(runner.has_rows(n.broken) for n in case.no_ties)
