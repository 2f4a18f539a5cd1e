"""lieder_fresh: items drawn from a seed in the design of LIEDER's three experiments.

``lexicon`` holds nouns by class with the frames and predicates that fit them, ``draw`` draws items
and writes their sentences, and ``load`` makes the documents. Scores and metrics are LIEDER's.
"""
