"""Experiments: recipes x settings x seeds x tasks as one table (docs/experiments.md)."""
