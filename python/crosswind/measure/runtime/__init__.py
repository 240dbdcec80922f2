"""The runtimes that people use, as probes: how each is found and started, and what it takes.

| file | question |
|---|---|
| `spec` | which runtime, with which options, does `--runtime TEXT` mean? |
| `java`, `python`, `go`, `node` | how is the one at hand found, built and started? |
| `warm_up` | has it become quiet? |
| `conformance` | does a probe keep to the protocol? |
| `probes/` | the probes themselves, in their languages |

Any other command is a probe of its own (docs/reference/probe-protocol.md).
"""

from __future__ import annotations

from crosswind.measure.runtime.conformance import check_probe
from crosswind.measure.runtime.spec import RUNTIMES, Launch, Spec, launched, parse_runtime

__all__ = ["RUNTIMES", "Launch", "Spec", "check_probe", "launched", "parse_runtime"]
