"""A tiny language model, trained in about a minute, that has something to show on lieder_mini."""
