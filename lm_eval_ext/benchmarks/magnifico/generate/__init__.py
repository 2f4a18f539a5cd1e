"""A MAGNIFICo task of any SQLite database: ``lm-eval-ext magnifico generate``.

Reading order: :mod:`.profile` says what a database holds, in words; :mod:`.tree` is what a question
is derived from, with its SQL and its words; :mod:`.draw` draws meanings and trees, :mod:`.make`
keeps what is right, and :mod:`.folder` writes what the tasks ``magnifico_own_...`` read.
``words.yaml`` has all that is said.
"""

GRAMMAR_VERSION = 6
"""Rises whenever a seed would give other examples; part of what is written about them."""
