"""COGS with controlled lexical exposure (Kim, Linzen and Smolensky 2022).

Do models still generalize when the key words cannot have occurred in pretraining? ``load`` reads
examples, ``lexicons`` replaces the key words, ``score`` compares logical forms
(:mod:`lm_eval_ext.logical_forms`). ``in_context`` and ``demonstrations`` are for models without
fine-tuning; ``tokens`` adds the novel tokens to a model.
"""
