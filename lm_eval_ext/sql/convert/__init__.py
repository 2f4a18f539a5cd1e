"""SQLite databases with their queries on other engines.

:mod:`.columns` decides about types, :mod:`.drafts` reads a database by them, :mod:`.store` writes
it to files or a server. :mod:`.naming`, :mod:`.grouping` and :mod:`.translate` rewrite queries,
:mod:`.golds` keeps those that give SQLite's result. Nothing is believed, and nothing is left out
in silence.
"""
