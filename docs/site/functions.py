"""The reference of the Python API, written from the doc strings of what `crosswind` offers."""

from __future__ import annotations

import importlib

GROUPS = {
    "Measure": ["doctor", "measure", "Measurement", "Sweep", "run_sweep", "serve", "overlap", "Overlap"],
    "Fit and plan": [
        "fit",
        "Fit",
        "Platform",
        "plan",
        "Plan",
        "build_tree",
        "BuiltTree",
        "Links",
        "tolerance",
        "Tolerance",
    ],
    "Run": ["map", "Farm", "Placing", "run", "Experiment", "Run", "Runs", "ProgramRun", "StreamsRun", "Trace"],
    "Disturbances": ["record", "Noise", "inject", "Injected", "Disturbance", "blame", "Blame"],
    "Cost and compare": ["cost", "Cost", "compare", "Comparison"],
    "Report": ["report"],
}


def functions_page() -> str:
    """Return the page: each public name once, those that no group names under "Others"."""
    crosswind = importlib.import_module("crosswind")
    homes = {name: home for home, names in crosswind._HOMES.items() for name in names}
    public = [name for name in homes if not name.startswith("_")]
    groups = {head: [name for name in names if name in public] for head, names in GROUPS.items()}
    named = {name for names in groups.values() for name in names}
    errors = [name for name in public if name.endswith(("Error", "Lost"))]
    groups["Others"] = sorted(set(public) - named - set(errors))
    groups["Errors"] = errors
    parts = ["# Python", "Written from the doc strings: everything that `import crosswind` offers."]
    for head, names in groups.items():
        if names:
            parts.append(f"## {head}")
            parts += [f"::: crosswind.{homes[name]}.{name}" for name in names]
    return "\n\n".join(parts) + "\n"
