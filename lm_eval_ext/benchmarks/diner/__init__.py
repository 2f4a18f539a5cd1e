"""DiNeR: names of dishes that combine known components anew (Hu et al. 2023)."""
