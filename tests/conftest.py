"""Shared by all tests: modules beside them can be imported (`import synthetic`); property tests have no deadline;
ctrl-C reaches what tests start, however they were started themselves.
"""

import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent
# Tests are imported by their path (--import-mode=importlib), which puts no folder on the search path by itself.
sys.path[:0] = [str(HERE), *(str(room) for room in HERE.iterdir() if room.is_dir())]

# How long the machine takes decides whether a log gets a line of progress.
os.environ["CROSSWIND_PROGRESS"] = "0"

# No test may depend on how fast the machine happens to be.
settings.register_profile("crosswind", deadline=None)
settings.load_profile("crosswind")

# A shell without job control starts what runs in its background with ctrl-C ignored, `nohup` ignores SIGHUP, and
# children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

LEFT_TO_THE_NIGHT = [
    line.strip().split(maxsplit=1)[1]
    for line in (HERE / "nightly.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]
FEW_AND_LONG = {
    f"tests/{file}.py"
    for file in (
        *("live/test_readme", "live/test_measured_cluster", "live/test_inject_exposed", "live/test_first_screen"),
        *("browser/test_site_in_chromium", "browser/test_report_in_chromium", "browser/test_pdf_by_chromium"),
        *("live/test_record_program", "live/test_cost", "live/test_hosts", "live/test_dask", "live/test_measure"),
    )
}
"""Files that begin first where whole files are handed out: as the last, each would keep one process of several busy."""
FORKS = "tests/unit/files/test_mutants.py"
"""Forks the process that tests: before other tests have drawn figures there, whose threads a child lacks."""


def _file_of(item):
    return item.nodeid.split("::")[0]


def pytest_collection_modifyitems(config, items):
    """Mark what `nightly.txt` lists; an entry that no test has any more is an error. `*` stands for any text."""
    sizes = Counter(map(_file_of, items))
    if all(file.startswith(("tests/live/", "tests/browser/")) for file in sizes):
        items.sort(key=lambda item: (_file_of(item) not in FEW_AND_LONG, -sizes[_file_of(item)]))
    items.sort(key=lambda item: _file_of(item) != FORKS)
    found = set()
    patterns = {entry: re.escape(entry).replace(r"\*", ".*") for entry in LEFT_TO_THE_NIGHT if "*" in entry}
    for item in items:
        names = {item.nodeid, item.nodeid.split("[")[0], item.nodeid.split("::")[0]}
        names |= {entry for entry, pattern in patterns.items() if re.fullmatch(pattern, item.nodeid)}
        if listed := names.intersection(LEFT_TO_THE_NIGHT):
            item.add_marker(pytest.mark.nightly)
            found |= listed
    files = set(sizes)
    gone = [entry for entry in LEFT_TO_THE_NIGHT if entry.split("::")[0] in files and entry not in found]
    if gone and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"tests/nightly.txt: no such tests: {gone}")
