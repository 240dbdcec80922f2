"""A check as other systems read it: a line for NHC and Node Problem Detector, XML for CI. Metrics: `metrics`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args
from xml.etree import ElementTree

from crosswind.terminal.printable import printable

if TYPE_CHECKING:
    from crosswind.check.result import Check

Format = Literal["text", "nhc", "npd", "slurm", "junit", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
NPD_CHARACTERS = 80
"""Node Problem Detector cuts longer messages (`max_output_length`)."""
NPD_CODES = {0: 0, 1: 1, 3: 2}
"""For its custom plugins 0 is OK, 1 is a problem, and all else is unknown."""
SLURM_CODES = {0: 0, 1: 4, 3: 0}
"""Slurm drains a node whose prologue does not end with 0; 4 is the status of no program that failed to start."""


def code_of(code: int, form: Format) -> int:
    """Return the exit code of a check as the other system reads it.

    Examples
    --------
    >>> code_of(3, "slurm"), code_of(1, "slurm"), code_of(3, "npd"), code_of(3, "text")
    (0, 4, 2, 3)
    """
    return {"npd": NPD_CODES, "slurm": SLURM_CODES}.get(form, {}).get(code, code)


def nhc(found: Check) -> str:
    """Return a line as the LBNL Node Health Check logs it; its text after the first colon is the drain reason."""
    level = "ERROR" if found.exit_code == 1 else "OK" if found.exit_code == 0 else "WARNING"
    return f"{level}: crosswind check: {_for_logs(found.sentence)}"


def npd(found: Check) -> str:
    """Return the message of a custom plugin of Node Problem Detector, at most 80 characters."""
    return shortened(_for_logs(found.sentence))


def _for_logs(said: str) -> str:
    """Return a sentence for a log or a drain reason, which another system may show in ASCII."""
    return said.replace("±", "+-")


def failed(why: str, form: Format) -> str:
    """Return the line for a check whose measurement failed: unknown, whatever the reason.

    Examples
    --------
    >>> failed("no peer", "nhc")
    'WARNING: crosswind check: unknown: no peer'
    """
    said = printable(f"unknown: {why}")
    return (
        shortened(said) if form == "npd" else f"WARNING: crosswind check: {said}" if form in ("nhc", "slurm") else said
    )


def shortened(said: str) -> str:
    """Return as much of a sentence as Node Problem Detector keeps."""
    return said if len(said) <= NPD_CHARACTERS else f"{said[: NPD_CHARACTERS - 3]}..."


def junit(found: Check) -> str:
    """Return a test suite with a test per measure: failed when it is sick, skipped when it is unknown.

    Each test has the loss with its interval as text and as properties, which CI systems draw over time.
    """
    outcomes = [each.outcome for each in found.judged]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("sick")),
        "skipped": str(outcomes.count("unknown")),
        "errors": "0",
    }
    taken = f"{found.document['took_s']:.3f}"
    suite = ElementTree.Element("testsuite", {"name": "crosswind check", "time": taken, **counts})
    for each in found.judged:
        classname = f"crosswind.check.{found.node}"
        case = ElementTree.SubElement(suite, "testcase", classname=printable(classname), name=printable(each.name))
        properties = ElementTree.SubElement(case, "properties")
        for name, value in (
            ("loss", each.loss),
            ("loss_low", each.low),
            ("loss_high", each.high),
            ("tolerance", each.tolerance),
        ):
            if math.isfinite(value):
                ElementTree.SubElement(properties, "property", name=name, value=f"{value:.6g}")
        if each.outcome != "healthy":
            tag = "failure" if each.outcome == "sick" else "skipped"
            ElementTree.SubElement(case, tag, message=printable(f"{each.shown} {each.why}".strip()))
        permitted = f"permitted: {100 * each.tolerance:g} {'points' if each.share else '%'}"
        ElementTree.SubElement(case, "system-out").text = printable(f"{each.shown}; {permitted}")
    said = "\n".join([found.sentence, *found.changed])
    ElementTree.SubElement(suite, "system-out").text = printable(said, lines=True)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
