"""Measures what this project claims to be fast, beside what it is compared with."""
