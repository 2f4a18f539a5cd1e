"""LIEDER: does a model know when a discourse entity can be referred to? (Zhu & Frank, ACL 2024).

``tasks/lieder.yaml`` says what is asked and what the scores are. ``load`` has options and
documents, ``score`` turns log-probabilities into rows, ``items`` are our own, ``view`` shows single
samples, and ``effects`` has the paper's tests.
"""
