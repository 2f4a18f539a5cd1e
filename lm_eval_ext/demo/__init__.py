"""The corpus of the demonstration: what the recipe ``demo`` trains on."""
