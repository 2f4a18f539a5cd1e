"""DiNeR: names of dishes that are new combinations of known components (Hu et al. 2023)."""
