"""Training recipes: files that say how a model is trained, and what trains it.

A recipe names a source of examples; a benchmark prepares them in its module ``training``
(:mod:`.recipe`). The model it starts from is made or fetched (:mod:`.starting`), trained by
transformers' Trainer (:mod:`.fitting`), asked for answers as lm-eval will ask it, and written with
its record and a model file (:mod:`.command`).
"""
