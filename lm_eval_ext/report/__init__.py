"""Reading the results that lm-eval wrote, and showing them."""
