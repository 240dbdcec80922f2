"""The tree when the user names none: this machine, a root that hands out and one node per CPU that computes."""

from __future__ import annotations

from crosswind.documents import Document
from crosswind.host.cgroup import usable_cpus
from crosswind.platform import Platform

LINK_MB_PER_S = 1000.0  # about what one process hands to another over loopback; only the order of service asks for it


def here(nodes: int | None = None) -> Platform:
    """Return this machine as a platform.

    Parameters
    ----------
    nodes : int, optional
        Nodes that compute, at least 1; default: one per CPU that this process may use, as many as a CPU
        quota allows.

    Returns
    -------
    Platform
        The root `here` holds the input and computes nothing, so that it always has time to hand out; `cpu0`, `cpu1`,
        ... compute at equal rates.

    Examples
    --------
    >>> [node["name"] for node in here(2).nodes]
    ['here', 'cpu0', 'cpu1']
    """
    count = nodes if nodes is not None else usable_cpus()
    root: Document = {"name": "here", "compute_per_s": 0.0}
    link = {"parent": "here", "compute_per_s": 1.0, "receive_limit_mb_per_s": LINK_MB_PER_S}
    leaves = [{"name": f"cpu{number}", **link} for number in range(count)]
    return Platform.from_dict({"schema_version": 1, "name": "this machine", "node": [root, *leaves]})


def point_of(
    name: str, tasks: int, task_size_mb: float, order: str, buffer_tasks: int | None, seed: int = 1
) -> Document:
    """Return the policy's assumptions on a user's tasks, whose work is unknown: one work unit each."""
    return {
        "schema_version": 1,
        "name": name,
        "platform": "",
        "seed": seed,
        "repetitions": 1,
        "workload": {
            "kind": "farm",
            "tasks": max(tasks, 1),
            "task_size_mb": max(task_size_mb, 1e-6),
            "task_work": 1.0,
            "result_size_mb": 0.0,
        },
        "policy": {
            "order": order,
            # Little is known of a user's tasks and links beforehand: the order follows what sends show.
            "adapt": order != "arrival",
            "chunk_kib": 512,
            **({"buffer_tasks": buffer_tasks} if buffer_tasks is not None else {}),
        },
        "execution": {},
    }
