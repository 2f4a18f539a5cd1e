"""Model types that ``lm_eval --model`` accepts besides its own."""
