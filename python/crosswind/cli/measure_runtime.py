"""What `crosswind measure --runtime` prints beside the fit: what had the CPU, why, and what native threads pay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from crosswind.cli.console import print_table, print_text

if TYPE_CHECKING:
    from crosswind.measurement import Measurement

NOT_KNOWN = "-"


def as_dict(measurement: Measurement, fit: Any) -> dict[str, Any]:
    """Return it as part of the JSON document."""
    from crosswind.measure.runtime.summary import compared, cpu_shares, direction_row

    runtime = measurement.header["runtime"]
    document = {
        **runtime,
        "channels": [direction_row(measurement, fit, i) for i in range(len(measurement.header["channels"]))],
    }
    document["cpu_share_at_top"] = cpu_shares(measurement)
    if measurement.beside:
        document["beside"] = [one.to_dict() for one in compared(measurement)]
    return document


def print_runtime(measurement: Measurement, fit: Any) -> None:
    """Print intercept, rate and slope beside each other, with a sentence for each direction."""
    from crosswind.measure.runtime.summary import beside_sentence, compared, cpu_shares, direction_row

    runtime = measurement.header["runtime"]
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
    print_table(columns, cells, title=f"{title}, pinned as {runtime['pin']}, {runtime['forks']} forks")
    for row in rows:
        if row["why"]:
            print_text(f"{row['direction']}: {row['why']}")
    shares = cpu_shares(measurement)
    if shares:
        text = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
        print_text(f"CPU time at the top: {text}")
    if measurement.beside:
        for one in compared(measurement):
            print_text(beside_sentence(runtime, one))


def _known(value: float | None, form: str) -> str:
    return NOT_KNOWN if value is None or not math.isfinite(value) else format(value, form)
