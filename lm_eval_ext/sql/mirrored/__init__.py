"""Populated copies of DuckDB and PostgreSQL databases.

Rows are searched for in SQLite (:mod:`lm_eval_ext.sql.distill`), on a mirror of the database
(:mod:`.reading`); they are then added to a copy that the engine itself made (:mod:`.copies`), and
the engine says what the copy tells apart (:mod:`.judging`). :mod:`.types` says what SQLite can
hold, :mod:`.dialect` writes queries for it and back.
"""
