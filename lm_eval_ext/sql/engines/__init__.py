"""The engines that queries run on: SQLite, DuckDB and PostgreSQL.

One interface, :class:`~.base.Engine`, lives in worker processes and has three implementations:
:mod:`.sqlite`, :mod:`.duckdb` and :mod:`.postgresql`. What callers need to know of an engine
without running it is a :class:`~.dialects.Dialect`; where databases lie, :mod:`.places`; what
prompts show of them, :mod:`lm_eval_ext.sql.described`. A new engine is a class, an entry in
:data:`~.dialects.DIALECTS`, a way to be named in :mod:`.places`, and how it lists its tables.
"""
