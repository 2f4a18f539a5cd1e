"""What ``import lm_eval_ext`` offers to Python; see docs/python.md.

Data frames are pandas'. Everything heavy is imported by the functions.
"""

from lm_eval_ext.api.frames import Results, load_results, plot
from lm_eval_ext.api.scoring import load_documents, score, score_sql

__all__ = ["Results", "load_documents", "load_results", "plot", "score", "score_sql"]
