"""Populated copies of databases: rows that tell a gold query from its near misses.

On the original databases of MAGNIFICo many wrong queries give the gold's result (fact sheet,
"Edge cases"). Its authors added rows (paper, appendix B.1, after Zhong et al. 2020, "Semantic
Evaluation for Text-to-SQL with Distilled Test Suites") that were not published. Here they are
made anew, from the golds' own conditions.
"""

from lm_eval_ext.sql.distill.batch import finished, populate_all
from lm_eval_ext.sql.distill.build import check, populate
from lm_eval_ext.sql.distill.report import GoldReport, Report, Tie
from lm_eval_ext.sql.distill.version import POPULATE_VERSION

__all__ = [
    "POPULATE_VERSION",
    "GoldReport",
    "Report",
    "Tie",
    "check",
    "finished",
    "populate",
    "populate_all",
]
