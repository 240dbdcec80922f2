"""Crosswind: how much communication slows your computation, and the schedule that loses the least.

Nouns are files; verbs turn one noun into the next::

    measurement = crosswind.measure(peer="host:7117")
    fit = crosswind.fit(measurement)
    platform = fit.platform()
    plan = crosswind.plan(platform, task_size_mb=2.0, task_work=5.0)
    runs = crosswind.run("experiment.toml", on="sim")
    crosswind.report([measurement, plan, runs], "report.html")

Each name is imported when it is first used (PEP 562): agents, peers and `--help` need no numpy, scipy or altair.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # `typing` takes as long to import as all else that an agent needs
if TYPE_CHECKING:
    from typing import Any

    from crosswind._core import __version__
    from crosswind.blame import blame
    from crosswind.blame.result import Blame
    from crosswind.check import check
    from crosswind.check.cluster import check_cluster
    from crosswind.check.cluster_result import ClusterCheck
    from crosswind.check.result import Check
    from crosswind.compare import compare
    from crosswind.compare.result import Comparison
    from crosswind.cost import cost
    from crosswind.cost.result import Cost
    from crosswind.disturbance import Disturbance
    from crosswind.doctor import doctor
    from crosswind.errors import AgentLost, CrosswindError, DescriptionError, InfeasibleError, MeasurementError
    from crosswind.exchange import export_platform, import_platform
    from crosswind.exchange.workloads import ImportedTasks, import_tasks
    from crosswind.experiment import Experiment, Point, ProgramPoint
    from crosswind.inject import Injected, inject
    from crosswind.lab.lesson import lesson
    from crosswind.links import Links
    from crosswind.measure import measure
    from crosswind.measure.cluster import MeasuredCluster, measure_cluster
    from crosswind.measure.sweep import Sweep, measure_sweep
    from crosswind.measurement import Measurement
    from crosswind.model.fit import Fit, fit
    from crosswind.model.flows import Contention, fit_contention
    from crosswind.noise import Noise, record
    from crosswind.overlap import overlap
    from crosswind.overlap.result import Overlap
    from crosswind.plan import Plan, plan
    from crosswind.plan.queues import QueuesPlan, plan_queues
    from crosswind.plan.tolerance import Tolerance, plan_tolerance
    from crosswind.plan.tree import BuiltTree, plan_tree
    from crosswind.platform import Platform
    from crosswind.recorder.program import RecordedProgram, record_program
    from crosswind.recorder.steps import record_step
    from crosswind.report import draw, plot, report
    from crosswind.run.calls import CallError
    from crosswind.run.command import map_command
    from crosswind.run.deployment import Placing
    from crosswind.run.farm import Farm
    from crosswind.run.grid import Grid, run
    from crosswind.run.mapping import map
    from crosswind.run.point_table import write_points, write_ranks
    from crosswind.run.ranking import Ranking, ranking
    from crosswind.run.rerun import Rerun, run_again
    from crosswind.run.results import ProgramRun, Run, Runs, StreamsRun
    from crosswind.run.trace import Trace
    from crosswind.run.utilisation import utilisation
    from crosswind.serve import serve

__all__ = [
    "AgentLost",
    "Blame",
    "BuiltTree",
    "CallError",
    "Check",
    "ClusterCheck",
    "Comparison",
    "Contention",
    "Cost",
    "CrosswindError",
    "DescriptionError",
    "Disturbance",
    "Experiment",
    "Farm",
    "Fit",
    "Grid",
    "ImportedTasks",
    "InfeasibleError",
    "Injected",
    "Links",
    "MeasuredCluster",
    "Measurement",
    "MeasurementError",
    "Noise",
    "Overlap",
    "Placing",
    "Plan",
    "Platform",
    "Point",
    "ProgramPoint",
    "ProgramRun",
    "QueuesPlan",
    "Ranking",
    "RecordedProgram",
    "Rerun",
    "Run",
    "Runs",
    "StreamsRun",
    "Sweep",
    "Tolerance",
    "Trace",
    "__version__",
    "blame",
    "check",
    "check_cluster",
    "compare",
    "cost",
    "doctor",
    "draw",
    "export_platform",
    "fit",
    "fit_contention",
    "import_platform",
    "import_tasks",
    "inject",
    "lesson",
    "map",
    "map_command",
    "measure",
    "measure_cluster",
    "measure_sweep",
    "overlap",
    "plan",
    "plan_queues",
    "plan_tolerance",
    "plan_tree",
    "plot",
    "ranking",
    "record",
    "record_program",
    "record_step",
    "report",
    "run",
    "run_again",
    "serve",
    "utilisation",
    "write_points",
    "write_ranks",
]

# The module of each public name, as above.
_HOMES = {
    "_core": ["__version__"],
    "blame": ["blame"],
    "blame.result": ["Blame"],
    "check": ["check"],
    "check.cluster": ["check_cluster"],
    "check.cluster_result": ["ClusterCheck"],
    "check.result": ["Check"],
    "compare": ["compare"],
    "compare.result": ["Comparison"],
    "cost": ["cost"],
    "cost.result": ["Cost"],
    "disturbance": ["Disturbance"],
    "doctor": ["doctor"],
    "errors": ["AgentLost", "CrosswindError", "DescriptionError", "InfeasibleError", "MeasurementError"],
    "exchange": ["export_platform", "import_platform"],
    "exchange.workloads": ["ImportedTasks", "import_tasks"],
    "experiment": ["Experiment", "Point", "ProgramPoint"],
    "inject": ["Injected", "inject"],
    "lab.lesson": ["lesson"],
    "links": ["Links"],
    "measure": ["measure"],
    "measure.cluster": ["MeasuredCluster", "measure_cluster"],
    "measure.sweep": ["Sweep", "measure_sweep"],
    "measurement": ["Measurement"],
    "model.fit": ["Fit", "fit"],
    "model.flows": ["Contention", "fit_contention"],
    "noise": ["Noise", "record"],
    "overlap": ["overlap"],
    "overlap.result": ["Overlap"],
    "plan": ["Plan", "plan"],
    "plan.queues": ["QueuesPlan", "plan_queues"],
    "plan.tolerance": ["Tolerance", "plan_tolerance"],
    "plan.tree": ["BuiltTree", "plan_tree"],
    "platform": ["Platform"],
    "recorder.program": ["RecordedProgram", "record_program"],
    "recorder.steps": ["record_step"],
    "report": ["draw", "plot", "report"],
    "run.calls": ["CallError"],
    "run.command": ["map_command"],
    "run.deployment": ["Placing"],
    "run.farm": ["Farm"],
    "run.grid": ["Grid", "run"],
    "run.mapping": ["map"],
    "run.point_table": ["write_points", "write_ranks"],
    "run.ranking": ["Ranking", "ranking"],
    "run.rerun": ["Rerun", "run_again"],
    "run.results": ["ProgramRun", "Run", "Runs", "StreamsRun"],
    "run.trace": ["Trace"],
    "run.utilisation": ["utilisation"],
    "serve": ["serve"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """A package whose verbs stay verbs: `import crosswind.plan` must not put the module where the function belongs."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)  # for functions of users that use it


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
