"""Names that results files and their readers share; imports nothing, so any module may use it."""

STDERR = "_stderr"
"""Ending of the metric that is another one's standard error."""

LOW, HIGH = "_ci95_low", "_ci95_high"
"""Endings of metrics that bound another one: a 95 % interval that does not follow from the
standard error."""

NONE = "N/A"
"""What lm-eval writes for an undefined value."""

NOT_SCORABLE = "not_scorable"
"""Under a task's ``metadata``: ids of the examples that count nowhere, by cause."""
