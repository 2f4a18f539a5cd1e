"""Names that results files and their readers share; imports nothing, so any module may use it."""

STDERR = "_stderr"
"""Ending of the metric that is another one's standard error."""

LOW, HIGH = "_ci95_low", "_ci95_high"
"""Endings of metrics of older results files, which bound another one by a method of its own."""

ROWS = "rows"
"""In a logged sample: what was scored of it, facets and values (docs/statistics.md#results)."""

BENCHMARK = "benchmark"
"""Under a task's ``metadata``: the card that its metrics are from, of users' own tasks, too."""

CARD = "card"
"""In a task file its card; under a task's ``metadata`` the card, if its benchmark does not ship."""

UNIT = "unit"
"""In an entry of a ``metric_list``: what the values are, such as ``share`` or ``percent``."""

INTERVALS = "intervals"
"""Under a task's ``metadata``: by ``metric,filter`` the number of documents and clusters, and the
95 % interval with its method where there is one; ``level`` is that of the card's clusters, if it
isn't the first."""

RANGE = "range"
"""In an entry of a ``metric_list``: the least and the largest legal value (null: no limit)."""

NONE = "N/A"
"""What lm-eval writes for an undefined value."""

TOO_FEW = "too_few_demonstrations"
"""A cause under ``not_scorable``."""

NOT_SCORABLE = "not_scorable"
"""Under a task's ``metadata``: ids of the examples that count nowhere, by cause."""
