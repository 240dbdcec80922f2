"""Which CPUs the computing thread, the traffic's threads, the sampler and a peer of our own run on.

It decides the answer of a measurement, so it is chosen before anything starts and stands in the result.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.errors import DescriptionError
from crosswind.host.processor import siblings

MODES = ("same-core", "other-core", "free", "explicit")


@dataclass(frozen=True)
class Placed:
    """CPUs by role; an empty tuple means any.

    Attributes
    ----------
    compute, traffic : tuple of int
        Of the computing thread and of the threads that move bytes.
    others : tuple of int
        Of the sampler, and of a peer that the measurement starts itself.
    crowded : bool
        Whether the sampler had to be put on the computing CPU.
    """

    compute: tuple[int, ...]
    traffic: tuple[int, ...]
    others: tuple[int, ...]
    crowded: bool


def place(mode: str, compute_cpus: Sequence[int] | None = None, traffic_cpus: Sequence[int] | None = None) -> Placed:
    """Choose CPUs among those that this process may use.

    The computation gets the last one, since interrupts often go to the first. Hardware threads of the computing core
    are the last choice for everything else.

    Parameters
    ----------
    mode : {"same-core", "other-core", "free", "explicit"}
    compute_cpus, traffic_cpus : sequence of int, optional
        For "explicit": both.

    Raises
    ------
    DescriptionError
        When a CPU may not be used, or a list is missing or not wanted.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if mode not in MODES:
        raise DescriptionError(f"placement is {mode!r}; it must be one of {', '.join(MODES)}", "placement")
    given = {"compute_cpus": compute_cpus, "traffic_cpus": traffic_cpus}
    for name, cpus in given.items():
        if mode != "explicit" and cpus:
            hint = 'use placement="explicit" to choose CPUs yourself'
            raise DescriptionError(f"{name} is {list(cpus)} with placement {mode!r}", "placement", hint)
        if mode == "explicit" and not cpus:
            raise DescriptionError(f'{name} is missing; placement="explicit" needs it', "placement", "such as [1]")
        if forbidden := set(cpus or ()) - set(allowed):
            raise DescriptionError(
                f"{name} names CPU {min(forbidden)}; this process may use {', '.join(map(str, allowed))}", "placement"
            )
    if mode == "free":
        return Placed((), (), (), False)
    if mode == "explicit":
        compute, traffic = tuple(sorted(set(compute_cpus or ()))), tuple(sorted(set(traffic_cpus or ())))
    else:
        compute = traffic = (allowed[-1],)
    same_core = {cpu for own in compute for cpu in siblings(own)}
    rest = [cpu for cpu in allowed if cpu not in compute]
    rest.sort(key=lambda cpu: cpu in same_core)
    if mode == "other-core":
        if not rest:
            raise DescriptionError(
                "placement is 'other-core', but this process may use one CPU only", "placement", "use same-core"
            )
        traffic = (rest[0],)
    spare = [cpu for cpu in rest if cpu not in traffic and cpu not in same_core]
    others = tuple(sorted(spare or [cpu for cpu in rest if cpu not in traffic] or rest or allowed))
    return Placed(compute, traffic, others, crowded=not rest)
