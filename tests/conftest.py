"""Shared by all tests: `tests/` itself is importable (`import synthetic`), and property tests have no deadline."""

from hypothesis import settings

# No test may depend on how fast the machine happens to be.
settings.register_profile("crosswind", deadline=None)
settings.load_profile("crosswind")
