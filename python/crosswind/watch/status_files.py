"""A node's part of a run, from the files in which its agent says how it stands.

The agent is another process (below `crosswind serve --parent`), started anew where a task ended it; it writes
`run.json` and `now.json` (`crates/live/src/farm/status_file.rs`).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosswind.platform import Platform
from crosswind.watch import Watch

_EVERY_S = 0.5


class Standing:
    """What an agent has said of itself so far; each look hands what is new to the page.

    Parameters
    ----------
    directory : Path
        Where the agent writes.
    watch : Watch
        What the page shows.
    """

    def __init__(self, directory: Path, watch: Watch) -> None:
        self._directory, self._watch = directory, watch
        self._since: int | None = None
        self._results: Counter[str] = Counter()
        self._happened = 0

    def look(self) -> None:
        """Take up what is new; there is nothing before the agent has registered."""
        now = self._read("now.json")
        if now is None:
            return
        if now["since_ns"] != self._since and not self._begin(now["since_ns"]):
            return
        results = Counter(now["results"])
        self._watch.took(results - self._results)
        self._results = results
        new = min(now["happened"] - self._happened, len(now["events"]))
        events = now["events"][len(now["events"]) - new :]
        self._watch.happened((event["code"], event["node"], event["message"]) for event in events)
        self._happened = now["happened"]

    def _begin(self, since_ns: int) -> bool:
        about = self._read("run.json")
        if about is None or about["since_ns"] != since_ns:
            return False  # the one before, or the next: the other file follows
        run = about["run"]
        scale = run["work"].get("time_scale", 1.0)
        self._watch.begin(Platform.from_dict(run["platform"]), run, run["tasks"], scale, below=about["node"])
        self._since, self._results, self._happened = since_ns, Counter(), 0
        return True

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self._directory / name).read_bytes())
        except FileNotFoundError:
            return None


@contextmanager
def followed(directory: Path, watch: Watch) -> Iterator[None]:
    """Have the page follow the agent that writes here, until the body ends."""
    standing, over = Standing(directory, watch), threading.Event()

    def follow() -> None:
        while not over.wait(_EVERY_S):
            standing.look()

    thread = threading.Thread(target=follow, name="crosswind-standing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        standing.look()
        watch.ended()
