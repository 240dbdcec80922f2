"""What happened along the run: the time lines of a measurement, with what each shows."""

from __future__ import annotations

from crosswind.measurement import Measurement
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.figures.timeline import channel_names, compute_timeline, cpu_timeline, transfer_timeline

COMPUTE = (
    "Grey dots are without traffic: level, they say that the host was steady; a slope is drift, which the shuffled "
    "order cancels. Coloured dots lie lower by what traffic costs. Rates are on wall time, where foreign load shows."
)
TRANSFER = (
    "The rates that were reached, at the levels of the design. Levels that scatter or sag were not reached as asked."
)
CPU = (
    "Shares as the kernel accounts them for the computing CPU (the mean over the allowed ones where threads are free); "
    "the rest to 100 % was idle. Foreign load and stolen time disturb a measurement: little of both is a quiet "
    "host."
)


def timelines(measurement: Measurement, prefix: str) -> list[tuple[Figure, str]]:
    """Return the figures along the run and their explanations; none for a measurement without samples."""
    if not measurement.samples.num_rows:
        return []
    kinds = ", ".join(channel_names(measurement.header))
    compute = Figure(
        identifier(prefix, "compute-timeline"),
        "Compute rate along the run",
        f"Compute rate over time in parts of the idle rate, without traffic and for {kinds}.",
        compute_timeline(measurement),
    )
    transfer = Figure(
        identifier(prefix, "transfer-timeline"),
        "Transfer rates along the run",
        f"Transfer rate over time for {kinds}.",
        transfer_timeline(measurement),
    )
    cpu = Figure(
        identifier(prefix, "cpu-timeline"),
        "Where the CPU's time went",
        "Stacked shares of the computing CPU over time: user, system, interrupts, stolen; foreign load as a line.",
        cpu_timeline(measurement),
    )
    return [(compute, COMPUTE), (transfer, TRANSFER), (cpu, CPU)]
