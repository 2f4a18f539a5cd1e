"""What lm-eval's YAML cannot express: task classes, loading, metrics, signatures."""
