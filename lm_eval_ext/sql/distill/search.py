"""Looking for rows: bundles are tried one after the other, and kept if they help."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.sql.distill.aggregate_targets import Held, repair
from lm_eval_ext.sql.distill.cases import Case, examine, ties
from lm_eval_ext.sql.distill.inserting import Added, Inserter, RefusedError
from lm_eval_ext.sql.distill.original_rows import Kept
from lm_eval_ext.sql.distill.pools import Pools
from lm_eval_ext.sql.distill.proposals import add_bundle
from lm_eval_ext.sql.distill.row_builder import Witness
from lm_eval_ext.sql.distill.runner import NoResultError
from lm_eval_ext.sql.distill.scratch_db import Workbench
from lm_eval_ext.sql.schema import Schema

ROUNDS = (120, 250, 400, 700, 2500)
"""Bundles tried per gold and round without success before it waits for the next round."""

_WORK_PER_TRY = 25
"""Units of :attr:`Runner.work` that a round has per bundle: fewer are tried where queries take
long, as on tables of many thousand rows."""


@dataclass
class Search:
    """Adds rows to a workbench until its golds are told from their near misses.

    Attributes:
        bench: The database.
        schema: Its schema.
        cases: The golds, in an order that does not depend on how they were given.
        kept: What is certain because the original's rows stay.
        added: Rows added per table.
    """

    bench: Workbench
    schema: Schema
    cases: Sequence[Case]
    kept: Kept

    def __post_init__(self) -> None:
        self.added: dict[str, int] = {}
        self._changes: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._pools = Pools(self.bench.connection, self.schema)
        self._held: dict[str, Held] = {}
        self._cache: dict[Any, Any] = {"held": self._held}

    def run(self, progress: Callable[[int], None]) -> None:
        """Runs all rounds; ``progress`` is told how many golds were looked at."""
        for number, tries in enumerate(ROUNDS):
            for case in self.cases:
                self._refresh(case)
                if case.lacking:
                    self._improve(case, tries, number)
                progress(1)
        for case in self.cases:
            self._refresh(case)

    def _refresh(self, case: Case) -> None:
        """Examines a case again if a table that it reads has changed."""
        now = sum(self._changes.get(table, 0) for table in case.query.tables)
        if now != self._seen.get(case.gold, 0) or case.query.opaque:
            examine(case, self.bench.runner, self.schema, self.kept)
            self._seen[case.gold] = now

    def _improve(self, case: Case, tries: int, number: int) -> None:
        rng = random.Random(f"{number} {case.gold}")
        left = tries
        end = self.bench.runner.work + tries * _WORK_PER_TRY
        while left > 0 and case.lacking and self.bench.runner.work < end:
            left -= 1
            if self._try(case, rng, careful=number > 0):
                left = tries
                end = self.bench.runner.work + tries * _WORK_PER_TRY

    def _try(self, case: Case, rng: random.Random, *, careful: bool) -> bool:
        with self.bench.attempt() as attempt:
            inserter = Inserter(self.bench.connection, self.schema, self._pools.rows)
            query = case.query
            # What only the near miss selects tells the two apart just as well.
            if case.open and rng.random() < 0.3:  # noqa: PLR2004
                query = case.read_miss(rng.choice(sorted(case.open)), self.schema)
            witness = Witness(
                query, self.schema, self._pools, self.bench.runner, inserter, rng, self._cache
            )
            try:
                add_bundle(witness, whole=case.empty and rng.random() < 0.5)  # noqa: PLR2004
                fits = all(inserter.holds(added) for added in inserter.added)
            except RefusedError:
                return False
            if not fits or not self._better(case):
                return False
            rows = self._needed(case, inserter)
            if careful:
                rows += self._repair(witness, rows)
                if not self._worth_it(case, rows):
                    return False
            attempt.keep()
            self._held.update((held.sql, held) for held in witness.balanced)
        for added in rows:
            name = added.table.name
            self.added[name] = self.added.get(name, 0) + 1
            self._changes[name.lower()] = self._changes.get(name.lower(), 0) + 1
        self._pools.forget(frozenset(added.table.name.lower() for added in rows))
        self._cache = {"held": self._held}
        self._refresh(case)
        return True

    def _repair(self, witness: Witness, rows: list[Added]) -> list[Added]:
        """Sees to it that averages stay where other golds need them; returns the rows for it."""
        inserter = witness.inserter
        start, balanced = len(inserter.added), list(witness.balanced)
        self.bench.connection.execute("SAVEPOINT repair")
        try:
            repair(witness, {added.table.name.lower() for added in rows})
            fine = all(inserter.holds(added) for added in inserter.added[start:])
        except RefusedError:
            fine = False
        if not fine:
            self.bench.connection.execute("ROLLBACK TO repair")
            witness.balanced[:] = balanced
        self.bench.connection.execute("RELEASE repair")
        return inserter.added[start:] if fine else []

    def _better(self, case: Case) -> bool:
        """Whether the gold lacks less than it did, near misses told apart before included."""
        return self._lacking(case, case.lacking) < case.lacking

    def _lacking(self, case: Case, limit: int) -> int:
        """Returns what the gold would lack now, or ``limit`` as soon as it is that much."""
        runner = self.bench.runner
        try:
            rows = runner.rows(case.gold)
        except NoResultError:
            return limit
        missing = int(not rows and case.barren is None)
        if not rows and case.rows:
            return limit
        first = sorted(case.open)
        same, slow = ties(case, rows, first, runner)
        count = missing + len(same) + len(slow)
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
        """Takes away rows without which the gold is as well off; returns those that stay."""
        reached = self._lacking(case, case.lacking)
        kept = list(inserter.added)
        for added in reversed(inserter.added):
            row = [other for other in kept if other is not added]
            if not row:
                break
            self.bench.connection.execute("SAVEPOINT needed")
            inserter.remove(added)
            fine = all(inserter.holds(other) for other in row)
            if fine and self._lacking(case, reached + 1) <= reached:
                kept = row
            else:
                self.bench.connection.execute("ROLLBACK TO needed")
            self.bench.connection.execute("RELEASE needed")
        return kept

    def _worth_it(self, case: Case, rows: list[Added]) -> bool:
        """Whether all golds together lack less; ``case`` alone is known to."""
        touched = {added.table.name.lower() for added in rows}
        gain = case.lacking - self._lacking(case, case.lacking)
        for other in self.cases:
            if other is not case and touched & other.query.tables:
                gain -= self._lacking(other, other.lacking + gain) - other.lacking
                if gain <= 0:
                    return False
        return True
