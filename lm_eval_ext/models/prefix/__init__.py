"""``--model hf-prefix``: lm-eval's ``hf`` with every shared prefix computed once.

:mod:`.model` is the model type. It asks :mod:`.sharing` whether sharing pays and how much memory
it may take; :mod:`.plan` builds the tree of token sequences, cuts it into groups and lays each
out as one sequence; :mod:`.passes` scores and generates with :mod:`.engine`, which runs the model
and keeps its keys and values. :mod:`.batch_tokenize` speeds up HFLM's tokenizing. The modules
import torch at their top: they are imported only by lm-eval, once this model is chosen.
"""
