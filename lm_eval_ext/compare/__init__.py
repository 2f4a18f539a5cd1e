"""Which model is better, and is it real: paired comparisons of logged runs."""
