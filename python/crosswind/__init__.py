"""Crosswind: what your communication costs your computation, and the schedule that loses least.

Nouns are files; verbs turn one noun into the next::

    measurement = crosswind.measure(peer="host:7117")
    fit = crosswind.fit(measurement)
    platform = fit.platform()
    plan = crosswind.plan(platform, task_size_mb=2.0, task_work=5.0)
    crosswind.report([measurement, plan], "report.html")
"""

from crosswind._core import __version__
from crosswind.doctor import examine
from crosswind.errors import AgentLost, CrosswindError, DescriptionError, InfeasibleError, MeasurementError
from crosswind.measure import measure
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit, fit
from crosswind.plan import Plan, plan
from crosswind.platform import Platform
from crosswind.report import report
from crosswind.serve import serve
from crosswind.sweep import Sweep, run_sweep

__all__ = [
    "AgentLost",
    "CrosswindError",
    "DescriptionError",
    "Fit",
    "InfeasibleError",
    "Measurement",
    "MeasurementError",
    "Plan",
    "Platform",
    "Sweep",
    "__version__",
    "examine",
    "fit",
    "measure",
    "plan",
    "report",
    "run_sweep",
    "serve",
]
