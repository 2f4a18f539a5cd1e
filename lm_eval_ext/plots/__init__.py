"""The papers' own figures from results: what can be drawn, and drawing it (docs/leaderboard.md)."""
