"""LeakBoard from Python: run a suite, evaluate vectors, audit a mechanism, open a published leaderboard."""
