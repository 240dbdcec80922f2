"""The kinds of sections, in the order of the page: what this machine does, plan, prediction, outcome."""

from __future__ import annotations

from crosswind.report.sections.blame import BLAMES
from crosswind.report.sections.check import CHECKS
from crosswind.report.sections.command import COMMANDS
from crosswind.report.sections.cost import COSTS
from crosswind.report.sections.gpu import GPUS
from crosswind.report.sections.injection import INJECTIONS
from crosswind.report.sections.measurement import MEASUREMENTS
from crosswind.report.sections.noise import RECORDINGS
from crosswind.report.sections.overlap import OVERLAPS
from crosswind.report.sections.plan import PLANS, PLATFORMS
from crosswind.report.sections.program import PROGRAMS
from crosswind.report.sections.runs import RUNS, TRACES
from crosswind.report.sections.section import Kind
from crosswind.report.sections.slow_rank import STRAGGLERS
from crosswind.report.sections.streams import STREAMS
from crosswind.report.sections.study import STUDIES
from crosswind.report.sections.sweep import SWEEPS

KINDS: tuple[Kind, ...] = (
    MEASUREMENTS,
    GPUS,
    SWEEPS,
    PLANS,
    RUNS,
    TRACES,
    STUDIES,
    PROGRAMS,
    STREAMS,
    RECORDINGS,
    INJECTIONS,
    BLAMES,
    COMMANDS,
    STRAGGLERS,
    COSTS,
    CHECKS,
    OVERLAPS,
    PLATFORMS,
)
