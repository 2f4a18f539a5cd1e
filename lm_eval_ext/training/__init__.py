"""Training recipes: files that say how a model is trained, and what trains it.

A recipe (:mod:`.recipe`) names a source of examples; a benchmark prepares them in its module
``training`` (:mod:`.material`). The model it starts from (:mod:`.starting`) is trained by
transformers' Trainer (:mod:`.fitting`), asked for answers as lm-eval will ask it
(:mod:`.answers`), and written with its record and a model file (:mod:`.command`).
"""
