"""Measurements that a runtime might have made, beside our own threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import synthetic

RUNTIME = {
    "name": "java",
    "version": "25.0.2",
    "command": ["java"],
    "facts": {"io": "stream"},
    "pin": "process",
    "forks": 4,
    "split": True,
    "sockets_set": True,
    "own_work": False,
}


def by_runtime(found, forks=4):
    """The same as if a runtime had made it: in forks, with some CPU time of its own."""
    samples = found.samples
    cycle = samples["cycle"].to_numpy()
    most = cycle.max() + 1
    fork = np.where(cycle < 0, 0, cycle * forks // most).astype(np.int32)
    part = 0.1 * samples["compute_cpu_s"].to_numpy()
    samples = samples.set_column(
        samples.schema.get_field_index("compute_cpu_s"),
        "compute_cpu_s",
        pa.array(samples["compute_cpu_s"].to_numpy() - part),
    )
    samples = samples.append_column("fork", pa.array(fork)).append_column("runtime_cpu_s", pa.array(part))
    for cause, share in (("carriers", 0.1), ("jit", 0.2), ("gc", 0.3)):
        samples = samples.append_column(f"{cause}_cpu_s", pa.array(share * part))
    return replace(found, samples=samples, header={**found.header, "runtime": {**RUNTIME, "forks": forks}})


def pair(send=0.0002):
    native = synthetic.measurement(seed=1)
    runtime = by_runtime(synthetic.measurement(ir_send=send, seed=2))
    same = {name: native.header[name] for name in ("started", "channels")}
    return replace(runtime, header={**runtime.header, **same}), native
