"""Names that results files and their readers share; nothing heavy, so that any room may ask."""

STDERR = "_stderr"
"""Ending of the metric that is another one's standard error."""

LOW, HIGH = "_ci95_low", "_ci95_high"
"""Endings of metrics that bound another one: a 95 % interval, where it is no multiple of the
standard error."""

NONE = "N/A"
"""lm-eval's own word for a figure that does not exist."""

NOT_SCORABLE = "not_scorable"
"""Under a task's ``metadata``: ids of the examples that count nowhere, by cause."""
