"""The referee computes every metric from raw guesses; a plugin is never trusted about its own success."""

from leakboard.metrics.cell import SCORES, judge, judge_task

__all__ = ["SCORES", "judge", "judge_task"]
