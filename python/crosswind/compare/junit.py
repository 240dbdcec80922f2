"""A comparison as JUnit's XML, which CI systems show."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from crosswind.compare.result import Comparison


def junit(found: Comparison) -> str:
    """Return a test suite of one test: failed when B is slower, skipped when it is not known."""
    code = found.exit_code
    counts = {"tests": "1", "failures": str(int(code == 4)), "skipped": str(int(code == 3)), "errors": "0"}
    taken = f"{float(found.pairs.wall_s.sum()):.3f}"
    suite = ElementTree.Element("testsuite", {"name": "crosswind compare", "time": taken, **counts})
    a, b = found.commands
    case = ElementTree.SubElement(suite, "testcase", classname="crosswind.compare", name=f"{a} | {b}", time=taken)
    if code in (3, 4):
        ElementTree.SubElement(case, "failure" if code == 4 else "skipped", message=found.sentence)
    ElementTree.SubElement(case, "system-out").text = found.sentence
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
