"""All that is known of runs, as tables: what `--wide` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from crosswind.cli.answer import Section, section
from crosswind.cli.console import number_of
from crosswind.plan import BOUND
from crosswind.run.results import shown_value

if TYPE_CHECKING:
    from crosswind.run.results import ProgramRun, Run, Runs, StreamsRun


REPEATED = "±: 95 % confidence interval of the mean over the repetitions"


def tables_of(done: Runs[Any], most: int) -> list[Section]:
    """Return the runs of an experiment, at most `most` points or nodes of them."""
    if done.kind == "program":
        return [_programs(done, most)]
    if done.kind == "streams":
        return [_streams(done, most)]
    return [_one_farm(done[0], done, most)] if len(done) == 1 else [_farm(done, most)]


def _programs(done: Runs[ProgramRun], most: int) -> Section:
    points = done.by_point()
    paths = paths_of(done)
    bounds = list(dict.fromkeys(name for one in done for name in one.bounds))
    names = short_names(paths)
    columns = [(name, "left") for name in names]
    columns += [("runs", "right"), ("makespan s", "right"), ("dedicated s", "right"), ("slowdown", "right")]
    columns += [("of dedicated", "right"), ("stalled", "right")]
    columns += [(f"form: {name}", "right") for name in bounds]
    rows = []
    for alike in points[:most]:
        first, slowdowns = alike[0], [one.slowdown for one in alike]
        whole = fmean(one.makespan_s for one in alike)
        stalled = fmean(one.data["stalled_s"] for one in alike) / (first.data["ranks"] * whole) if whole else 0.0
        rows.append(
            [
                *(shown_value(first.params.get(path, "")) for path in paths),
                str(len(alike)),
                _interval([one.makespan_s for one in alike], ".6g"),
                f"{fmean(one.dedicated_s for one in alike):.6g}",
                _interval(slowdowns, ".4g"),
                f"{fmean(one.slowdown_dedicated for one in alike):.4g}",
                f"{stalled:.1%}",
                *(_mean_bound(alike, name) for name in bounds),
            ]
        )
    programs = ", ".join(dict.fromkeys(f"{one.data['program']} of {one.data['ranks']:,} ranks" for one in done))
    kept = ("slowdown", *(name for name, _ in reversed(columns[: len(paths)])), "makespan s", "of dedicated")
    kept += ("dedicated s", *(f"form: {name}" for name in bounds), "stalled", "runs")
    title = f"{done.experiment}, on {done.on}: {programs}, {len(done)} runs{_rest(len(points) - most)}"
    return Section(columns, rows, title, kept)


def _streams(done: Runs[StreamsRun], most: int) -> Section:
    points = done.by_point()
    paths = paths_of(done)
    columns = [(path.removeprefix("workload.").removeprefix("policy."), "left") for path in paths]
    columns += [("stream", "left"), ("class", "left"), ("runs", "right"), ("alone s", "right"), ("one queue", "right")]
    columns += [("form", "right"), ("two queues", "right"), ("of one", "right")]
    columns += [("p99 alone ms", "right"), ("one", "right"), ("two", "right")]
    rows = []
    for alike in points[:most]:
        tables = [one.rows() for one in alike]
        for rank in range(len(tables[0])):
            same = [table[rank] for table in tables]
            first, mean = same[0], {name: mean_of(row[name] for row in same) for name in _STREAM_NUMBERS}
            rows.append(
                [
                    *(shown_value(alike[0].params.get(path, "")) for path in paths),
                    first["name"],
                    "job" if first["what"] == "job" else first["class"],
                    str(len(alike)),
                    f"{mean['alone_s']:.4g}",
                    f"{mean['slowdown_fifo']:.4g}",
                    formatted(mean["form_fifo"], ".4g"),
                    f"{mean['slowdown_queued']:.4g}",
                    f"{mean['slowdown_queued'] / mean['slowdown_fifo']:.1%}",
                    *(formatted(_scaled(mean[f"latency_{how}_p99_s"]), ".4g") for how in ("alone", "fifo", "queued")),
                ]
            )
    queues = ", ".join(dict.fromkeys(str(one.data["queue"]) for one in done))
    hosts = ", ".join(dict.fromkeys(f"{one.data['hosts']} hosts" for one in done))
    kept = ("stream", "one queue", "two queues", *(name for name, _ in reversed(columns[: len(paths)])))
    kept += ("of one", "form", "alone s", "class", "runs")
    title = f"{done.experiment}, on {done.on}: {hosts}, queue {queues}, {len(done)} runs{_rest(len(points) - most)}"
    return Section(columns, rows, title, kept)


_STREAM_NUMBERS: tuple[str, ...] = ("alone_s", "slowdown_fifo", "slowdown_queued", "form_fifo")
_STREAM_NUMBERS += ("latency_alone_p99_s", "latency_fifo_p99_s", "latency_queued_p99_s")


def mean_of(values: Iterable[float | None]) -> Any:
    """Return the mean of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _scaled(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds


def _mean_bound(alike: Sequence[ProgramRun], name: str) -> str:
    found = [one.bounds[name] for one in alike if name in one.bounds]
    return f"{fmean(found):.4g}" if found else ""


def _farm(done: Runs[Run], most: int) -> Section:
    from crosswind.run.results import mean_of_bound

    points = done.by_point()
    paths = paths_of(done)
    columns = [(_without_section(path), "left") for path in paths]
    columns += [("runs", "right"), ("makespan s", "right"), ("tasks/s", "right"), ("bound", "right")]
    columns += [("of bound", "right"), ("of root alone", "right"), ("events", "right")]
    rows = [
        [
            *(shown_value(alike[0].params.get(path, "")) for path in paths),
            str(len(alike)),
            _interval([one.makespan_s for one in alike], ".6g"),
            _interval([one.throughput_tasks_per_s for one in alike], ".6g"),
            formatted(mean_of(one.bound_tasks_per_s for one in alike), ".6g"),
            formatted(mean_of_bound(alike), ".1%"),
            formatted(mean_of(one.of_root_only for one in alike), ".4f"),
            str(sum(len(one.events) for one in alike) or ""),
        ]
        for alike in points[:most]
    ]
    first = ("makespan s", "of bound", *(name for name, _ in reversed(columns[: len(paths)])))
    first += ("of root alone", "tasks/s", "bound", "runs", "events")
    title = f"{done.experiment}, on {done.on}: {number_of(len(done), 'run')}{_rest(len(points) - most)}"
    return Section(columns, rows, title, first)


def paths_of(done: Runs[Any]) -> list[str]:
    """Return what the points differ in: dotted paths, without the seed."""
    return list(dict.fromkeys(path for one in done for path in one.params if path != "seed"))


def short_names(paths: Sequence[str]) -> list[str]:
    """Return the last word of each path where these differ, otherwise what follows the first dot.

    Examples
    --------
    >>> short_names(["disturbance.source[0].quantum_s", "policy.window"]), short_names(["a.b.mean", "a.c.mean"])
    (['quantum_s', 'window'], ['b.mean', 'c.mean'])
    >>> short_names(["node[10.0.0.2].compute_per_s", "node[r].compute_per_s"])
    ['10.0.0.2.compute_per_s', 'r.compute_per_s']
    """
    last = [path.rsplit(".", 1)[-1] for path in paths]
    return last if len(set(last)) == len(last) else [_without_section(path) for path in paths]


def _without_section(path: str) -> str:
    """Return a path without the section that it begins with; of a node or a change, with its name or place."""
    if path.startswith(("node[", "change[", "failure[")):
        name, _, field = path.partition("[")[2].rpartition("].")
        return f"{name}.{field}"
    return path.split(".", 1)[-1]


def _rest(more: int) -> str:
    return f"; {number_of(more, 'more point')}: --rows, --json" if more > 0 else ""


def _interval(values: Sequence[float], form: str) -> str:
    """Return a mean, and half of its 95 % interval where there are several values that differ.

    Examples
    --------
    >>> _interval([1.5], ".6g"), _interval([1.0, 2.0, 3.0], ".6g"), _interval([2.0, 2.0], ".6g")
    ('1.5', '2 ± 2.5', '2 ± 0')
    """
    if len(values) == 1:
        return format(values[0], form)
    from crosswind.blame.shares import ROUNDING
    from crosswind.statistics.interval import span

    mean, _, high = span(values)
    half = high - mean
    return f"{format(mean, form)} ± {half if half > ROUNDING * abs(mean) else 0.0:.2g}"


def _one_farm(one: Run, done: Runs[Run], most: int) -> Section:
    [nodes] = one.tables(most)
    d = one.data
    title = f"{done.experiment}, on {done.on}: {d['order']}, {d['ports']} port, {d['compute']}, {one.makespan_s:.6g} s"
    title += f", {one.throughput_tasks_per_s:.6g} tasks/s"
    if one.bound_tasks_per_s:
        title += f", {BOUND[d['ports']]} {one.bound_tasks_per_s:.6g} tasks/s"
    return section(nodes, "; ".join(filter(None, (title, nodes.note))))


def formatted(value: float | None, form: str) -> str:
    """Return a number, or nothing where it is not known."""
    return format(value, form) if value is not None else ""
