"""One sentence for each runtime and direction: what decides when the task computes."""

import pytest

from crosswind.measure.runtime.explanation import explanation


@pytest.mark.parametrize(
    ("name", "facts", "direction", "moves", "word"),
    [
        ("java", {"threads": "virtual"}, "receive", False, "not pre-empted"),
        ("java", {"threads": "virtual", "yield": "yield"}, "send", False, "Thread.yield"),
        ("java", {"threads": "virtual"}, "send", True, "one carrier"),
        ("java", {"threads": "virtual-traffic"}, "send", True, "kernel's to schedule"),
        ("java", {"io": "stream"}, "send", True, "128 KiB"),
        ("java", {"io": "direct"}, "send", True, "as C does"),
        ("java", {"io": "heap"}, "send", True, "once more"),
        ("go", {"gomaxprocs": "1"}, "receive", True, "10 ms"),
        ("go", {"gomaxprocs": "2"}, "receive", True, "the kernel decides"),
        ("cpython", {"gil": "yes", "switch_interval": "0.001"}, "send", True, "1 ms"),
        ("cpython", {"gil": "no"}, "send", True, "free-threaded"),
        ("cpython", {"gil": "yes", "io": "asyncio"}, "send", True, "one event loop"),
        ("node", {"compute": "loop"}, "send", True, "one event loop"),
        ("node", {"compute": "worker"}, "send", True, "worker thread"),
    ],
)
def test_what_decides_is_said(name, facts, direction, moves, word):
    assert word in explanation({"name": name, "facts": facts}, direction, moves)


def test_of_an_unknown_runtime_nothing_is_said():
    assert explanation({"name": "c", "facts": {}}, "send", True) is None
