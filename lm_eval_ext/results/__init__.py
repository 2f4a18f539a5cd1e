"""Reading what lm-eval wrote: scores and signatures, and the samples behind them.

Showing results and tasks as tables.
"""
