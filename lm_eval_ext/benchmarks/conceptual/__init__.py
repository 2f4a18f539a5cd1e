"""Conceptual few-shot: do models learn a concept from demonstrations? (Štefánik & Kadlčík 2023)."""
