"""Evaluating models, described by a YAML file each, on the tasks that they lack results of."""
