"""Crosswind: what your communication costs your computation, and the schedule that loses least.

Nouns are files; verbs turn one noun into the next::

    measurement = crosswind.measure(peer="host:7117")
    fit = crosswind.fit(measurement)
    platform = fit.platform()
    plan = crosswind.plan(platform, task_size_mb=2.0, task_work=5.0)
    runs = crosswind.run("experiment.toml", on="sim")
    crosswind.report([measurement, plan, runs], "report.html")
"""

from crosswind._core import __version__
from crosswind.doctor import examine
from crosswind.errors import AgentLost, CrosswindError, DescriptionError, InfeasibleError, MeasurementError
from crosswind.experiment import Experiment
from crosswind.measure import measure
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit, fit
from crosswind.plan import Plan, plan
from crosswind.platform import Platform
from crosswind.report import report
from crosswind.run import Run, Runs, Trace, run
from crosswind.serve import serve
from crosswind.sweep import Sweep, run_sweep

__all__ = [
    "AgentLost",
    "CrosswindError",
    "DescriptionError",
    "Experiment",
    "Fit",
    "InfeasibleError",
    "Measurement",
    "MeasurementError",
    "Plan",
    "Platform",
    "Run",
    "Runs",
    "Sweep",
    "Trace",
    "__version__",
    "examine",
    "fit",
    "measure",
    "plan",
    "report",
    "run",
    "run_sweep",
    "serve",
]
