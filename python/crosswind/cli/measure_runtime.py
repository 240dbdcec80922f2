"""What `crosswind measure --runtime` prints beside the fit: what had the CPU, why, and what native threads pay."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crosswind.cli.answer import Answer, Section

if TYPE_CHECKING:
    from crosswind.measurement import Measurement

NOT_KNOWN = "-"


def as_dict(measurement: Measurement, fit: Any) -> dict[str, object]:
    """Return it as part of the JSON document."""
    from crosswind.measure.runtime.summary import compared, cpu_shares, direction_row

    runtime = measurement.header["runtime"]
    assert runtime is not None
    document: dict[str, object] = {
        **runtime,
        "channels": [direction_row(measurement, fit, i) for i in range(len(measurement.header["channels"]))],
    }
    document["cpu_share_at_top"] = cpu_shares(measurement)
    if measurement.beside:
        document["beside"] = [one.to_dict() for one in compared(measurement)]
    return document


def with_runtime(answer: Answer, measurement: Measurement, fit: Any) -> Answer:
    """Return an answer with intercept, rate and slope beside each other, and a sentence for each direction."""
    from crosswind.measure.runtime.summary import beside_sentence, compared, cpu_shares, direction_row

    runtime = measurement.header["runtime"]
    assert runtime is not None
    columns = [("direction", "left"), ("unpaced MB/s", "right"), ("at MB/s", "right"), ("computing left", "right")]
    columns += [("const", "right"), ("IR s/GB", "right")]
    rows = [direction_row(measurement, fit, i) for i in range(len(measurement.header["channels"]))]
    cells = [
        [
            row["direction"],
            f"{row['unpaced_mb_per_s']:.0f}",
            _known(row["at_mb_per_s"], ".0f"),
            _known(row["computing_left"], ".3f"),
            _known(row["intercept"], ".4f"),
            _known(row["ir_s_per_gb"], ".4f"),
        ]
        for row in rows
    ]
    facts = " ".join(f"{key}={value}" for key, value in runtime["facts"].items())
    title = f"{runtime['name']} {runtime['version']} {facts}".rstrip()
    title = f"{title}, pinned as {runtime['pin']}, {runtime['forks']} forks"
    at = [k for k, (name, _) in enumerate(columns) if name != "const"]
    narrow = Section([columns[k] for k in at], [[row[k] for k in at] for row in cells], title=title)
    notes = [f"{row['direction']}: {row['why']}" for row in rows if row["why"]]
    if shares := cpu_shares(measurement):
        notes.append(
            f"CPU time at the top: {', '.join(f'{name} {100 * share:.1f} %' for name, share in shares.items())}"
        )
    notes += [beside_sentence(runtime, one) for one in (compared(measurement) if measurement.beside else [])]
    whole = Section(columns, cells, title=title)
    return replace(
        answer,
        tables=[*answer.tables, narrow],
        notes=[*answer.notes, *notes],
        wide=[*answer.wide, whole],
    )


def _known(value: float | None, form: str) -> str:
    return NOT_KNOWN if value is None or not math.isfinite(value) else format(value, form)
