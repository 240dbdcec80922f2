"""The order of a check: two looks at kernels and noise, with the network between them, so that they lie apart.

Nothing that goes wrong ends a check: a measure that fails, or for which no time is left, is named with the reason, and
is unknown.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.check import fault, rates, surroundings
from crosswind.check.decision import LOOKS, Reading
from crosswind.check.network import interference, names_of_path, path_name
from crosswind.check.result import KIND, SCHEMA_VERSION, Check
from crosswind.check.time_limit import OverTimeError, run_until
from crosswind.errors import CrosswindError, DescriptionError, Notice, warning
from crosswind.host.processor import allowed_cpus
from crosswind.noise import record
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.documents.check import CheckDocument
    from crosswind.documents.values import Host

_NOISE_BATCHES = 4
KERNELS_SHARE, NOISE_SHARE = 0.35, 0.25
"""Parts of the time for kernels and noise, both looks together; the paths share the rest."""
_LEAST_PATH_S = 2.0
_SLACK_S = 0.3
_LOOK_AGAIN = 1.5
"""Time kept for the second look, as a multiple of what the first one took."""


def performed(
    base: Check | None,
    tolerance: float,
    seconds: float,
    peer: str | None,
    token: str | None,
    tls: str | Path | None,
    progress: Advance | None,
    limit_s: float,
) -> CheckDocument:
    """Measure, and return the document of a check; after ctrl-C or the time limit with what was complete."""
    session = _Session(base, seconds, token, tls, limit_s)
    described, watch = session.described(), surroundings.Watch.begin()
    interrupted = False
    try:
        with rates.Kernels(session.cpus) as kernels:
            import_what_follows()  # while the processes start: on a busy host each import takes seconds
            kernels.wait_until_ready(session.until)
            for number, step in enumerate(session.steps(kernels, [None, peer] if peer else [None])):
                if progress:
                    gone = time.monotonic() - session.began
                    progress(number / (3 + bool(peer)), f"{gone:.0f} s of about {seconds:.0f} s")
                step()
    except KeyboardInterrupt:  # what was complete is kept
        interrupted = True
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "crosswind": _core.__version__,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": described,
        "peer": peer,
        "tolerance": tolerance,
        "readings": {name: reading.to_dict() for name, reading in session.readings().items()},
        "tops_mb_per_s": session.tops,
        "load": watch.load(),
        "hidden": surroundings.hidden(),
        "took_s": round(time.monotonic() - session.began, 2),
        "interrupted": interrupted,
        "failed": session.failed,
        "warnings": session.told,
    }


def import_what_follows() -> None:
    """Import what measuring the network and judging need."""
    for name in ("scipy.special", "crosswind.measure", "crosswind.model.fit"):
        import_module(name)


class _Session:
    """What a check has measured so far."""

    def __init__(
        self, base: Check | None, seconds: float, token: str | None, tls: str | Path | None, limit_s: float
    ) -> None:
        self.cpus, self.began = allowed_cpus(), time.monotonic()
        self.until, self.limit_s = self.began + limit_s, limit_s
        self.failed: dict[str, str] = {}
        self.told: list[Notice] = []
        self.tops: dict[str, float] = {}
        self._known = base.document["tops_mb_per_s"] if base is not None else {}
        self._seconds, self._token, self._tls = seconds, token, tls
        self._batches: dict[str, list[float]] = {}
        self._looks: dict[str, int] = {}
        self._paths: dict[str, Reading] = {}
        self._look_s = 0.0

    def described(self) -> Host:
        """Describe the host; a file of the kernel that is not as it should be costs the settings only."""
        try:
            return surroundings.settings()
        except Exception as error:
            message = f"the host's settings cannot be read: {fault.described(error)}"
            self.told.append(warning("not-described", message, "changed settings are not named in this check"))
            return {"name": socket.gethostname(), "settings": {}}

    def steps(self, kernels: rates.Kernels, paths: list[str | None]) -> list[Any]:
        """Return what is done, in order."""
        along = [lambda path=path: self._along(path, len(paths)) for path in paths]
        return [lambda: self._look(kernels), *along, lambda: self._look(kernels)]

    def readings(self) -> dict[str, Reading]:
        """Return each measure that was complete at least once."""
        found = {name: _reading(name, values, self._looks[name]) for name, values in self._batches.items()}
        return found | self._paths

    def _look(self, kernels: rates.Kernels) -> None:
        began = time.monotonic()
        self._keep(kernels.measured(KERNELS_SHARE * self._seconds / LOOKS, self.until))
        for cpu, why in kernels.failed.items():
            self._fail([name for name in rates.names_of(cpu) if name not in self._batches], why)
        self._attempt(["noise"], self.until, self._noise)
        self._look_s = time.monotonic() - began

    def _noise(self) -> None:
        batches = []
        for _ in range(_NOISE_BATCHES):
            found = record(NOISE_SHARE * self._seconds / LOOKS / _NOISE_BATCHES, how="loop")
            if found.summary["interrupted"]:
                raise KeyboardInterrupt
            batches.append(found.share)
        self._keep({"noise": batches})

    def _along(self, path: str | None, of: int) -> None:
        until = self.until - _LOOK_AGAIN * self._look_s - _SLACK_S
        names = names_of_path(path)
        if until - time.monotonic() < _LEAST_PATH_S:
            self._fail(names, f"no time left within the limit of {self.limit_s:.0f} s")
            return
        time_s = (1 - KERNELS_SHARE - NOISE_SHARE) * self._seconds / of

        def measure() -> None:
            found, top, warnings = interference(path, self._known.get(path_name(path)), time_s, self._token, self._tls)
            self._paths.update(found)
            self.told.extend(warnings)
            why = warnings[0]["message"] if warnings else "not measured"
            self._fail([name for name in names if name not in found], why)
            if top is not None:
                self.tops[path_name(path)] = top

        self._attempt(names, until, measure)

    def _keep(self, found: dict[str, list[float]]) -> None:
        for name, values in found.items():
            self._batches.setdefault(name, []).extend(values)
            self._looks[name] = self._looks.get(name, 0) + 1

    def _fail(self, names: list[str], why: str) -> None:
        for name in names:
            self.failed.setdefault(name, why)

    def _attempt(self, names: list[str], until: float, body: Callable[[], None]) -> None:
        """Call what measures these; they fail where it does, or where it does not end in time."""
        try:
            run_until(until, body)
        except OverTimeError:
            self._fail(names, f"not done within the limit of {self.limit_s:.0f} s")
        except DescriptionError:  # an argument is wrong
            raise
        except CrosswindError as error:
            self._fail(names, str(error))
        except Exception as error:
            self._fail(names, f"a fault of Crosswind, {fault.described(error)}")


def _reading(name: str, values: list[float], looks: int) -> Reading:
    if name == "noise" or name.startswith(rates.LOST):
        return Reading(tuple(values), "share", excusable=True, part=0.5, looks=looks)
    # A virtual machine's neighbours share the memory: its rate varies between sessions ten times as much as the other.
    return Reading(tuple(values), part=2.0 if name.startswith("memory") else 1.0, looks=looks)
