"""Tiny models, trained in about a minute, that beat chance on lieder_mini and cogs_mini."""
