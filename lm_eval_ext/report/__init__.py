"""Showing results and tasks as tables."""
