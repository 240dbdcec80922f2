"""Blame: which cause of a disturbance costs a parallel program how much."""
