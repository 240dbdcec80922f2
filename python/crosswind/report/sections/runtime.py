"""The part of a measurement's section about its runtime: rates, causes, and what native threads pay for the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.measure.runtime.summary import beside_sentence, compared, cpu_shares, direction_row
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit
from crosswind.report.sections.section import Term
from crosswind.report.words import number, percent
from crosswind.tables import Column, Table

RUNTIME = (
    Term(
        "computing-left",
        "computing left",
        "What is left of the compute rate at the highest paced rate. Some runtimes stop computing while data moves, "
        "others move none while they compute.",
    ),
    Term(
        "runtime-cpu",
        "CPU time by cause",
        "Of the runtime's process, in the blocks at the highest rate: the task, the threads that send and receive, "
        "threads that carry virtual ones, the compiler, the collector of garbage.",
    ),
)


@dataclass(frozen=True)
class RuntimePart:
    """What a runtime adds to a measurement."""

    title: str
    sentences: Sequence[str]
    directions: Table
    causes: Table | None


def runtime_part(measurement: Measurement, fit: Fit | None) -> RuntimePart:
    """Prepare the part of a measurement whose header has a `runtime`."""
    runtime, channels = measurement.header["runtime"], measurement.header["channels"]
    assert runtime is not None
    rows = [direction_row(measurement, fit, index) for index in range(len(channels))]
    columns = [
        Column("direction", numeric=False),
        Column("unpaced", "MB/s"),
        Column("at", "MB/s"),
        Column("computing left", "%", "computing-left"),
        Column("const", "", "intercept"),
        Column("IR", "s/GB", "ir"),
    ]
    cells = [
        [
            row["direction"],
            number(row["unpaced_mb_per_s"]),
            number(row["at_mb_per_s"]),
            percent(row["computing_left"]),
            number(row["intercept"]),
            number(row["ir_s_per_gb"]),
        ]
        for row in rows
    ]
    causes = [[name, percent(share)] for name, share in cpu_shares(measurement).items()]
    facts = " ".join(f"{key}={value}" for key, value in runtime["facts"].items())
    sentences = [f"{row['direction']}: {row['why']}." for row in rows if row["why"]]
    return RuntimePart(
        title=f"{runtime['name']} {runtime['version']} {facts}".rstrip(),
        sentences=[*(f"{beside_sentence(runtime, one)}." for one in compared(measurement)), *sentences],
        directions=Table(f"Pinned as {runtime['pin']}, {runtime['forks']} forks", columns, cells),
        causes=Table(
            "CPU time at the highest rate",
            [Column("cause", numeric=False, term="runtime-cpu"), Column("of the process", "%")],
            causes,
        )
        if causes
        else None,
    )
