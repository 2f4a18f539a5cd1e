"""What lm-eval's YAML alone cannot say: task classes, loading, metrics, signatures."""
