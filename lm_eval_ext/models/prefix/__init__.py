"""``--model hf-prefix``: lm-eval's ``hf`` with every shared prefix computed once.

:mod:`.model` is the model type. It asks :mod:`.sharing` whether sharing pays and how much memory
it may take; :mod:`.tree` builds the tree of token sequences, cuts it into groups and gives each
token a slot; :mod:`.passes` scores and, with :mod:`.growing`, generates. Both compute with
:mod:`.engine`, in which new tokens attend to the slots of their ancestors, and with the packed
weights of :mod:`.packed`. The modules import torch at their top: they are imported only by
lm-eval, once this model is chosen.
"""
