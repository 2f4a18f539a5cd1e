"""SLOG: structural generalization in semantic parsing (Li et al. 2023)."""
