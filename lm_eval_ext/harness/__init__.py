"""Glue to lm-eval: what its YAML alone cannot say, one small module per need."""
