"""Discourse entities: does a model know which nouns introduce one? (Schuster and Linzen 2022)."""
