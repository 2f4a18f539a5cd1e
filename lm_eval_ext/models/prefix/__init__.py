"""``--model hf-prefix``: lm-eval's ``hf`` with every shared prefix computed once (docs/prefix.md).

:mod:`.tree` sorts token sequences so that shared beginnings lie together, :mod:`.plan` cuts
them into groups that fit into memory, :mod:`.pack` lays a group out as one sequence,
:mod:`.engine` runs the model over it and keeps its keys and values (:mod:`.cache`), and
:mod:`.model` is the model type. The rooms import torch at their top: nobody comes here but
lm-eval after it has chosen this model.
"""
