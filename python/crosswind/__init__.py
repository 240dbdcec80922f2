"""Crosswind: what your communication costs your computation, and the schedule that loses least.

Nouns are files; verbs turn one noun into the next::

    measurement = crosswind.measure(peer="host:7117")
    fit = crosswind.fit(measurement)
    platform = fit.platform()
    plan = crosswind.plan(platform, task_size_mb=2.0, task_work=5.0)
    crosswind.report([measurement, plan], "report.html")
"""

from crosswind._core import __version__

__all__ = ["__version__"]
