"""The published leaderboard: tables, provenance, published numbers beside ours, publish and verify."""
