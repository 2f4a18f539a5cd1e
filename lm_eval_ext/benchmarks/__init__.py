"""The benchmarks, a package each; all have card.yaml, load.py, prompt.py and score.py."""
