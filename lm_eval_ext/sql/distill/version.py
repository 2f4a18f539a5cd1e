"""The version of the rows that are added."""

POPULATE_VERSION = 1
"""Rises whenever other rows would be added; part of caches' keys and of signatures."""
