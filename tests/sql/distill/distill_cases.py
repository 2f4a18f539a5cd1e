"""A small database of our own, and golds of many kinds on it."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

SHOP = """
CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, people INTEGER);
INSERT INTO town VALUES (1, 'Ahlen', 900), (2, 'Belm', 700), (3, 'Calw', 400);
CREATE TABLE shop (
  id INTEGER PRIMARY KEY, town INTEGER NOT NULL REFERENCES town(id), kind TEXT NOT NULL,
  rent REAL CHECK (rent >= 0), opened TEXT, UNIQUE (town, kind, opened));
INSERT INTO shop VALUES (1, 1, 'tea', 10.5, '1999-01-02'), (2, 1, 'ink', 20.0, '2001-03-04'),
  (3, 2, 'tea', 12.25, '2004-05-06');
CREATE TABLE sale (shop INTEGER, day TEXT, amount INTEGER, FOREIGN KEY (shop) REFERENCES shop);
INSERT INTO sale VALUES (1, 'mon', 5), (1, 'tue', 7), (2, 'mon', 9), (3, 'mon', 3);
"""

GOLDS = (
    "SELECT name FROM town WHERE people > 500",
    "SELECT name FROM town WHERE people < (SELECT avg(people) FROM town)",
    "SELECT name FROM town ORDER BY people DESC LIMIT 1",
    "SELECT kind FROM shop WHERE rent > 30 AND kind LIKE '%in%'",
    'SELECT rent FROM shop WHERE kind = "Rare Books"',
    "SELECT t.name, s.kind FROM town AS t JOIN shop AS s ON t.id = s.town WHERE s.rent > 15",
    "SELECT kind, count(*) FROM shop GROUP BY kind HAVING count(*) > 2",
    "SELECT DISTINCT kind FROM shop",
    "SELECT name FROM town WHERE id NOT IN (SELECT town FROM shop WHERE kind = 'tea')",
    "SELECT id FROM town EXCEPT SELECT town FROM shop WHERE rent < 12",
    "SELECT max(amount) FROM sale WHERE day = 'sun'",
    "SELECT kind FROM shop WHERE opened BETWEEN '2000-01-01' AND '2002-12-31'",
    "SELECT kind FROM shop WHERE rent > (SELECT max(rent) FROM shop WHERE kind = 'tea')",
    "SELECT day FROM sale WHERE amount > (SELECT avg(amount) - stdev(amount) FROM sale)",
    "SELECT day FROM sale GROUP BY day ORDER BY count(*) DESC LIMIT 1",
    "SELECT count(DISTINCT day) FROM sale",
    "SELECT kind FROM shop WHERE length(kind) < 8",
    "SELECT name FROM town WHERE name IN ('Ahlen', 'Zell')",
)
"""Satisfiable, and told from all their near misses by some database."""


def write(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables, and the schema: what a copy's identity is."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        names = [
            name.decode()
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        found = {
            name: connection.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall()
            for name in names
        }
        found["the schema"] = sorted(
            connection.execute("SELECT type, name, sql FROM sqlite_master")
        )
        return {name: sorted(rows, key=repr) for name, rows in found.items()}


def violations(path: Path) -> set[tuple[object, ...]]:
    """Broken references; a table whose references SQLite cannot check counts as one."""
    found: set[tuple[object, ...]] = set()
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for table in tables:
            quoted = '"' + table.replace('"', '""') + '"'
            try:
                found.update(connection.execute(f"PRAGMA foreign_key_check({quoted})"))
            except sqlite3.OperationalError as error:
                found.add((table, str(error)))
    return found


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
