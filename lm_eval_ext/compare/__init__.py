"""Paired comparisons of logged runs, with intervals and significance tests."""
