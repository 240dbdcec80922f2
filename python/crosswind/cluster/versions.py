"""What a process runs: looked at here and on each worker. Travels by value: workers need no Crosswind for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _by_value() -> Callable[[], dict[str, Any]]:
    """Return a function that no module has under its name: cloudpickle sends such a one by value."""

    def look() -> dict[str, Any]:
        """Return the versions that two processes must share; `crosswind` is None where it cannot be imported."""
        import sys

        found: dict[str, Any] = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", "executable": sys.executable}
        try:
            import cloudpickle

            found["cloudpickle"] = ".".join(cloudpickle.__version__.split(".")[:2])
            import crosswind
            from crosswind import _core

            found["crosswind"], found["protocol"] = crosswind.__version__, _core.AGENT_PROTOCOL
        except (ImportError, AttributeError) as error:
            found["crosswind"], found["error"] = None, str(error)
        return found

    return look


look = _by_value()
