"""The benchmarks, a package each; all have load.py and score.py, and a card (docs/adding.md)."""
