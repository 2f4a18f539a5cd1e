"""A tiny model, trained in about two minutes, for the demonstration on what is embedded."""
