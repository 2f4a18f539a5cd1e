"""A MAGNIFICo task of any database: ``lm-eval-ext magnifico generate``.

Reading order: :mod:`.profile` says what a database holds, in words; :mod:`.tree` is what a question
is derived from; :mod:`.to_sql` and :mod:`.to_words` are its two renderings; :mod:`.meanings` are
the interpretations, :mod:`.draw` puts them into trees, :mod:`.check` keeps what is right, and
:mod:`.folder` writes what the tasks ``magnifico_own_...`` read.
"""

GRAMMAR_VERSION = 2
"""Rises whenever a seed would give other examples; part of what is written about them."""
