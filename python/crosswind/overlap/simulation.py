"""The matrix from the simulator's processors (`crates/sim`), with a scheduler of either kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crosswind import _core
from crosswind.documents import Document
from crosswind.errors import DescriptionError
from crosswind.overlap.options import Options, Scheduler
from crosswind.overlap.result import SCHEMA_VERSION, TIMES, Overlap

SCHEDULERS: tuple[Scheduler, ...] = ("decay", "fair")


def simulate(asked: Options, scheduler: Scheduler, cpus: int, model: Mapping[str, Any] | None = None) -> Overlap:
    """Return the matrix of nodes with `cpus` processors each; `model`: constants, `nodes`, `network.*`, `costs.*`.

    Raises
    ------
    DescriptionError
        When a setting is out of its range.
    """
    if scheduler not in SCHEDULERS:
        raise DescriptionError(f"scheduler is {scheduler!r}; it must be one of {', '.join(SCHEDULERS)}", "argument")
    question: Document = {
        "scheduler": scheduler,
        "cpus": cpus,
        "burners": asked.burners,
        "burn_s": asked.burn_s,
        "cells": [key._asdict() for key in asked.cell_keys()],
    }
    for path, value in (model or {}).items():
        part, _, field = path.partition(".")
        if path == "nodes":
            question["nodes"] = value
        elif part in ("network", "costs") and field:
            question.setdefault(part, {})[field] = value
        else:
            message = f"{path} is no constant of the model; there are nodes, network.* and costs.*"
            raise DescriptionError(message, "argument", "such as network.mb_per_s")
    answer = json.loads(_core.simulate_overlap(json.dumps(question)))
    cells = [
        {**key._asdict(), **{name: cell[name] for name in TIMES}}
        for key, cell in zip(asked.cell_keys(), answer["cells"], strict=True)
    ]
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "overlap",
        "on": "sim",
        "cpus": cpus,
        "burners": asked.burners,
        "asked_burn_s": asked.burn_s,
        "seed": asked.seed,
        "scheduler": scheduler,
        "spin_s": answer["spin_s"],
        "network": answer["network"],
        "costs": answer["costs"],
        "warnings": [],
    }
    return Overlap.judged(document, cells)
