"""Test suites: databases on which a gold query differs from wrong ones (Zhong et al. 2020).

A suite belongs to one database and its golds. It has the populated copy, where rows ship with the
package, and small databases that are drawn from seeds. Each gold has a list of the databases that
may judge it; an answer is right if it is right on the original and on all of these.

:mod:`.columns` says what a column may hold, :mod:`.reading` what golds ask of rows, with keys and
references. :mod:`.drawing` draws rows, :mod:`.original` makes databases of them, :mod:`.checks`
decides whether a database may judge a gold, :mod:`.build` chooses databases, :mod:`.files` reads
and writes suites, and :mod:`.store` makes them.
"""

from lm_eval_ext.sql.suite.build import SUITE_VERSION, Original
from lm_eval_ext.sql.suite.files import (
    COPY,
    Shipped,
    Suite,
    content_hash,
    gold_id,
    read_shipped,
    read_suite,
)
from lm_eval_ext.sql.suite.store import SuiteRunners, populate, populate_all

read = read_suite
"""The former name of :func:`read_suite`, which users' programs may import."""

__all__ = [
    "COPY",
    "SUITE_VERSION",
    "Original",
    "Shipped",
    "Suite",
    "SuiteRunners",
    "content_hash",
    "gold_id",
    "populate",
    "populate_all",
    "read",
    "read_shipped",
    "read_suite",
]
