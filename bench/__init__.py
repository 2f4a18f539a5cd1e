"""Measures what this project claims to be fast, beside what it is compared with.

Each part is a module with a function ``rows(rounds, share)``, which yields a :class:`.rows.Row` per
size of each piece of work. ``rounds`` is how often each is measured, ``share`` the fraction of
the sizes: 1 for all of them. It raises ``UnavailableError`` where data are missing, and
``DifferError`` where the two ways gave different results.
"""
