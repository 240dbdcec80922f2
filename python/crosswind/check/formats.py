"""A check as other systems read it: a line for NHC and Node Problem Detector, XML for CI, text for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args
from xml.etree import ElementTree

if TYPE_CHECKING:
    from crosswind.check.decision import Judged
    from crosswind.check.result import Check

Format = Literal["text", "nhc", "npd", "junit", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
NPD_CHARACTERS = 80
"""Node Problem Detector cuts longer messages (`max_output_length`)."""
NPD_CODES = {0: 0, 1: 1, 3: 2}
"""For its custom plugins 0 is OK, 1 is a problem, and all else is unknown."""
_STATES = ("healthy", "sick", "unknown")


def nhc(found: Check) -> str:
    """Return a line as the LBNL Node Health Check logs it; its text after the first colon is the drain reason."""
    level = "ERROR" if found.exit_code == 1 else "OK" if found.exit_code == 0 else "WARNING"
    return f"{level}: crosswind check: {found.sentence}"


def npd(found: Check) -> str:
    """Return the message of a custom plugin of Node Problem Detector, at most 80 characters."""
    return shortened(found.sentence)


def failed(why: str, form: Format) -> str:
    """Return the line for a check whose measurement failed: unknown, whatever the reason.

    Examples
    --------
    >>> failed("no peer", "nhc")
    'WARNING: crosswind check: unknown: no peer'
    """
    said = f"unknown: {why}"
    return shortened(said) if form == "npd" else f"WARNING: crosswind check: {said}" if form == "nhc" else said


def shortened(said: str) -> str:
    """Return as much of a sentence as Node Problem Detector keeps."""
    return said if len(said) <= NPD_CHARACTERS else f"{said[: NPD_CHARACTERS - 3]}..."


def junit(found: Check) -> str:
    """Return a test suite with a test per measure: failed when it is sick, skipped when it is unknown."""
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
        case = ElementTree.SubElement(suite, "testcase", classname=f"crosswind.check.{found.node}", name=each.name)
        if each.outcome != "healthy":
            tag = "failure" if each.outcome == "sick" else "skipped"
            ElementTree.SubElement(case, tag, message=f"{each.shown} {each.why}".strip())
    ElementTree.SubElement(suite, "system-out").text = "\n".join([found.sentence, *found.changed])
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def prometheus(found: Check) -> str:
    """Return metrics for the textfile collector of Prometheus' node exporter; losses are parts, 0 to 1."""
    lines = _metric(
        "crosswind_check_state",
        "Whether the node is healthy, sick or unknown: the one of them that is 1.",
        [(f'state="{state}"', float(state == found.outcome)) for state in _STATES],
    )
    for name, words, of in (
        ("loss", "Loss against the baseline, 0 to 1", "loss"),
        ("loss_low", "Lower end of the interval of the loss", "low"),
        ("loss_high", "Upper end of the interval of the loss", "high"),
        ("tolerance", "Permitted loss", "tolerance"),
    ):
        lines += _metric(
            f"crosswind_check_{name}", f"{words}.", [(_label(each), getattr(each, of)) for each in found.judged]
        )
    load = found.document["load"]
    lines += _metric("crosswind_check_others", "CPU time of others, part of all CPUs.", [("", load["others"])])
    lines += _metric("crosswind_check_steal", "CPU time that the hypervisor took, 0 to 1.", [("", load["steal"])])
    lines += _metric("crosswind_check_settings_changed", "Settings that changed.", [("", float(len(found.changed)))])
    lines += _metric("crosswind_check_seconds", "How long the check took.", [("", found.document["took_s"])])
    return "\n".join(lines) + "\n"


def _label(each: Judged) -> str:
    name = each.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'measure="{name}"'


def _metric(name: str, words: str, values: list[tuple[str, float]]) -> list[str]:
    def shown(value: float) -> str:
        return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(f"{value:g}", f"{value:.6g}")

    rows = [f"{name}{{{label}}} {shown(value)}" if label else f"{name} {shown(value)}" for label, value in values]
    return [f"# HELP {name} {words}", f"# TYPE {name} gauge", *rows] if rows else []
