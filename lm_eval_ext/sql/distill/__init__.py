"""Populated copies of databases: rows that distinguish a gold query from its near misses.

On the original databases of MAGNIFICo many wrong queries have the gold's result. Its authors
added rows (paper, appendix B.1, after Zhong et al. 2020, "Semantic Evaluation for Text-to-SQL with
Distilled Test Suites") and did not publish them. Here rows are made anew, from the golds' own
conditions.

Reading order: :mod:`.report` and :mod:`.batch` need only the standard library; :mod:`.search` adds
rows, :mod:`.proposals` is what it tries, :mod:`.row_builder` how rows come to satisfy a condition,
:mod:`.shapes` what their values may be. To populate or examine one database, import :mod:`.build`.
"""

from lm_eval_ext.sql.distill.batch import populate_all
from lm_eval_ext.sql.distill.report import POPULATE_VERSION, GoldReport, Report, Tie, finished

__all__ = ["POPULATE_VERSION", "GoldReport", "Report", "Tie", "finished", "populate_all"]
