"""Statistics of numbers in clusters, independent of benchmarks and of lm-eval."""
