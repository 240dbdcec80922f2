"""The kinds of sections, in the order of the page: plan, prediction, outcome, then what they stand on."""

from __future__ import annotations

from crosswind.report.blamed import BLAMES
from crosswind.report.checked import CHECKS
from crosswind.report.commanded import COMMANDS
from crosswind.report.costed import COSTS
from crosswind.report.disturbed import PROGRAMS
from crosswind.report.gpus import GPUS
from crosswind.report.injected import INJECTIONS
from crosswind.report.measured import MEASUREMENTS
from crosswind.report.overlapped import OVERLAPS
from crosswind.report.planned import PLANS, PLATFORMS
from crosswind.report.ran import RUNS, TRACES
from crosswind.report.recorded import RECORDINGS
from crosswind.report.section import Kind
from crosswind.report.streamed import STREAMS
from crosswind.report.studied import STUDIES
from crosswind.report.swept import SWEEPS

KINDS: tuple[Kind, ...] = (
    PLANS,
    RUNS,
    TRACES,
    MEASUREMENTS,
    GPUS,
    SWEEPS,
    STUDIES,
    PROGRAMS,
    STREAMS,
    RECORDINGS,
    INJECTIONS,
    BLAMES,
    COMMANDS,
    COSTS,
    CHECKS,
    OVERLAPS,
    PLATFORMS,
)
