"""The papers' own figures from results: what can be drawn, and drawing it (docs/plots.md)."""
