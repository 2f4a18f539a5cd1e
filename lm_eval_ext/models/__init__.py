"""Model types that ``lm_eval --model`` accepts beside its own."""
