"""Which functions of a PostgreSQL database a model's query may not call.

A function is not trusted if it is volatile (it may sleep, lock, signal, write or change settings),
runs with its owner's rights, or is written in an untrusted language. Queries are searched for the
names of such functions. What reaches a function without its name, an operator or a cast of the
database's owner, cannot be found in a text: a database that has any is refused as a whole until the
role may not execute the function any more.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_TRUSTED: Final = frozenset(
    {
        "bernoulli",  # a method of TABLESAMPLE
        "clock_timestamp",
        "gen_random_uuid",
        "random",
        "random_normal",
        "system",  # a method of TABLESAMPLE
        "timeofday",
        "uuidv4",
        "uuidv7",
    }
)
"""PostgreSQL's own volatile functions that change nothing."""

_FIRST_USER_OID: Final = 16384
"""PostgreSQL's own objects have lower numbers."""

_MAX_NAME_BYTES: Final = 63
"""The server cuts longer names off."""

_UNTRUSTED: Final = """
SELECT p.oid, has_function_privilege(p.oid, 'EXECUTE') AS executable
FROM pg_proc p
JOIN pg_language l ON l.oid = p.prolang
WHERE p.provolatile = 'v'
  OR p.prosecdef
  OR NOT (l.lanpltrusted OR l.lanname IN ('internal', 'c'))
"""

FUNCTIONS: Final = f"""
WITH untrusted AS ({_UNTRUSTED})
SELECT
  CASE
    WHEN p.pronamespace = 'pg_catalog'::regnamespace THEN 'builtin'
    WHEN p.pronargs > 0 AND EXISTS (
      SELECT FROM pg_type t WHERE t.oid = p.proargtypes[0] AND t.typtype IN ('c', 'p')
    ) THEN 'field'
    ELSE 'call'
  END,
  p.proname
FROM pg_proc p
JOIN untrusted u ON u.oid = p.oid
WHERE u.executable OR p.pronamespace = 'pg_catalog'::regnamespace
UNION
SELECT 'call', p.proname
FROM pg_aggregate a
JOIN pg_proc p ON p.oid = a.aggfnoid
WHERE p.oid >= {_FIRST_USER_OID}
  AND EXISTS (
    SELECT FROM untrusted u
    WHERE u.oid IN (
      a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn,
      a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn
    )
  )
"""
"""How functions that are not trusted are called, and their names. ``field``: the first argument is
a row, so that ``(row).name`` calls the function, too. An aggregate counts as its parts do, which
run with the rights of the aggregate's owner."""

INDIRECT_CALL: Final = f"""
WITH untrusted AS ({_UNTRUSTED})
SELECT format('the operator %s', o.oid::regoperator), u.oid::regprocedure::text
FROM pg_operator o
JOIN untrusted u ON u.oid = o.oprcode
WHERE o.oid >= {_FIRST_USER_OID} AND u.executable
UNION ALL
SELECT format('the cast of %s to %s', c.castsource::regtype, c.casttarget::regtype),
  u.oid::regprocedure::text
FROM pg_cast c
JOIN untrusted u ON u.oid = c.castfunc
WHERE c.oid >= {_FIRST_USER_OID} AND u.executable
ORDER BY 1
LIMIT 1
"""
"""An operator or a cast of the owner that calls a function that is not trusted, and the function;
usually nothing."""

ROLE_PROBLEM: Final = """
WITH role AS (SELECT * FROM pg_roles WHERE rolname IN (session_user, current_user))
SELECT coalesce(
  (SELECT 'is a superuser' FROM role WHERE rolsuper LIMIT 1),
  (SELECT 'may create roles, databases or replicas'
   FROM role
   WHERE rolcreaterole OR rolcreatedb OR rolreplication
   LIMIT 1),
  (SELECT 'is a member of ' || strong.rolname
   FROM pg_roles strong, role
   WHERE (strong.rolsuper OR strong.rolname ~ '^pg_')
     AND pg_has_role(role.oid, strong.oid, 'MEMBER')
   ORDER BY strong.rolname
   LIMIT 1),
  (SELECT 'may create schemas in the database'
   FROM role
   WHERE has_database_privilege(role.oid, current_database(), 'CREATE')
   LIMIT 1),
  (SELECT format('may change %s.%s', n.nspname, c.relname)
   FROM role, pg_class c
   JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
     AND n.nspname !~ '^pg_'
     AND n.nspname <> 'information_schema'
     AND (
       has_table_privilege(role.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
       OR has_any_column_privilege(role.oid, c.oid, 'INSERT, UPDATE')
     )
   ORDER BY 1
   LIMIT 1),
  (SELECT format('may create tables in the schema %s', n.nspname)
   FROM role, pg_namespace n
   WHERE n.nspname !~ '^pg_'
     AND has_schema_privilege(role.oid, n.oid, 'CREATE')
     AND NOT EXISTS (
       SELECT FROM aclexplode(n.nspacl) entry
       WHERE entry.grantee = 0 AND entry.privilege_type = 'CREATE'
     )
   ORDER BY 1
   LIMIT 1)
)
"""
"""What is wrong with the role, or NULL. Until version 14 everybody may create in ``public``; that
is let pass, since the transaction is read-only."""

_GAP: Final = r"(?:\s|--[^\n]*|/\*.*?\*/|\*/)*"
"""White space and comments."""

_CALL_FOLLOWS: Final = r"\s*(?:\(|--|/\*)"


@dataclass(frozen=True)
class RefusedFunctions:
    """The functions that no query may call.

    Attributes:
        builtin: PostgreSQL's own, in lower case.
        user_calls: A pattern for calls of those that users of the database wrote.
    """

    builtin: frozenset[str]
    user_calls: re.Pattern[str]

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str]]) -> "RefusedFunctions":
        """Return what the result of :data:`FUNCTIONS` says."""
        names: dict[str, list[str]] = {"builtin": [], "field": [], "call": []}
        for call_form, name in rows:
            names[call_form].append(name)
        calls = _any_name([*names["field"], *names["call"]])
        fields = _any_name(names["field"])
        return cls(
            builtin=frozenset(name.lower() for name in names["builtin"]) - _TRUSTED,
            user_calls=re.compile(
                rf'{calls}{_CALL_FOLLOWS}|\.{_GAP}"?{fields}', re.IGNORECASE | re.DOTALL
            ),
        )

    def check(self, sql: str) -> None:
        r"""Raise ValueError if a query calls one of them.

        Texts and comments are searched as well: they cannot be told apart from the rest by anything
        simpler than PostgreSQL itself, and no honest one holds such a name. What spells a name
        otherwise (``U&"\0070g_sleep"``) is refused whole.
        """
        name = self._first_call(sql)
        if name:
            raise ValueError(
                f"the function {name} is not allowed: it is volatile, runs with its owner's rights "
                "or is in an untrusted language"
            )
        if re.search(r'\bU&"', sql, re.IGNORECASE):
            raise ValueError('names written as U&"..." are not allowed')

    def _first_call(self, sql: str) -> str:
        words = {word.lower() for word in re.findall(r"[^\W\d]\w*", sql)}
        builtin: list[str] = sorted(words & self.builtin)
        if builtin:
            return builtin[0]
        call = self.user_calls.search(sql)
        return str(call.group()).strip('.\t\r\n "(-/*') if call else ""


def _any_name(names: Iterable[str]) -> str:
    """Return a pattern for any of these names, with or without quotes; without names, for nothing.

    A name of 63 bytes also stands for all longer ones that begin with it.
    """
    spellings = []
    for name in names:
        if len(name.encode()) >= _MAX_NAME_BYTES:
            end = r"(?:[\w$]*|(?:[^\"]|\"\")*\")"
        else:
            end = r"(?![\w$])\"?"
        spellings.append(re.escape(name.replace('"', '""')) + end)
    return rf"(?<!\w)(?:{'|'.join(spellings)})" if spellings else r"(?!)"
