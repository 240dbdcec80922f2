"""Crosswind: what your communication costs your computation, and the schedule that loses least.

Nouns are files; verbs turn one noun into the next::

    measurement = crosswind.measure(peer="host:7117")
    fit = crosswind.fit(measurement)
    platform = fit.platform()
    plan = crosswind.plan(platform, task_size_mb=2.0, task_work=5.0)
    runs = crosswind.run("experiment.toml", on="sim")
    crosswind.report([measurement, plan, runs], "report.html")

Each name is imported when it is first used (PEP 562): agents, peers and `--help` need no numpy, scipy or altair.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswind._core import __version__
    from crosswind.blame import blame
    from crosswind.blame.result import Blame
    from crosswind.check import check
    from crosswind.check.result import Check
    from crosswind.compare import compare
    from crosswind.compare.result import Comparison
    from crosswind.cost import cost
    from crosswind.cost.result import Cost
    from crosswind.disturbance import Disturbance
    from crosswind.doctor import doctor
    from crosswind.errors import AgentLost, CrosswindError, DescriptionError, InfeasibleError, MeasurementError
    from crosswind.experiment import Experiment
    from crosswind.inject import Injected, inject
    from crosswind.links import Links
    from crosswind.measure import measure
    from crosswind.measurement import Measurement
    from crosswind.model.fit import Fit, fit
    from crosswind.noise import Noise, record
    from crosswind.overlap import overlap
    from crosswind.overlap.result import Overlap
    from crosswind.overlay import BuiltTree, build_tree
    from crosswind.plan import Plan, plan
    from crosswind.platform import Platform
    from crosswind.report import report
    from crosswind.run.calls import CallError
    from crosswind.run.deployment import Placing
    from crosswind.run.farm import Farm
    from crosswind.run.grid import run
    from crosswind.run.mapping import map
    from crosswind.run.results import ProgramRun, Run, Runs, StreamsRun
    from crosswind.run.trace import Trace
    from crosswind.serve import serve
    from crosswind.sweep import Sweep, run_sweep
    from crosswind.tolerance import Tolerance, tolerance

__all__ = [
    "AgentLost",
    "Blame",
    "BuiltTree",
    "CallError",
    "Check",
    "Comparison",
    "Cost",
    "CrosswindError",
    "DescriptionError",
    "Disturbance",
    "Experiment",
    "Farm",
    "Fit",
    "InfeasibleError",
    "Injected",
    "Links",
    "Measurement",
    "MeasurementError",
    "Noise",
    "Overlap",
    "Placing",
    "Plan",
    "Platform",
    "ProgramRun",
    "Run",
    "Runs",
    "StreamsRun",
    "Sweep",
    "Tolerance",
    "Trace",
    "__version__",
    "blame",
    "build_tree",
    "check",
    "compare",
    "cost",
    "doctor",
    "fit",
    "inject",
    "map",
    "measure",
    "overlap",
    "plan",
    "record",
    "report",
    "run",
    "run_sweep",
    "serve",
    "tolerance",
]

# The module of each public name, as above.
_HOMES = {
    "_core": ["__version__"],
    "tolerance": ["Tolerance", "tolerance"],
    "blame": ["blame"],
    "blame.result": ["Blame"],
    "check": ["check"],
    "check.result": ["Check"],
    "compare": ["compare"],
    "compare.result": ["Comparison"],
    "cost": ["cost"],
    "cost.result": ["Cost"],
    "disturbance": ["Disturbance"],
    "doctor": ["doctor"],
    "errors": ["AgentLost", "CrosswindError", "DescriptionError", "InfeasibleError", "MeasurementError"],
    "experiment": ["Experiment"],
    "inject": ["Injected", "inject"],
    "links": ["Links"],
    "measure": ["measure"],
    "measurement": ["Measurement"],
    "model.fit": ["Fit", "fit"],
    "noise": ["Noise", "record"],
    "overlap": ["overlap"],
    "overlap.result": ["Overlap"],
    "overlay": ["BuiltTree", "build_tree"],
    "plan": ["Plan", "plan"],
    "platform": ["Platform"],
    "report": ["report"],
    "run.calls": ["CallError"],
    "run.deployment": ["Placing"],
    "run.farm": ["Farm"],
    "run.grid": ["run"],
    "run.mapping": ["map"],
    "run.results": ["ProgramRun", "Run", "Runs", "StreamsRun"],
    "run.trace": ["Trace"],
    "serve": ["serve"],
    "sweep": ["Sweep", "run_sweep"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """A package whose verbs stay verbs: `import crosswind.plan` must not put the module where the function belongs."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
