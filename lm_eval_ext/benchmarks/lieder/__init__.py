"""LIEDER: does a model know when a discourse entity can be referred to? (Zhu & Frank, ACL 2024).

``load`` reads the data into ``records``, ``prompt`` turns them into requests, ``score`` turns
log-probabilities into metrics, ``view`` shows single samples, ``mini`` is embedded data of our
own, and ``card.yaml`` describes the benchmark to reports.
"""
