"""The task files, as a package: lm-eval's entry-point group ``lm_eval.tasks`` names packages."""
