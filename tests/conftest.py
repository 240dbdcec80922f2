"""Shared by all tests: modules beside them can be imported (`import synthetic`); property tests have no deadline;
ctrl-C reaches what tests start, however they were started themselves.
"""

import signal
import sys
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent
# Tests are imported by their path (--import-mode=importlib), which puts no folder on the search path by itself.
sys.path[:0] = [str(HERE), *(str(room) for room in HERE.iterdir() if room.is_dir())]

# No test may depend on how fast the machine happens to be.
settings.register_profile("crosswind", deadline=None)
settings.load_profile("crosswind")

# A shell without job control starts what runs in its background with ctrl-C ignored, `nohup` ignores SIGHUP, and
# children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
