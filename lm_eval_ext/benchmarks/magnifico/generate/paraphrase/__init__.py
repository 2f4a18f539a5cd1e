"""Paraphrases of generated questions by a model, kept only if they mean the same.

:mod:`.reading` parses a question into what it asks, by a closed list of words (``words.yaml``);
:mod:`.pair` makes the base question and the other forms from one text; :mod:`.judge` keeps a
paraphrase or says why not; :mod:`.folder` writes the folder.
"""

RULES_VERSION = 1
"""Rises whenever another paraphrase would be kept; part of what is written about them."""
