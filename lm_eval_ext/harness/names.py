"""Names that results files and their readers share; imports nothing, so any module may use it."""

STDERR = "_stderr"
"""The ending of the metric that is another one's standard error."""

LOW, HIGH = "_ci95_low", "_ci95_high"
"""Endings of metrics of older results files, which bound another one by a method of its own."""

ROWS = "rows"
"""The key of a logged sample with what was scored of it: facets and values
(docs/statistics.md#results)."""

VERDICT = "verdict"
"""The key of a logged sample with the judge's verdict, where answers are executed: the fields of
:class:`lm_eval_ext.sql.Verdict` (``status``, ``reason``, ``rule``, ``database``, ...). Samples of
earlier versions lack it."""

READING = "reading"
"""In a logged sample: for each response, the steps by which its answer was read, or that all of it
is the answer by the rule of a paper."""

BENCHMARK = "benchmark"
"""The key of a task's ``metadata`` with the card that its metrics are from, also for users' own
tasks."""

CARD = "card"
"""The key of a task file with its card; and of a task's ``metadata`` with the card, if its
benchmark does not ship."""

UNIT = "unit"
"""The key of a ``metric_list`` entry with the unit of the values, such as ``share`` or
``percent``."""

INTERVALS = "intervals"
"""The key of a task's ``metadata`` with, for each ``metric,filter``, the number of documents and
clusters, and the 95 % interval with its method where there is one; ``level`` is that of the card's
clusters, if it isn't the first."""

RANGE = "range"
"""The key of a ``metric_list`` entry with the lowest and the highest legal value (null: none)."""

NONE = "N/A"
"""What lm-eval writes for an undefined value."""

TOO_FEW = "too_few_demonstrations"
"""A cause under ``not_scorable``."""

NOT_SCORABLE = "not_scorable"
"""The key of a task's ``metadata`` with the ids of the examples that count nowhere, by cause."""
