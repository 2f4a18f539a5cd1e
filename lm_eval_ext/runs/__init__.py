"""Evaluates models, described by a YAML file each, on the tasks that they have no results of."""
