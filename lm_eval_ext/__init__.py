"""Five benchmarks of learning new words, concepts and combinations, for lm-evaluation-harness.

Importing the package costs nothing: no torch, no transformers, no datasets. Users rarely
import it at all, since its tasks appear in plain ``lm_eval`` (see docs/discovery.md).
"""

__version__ = "0.1.0"
