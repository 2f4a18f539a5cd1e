"""Names that results files and their readers share; imports nothing, so any module may use it."""

STDERR = "_stderr"
"""Ending of the metric that is another one's standard error."""

LOW, HIGH = "_ci95_low", "_ci95_high"
"""Endings of metrics that bound another one by a method of its own, such as a paper's bootstrap."""

INTERVALS = "intervals"
"""Under a task's ``metadata``: by ``metric,filter`` the number of documents and clusters, and the
95 % interval with its method where there is one."""

RANGE = "range"
"""In an entry of a ``metric_list``: the least and the largest legal value (null: no limit)."""

NONE = "N/A"
"""What lm-eval writes for an undefined value."""

NOT_SCORABLE = "not_scorable"
"""Under a task's ``metadata``: ids of the examples that count nowhere, by cause."""
