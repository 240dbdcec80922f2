"""The matrix from the simulator's processors (`crates/sim`), with a scheduler of either kind."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.overlap.asked import Asked, Scheduler
from crosswind.overlap.result import SCHEMA_VERSION, TIMES, Overlap

SCHEDULERS: tuple[Scheduler, ...] = ("decay", "fair")


def simulate(asked: Asked, scheduler: Scheduler, cpus: int | None, network: Mapping[str, Any] | None) -> Overlap:
    """Return the matrix of a machine with so many processors (default: as many as may be used here).

    Raises
    ------
    DescriptionError
        When a setting is out of its range.
    """
    if scheduler not in SCHEDULERS:
        raise DescriptionError(f"scheduler is {scheduler!r}; it must be one of {', '.join(SCHEDULERS)}", "argument")
    processors = cpus or len(os.sched_getaffinity(0))
    question: dict[str, Any] = {
        "scheduler": scheduler,
        "cpus": processors,
        "burners": asked.burners,
        "burn_s": asked.burn_s,
        "cells": [key._asdict() for key in asked.cell_keys()],
    }
    if network is not None:
        question["network"] = dict(network)
    answer = json.loads(_core.simulate_overlap(json.dumps(question)))
    cells = [
        {**key._asdict(), **{name: cell[name] for name in TIMES}}
        for key, cell in zip(asked.cell_keys(), answer["cells"], strict=True)
    ]
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "overlap",
        "on": "sim",
        "cpus": processors,
        "burners": asked.burners,
        "asked_burn_s": asked.burn_s,
        "seed": asked.seed,
        "scheduler": scheduler,
        "network": answer.get("network", question.get("network")),
        "warnings": answer.get("warnings", []),
    }
    return Overlap.judged({name: value for name, value in document.items() if value is not None}, cells)
