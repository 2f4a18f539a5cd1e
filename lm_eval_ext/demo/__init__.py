"""The demonstration: a pretrained model for ``make demo``, and the texts of the recipe ``demo``."""
