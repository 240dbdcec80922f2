"""The results of runs, in a few sentences and one table of at most five columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from crosswind.cli.answer import Answer, Section, section
from crosswind.cli.console import number_of
from crosswind.cli.field_tables import MOST_PATHS, NOTE, by_field, is_crowded
from crosswind.cli.flow_answers import flow_answer, has_flows
from crosswind.cli.run_tables import REPEATED, formatted, paths_of, short_names, tables_of
from crosswind.run.drift import STALE, observed_rates, rate_tables
from crosswind.run.ranking import ORDER, ranking
from crosswind.run.results import shown_value
from crosswind.statistics.digits import half_of, plain, with_half

if TYPE_CHECKING:
    from crosswind.documents.shared import NodeFailures
    from crosswind.run.fastest import Fastest
    from crosswind.run.results import ProgramRun, Run, Runs, StreamsRun

PORTS = "policy.ports"
SENDS = {"single": "one send at a time", "multi": "several sends"}
MOST_ACROSS = 4
"""Values of a swept field that stand side by side."""
LOGGP_BYTES = 1_000_000_000
"""Of a packet: no message of a GOAL schedule has more, so each is one packet, as in LogGP."""
NAMED = 4
"""Nodes without a task up to which all are named."""


def answer_of(done: Runs[Any], most: int, by: str | None = None) -> Answer:
    """Return the results of an experiment.

    Parameters
    ----------
    done : Runs
    most : int
        Most rows of a table.
    by : str, optional
        The swept field whose values are ranked; default: the order of service.
    """
    if not len(done):
        return Answer(["No run was finished."])
    answer = _answer(done, most)
    found = ranking(done, by or ORDER) if len(done) > 1 else None
    if found is None or not (by or found.points * found.seeds > 1):
        return answer
    ranks = [section(one, one.caption) for one in found.tables(most)]
    notes = [*answer.notes, *found.notes]
    return replace(answer, tables=[*answer.tables, *ranks], notes=notes, wide=[*answer.wide, *ranks])


def _answer(done: Runs[Any], most: int) -> Answer:
    if done.kind == "program":
        return _programs(done, most)
    if done.kind == "streams":
        return _streams(done, most)
    if has_flows(done):
        return flow_answer(done, most)
    if len(done) == 1:
        return _one_farm(done[0], done, most)
    orders = {run.data["order"] for run in done}
    return _orders(done, most) if len(orders) > 1 and ORDER in paths_of(done) else _points(done, most)


def _one_farm(one: Run, done: Runs[Run], most: int) -> Answer:
    d = one.data
    how = "simulated" if done.on == "sim" else f"by agents, --on {done.on}, work {d['compute']}"
    line = f"{number_of(d['tasks'], 'task')} in {plain(one.makespan_s)} s: {plain(one.throughput_tasks_per_s)} tasks/s"
    line += f", {100 * one.of_bound:.1f} % of the upper bound" if one.of_bound is not None else ""
    lines = [f"{line} ({how})."]
    if one.of_root_only:
        times = 1 / one.of_root_only
        lines.append(
            f"{times:.1f} times as fast as the root alone."
            if times > 1
            else f"The root alone would have been {one.of_root_only:.1f} times as fast."
        )
    if one.failures is not None:
        lines.append(_failed(one.failures, one))
    rows, idle = [], []
    root = next((node["name"] for node in one.nodes if node.get("parent") is None), one.nodes[0]["name"])
    for node in sorted(one.nodes, key=lambda node: -node["tasks"]):
        busy = f"{100 * node['busy_s'] / one.makespan_s:.0f} %" if one.makespan_s else ""
        if node["tasks"]:
            rows.append(
                [f"{node['name']} (root)" if node["name"] == root != "root" else node["name"], str(node["tasks"]), busy]
            )
        else:
            idle.append(node["name"])
    if len(rows) > most:
        left = sum(int(row[1]) for row in rows[most:])
        rows = [*rows[:most], [f"{len(rows) - most} more (--rows, --json)", str(left), ""]]
    if idle:
        shown = idle if len(idle) <= NAMED else [*idle[: NAMED - 1], f"{len(idle) - NAMED + 1} more"]
        rows.append([", ".join(shown), "0", "0 %"])
    tables = [Section([("node", "left"), ("tasks", "right"), ("busy", "right")], rows), *_stale(one, most)]
    return Answer(lines, tables, wide=tables_of(done, most) + _stale(one, most), rest="Seconds and MB by node")


def _failed(failures: NodeFailures, one: Run) -> str:
    """Return the sentence on drawn failures."""
    if not failures["count"]:
        return "No node failed."
    of_time = failures["failed_s"] / one.makespan_s / sum(1 for node in one.nodes if node.get("failures")) * 100
    times, again = number_of(failures["count"], "time"), number_of(failures["tasks_again"], "task")
    were = "was" if failures["tasks_again"] == 1 else "were"
    return f"Nodes failed {times}, {of_time:.1f} % of their time together; {again} {were} done again."


def _stale(one: Run, most: int) -> list[Section]:
    """Return the rates that differ from the platform's, where the run warns of them."""
    if not any(warning["code"] == STALE for warning in one.warnings):
        return []
    [rates] = rate_tables([rate for rate in observed_rates(one.nodes) if rate.stale][:most])
    return [section(rates.part(range(5)))]


def _orders(done: Runs[Run], most: int) -> Answer:
    """Return which order was fastest at how many points, and the share of the upper bound that each reaches."""
    from crosswind.run.fastest import fastest, in_words

    paths = [path for path in paths_of(done) if path != ORDER]
    across = next((path for path in [PORTS, *paths] if path in paths and 2 <= len(_values(done, path)) <= 2), None)
    groups = _values(done, across) if across else [None]
    orders = list(dict.fromkeys(str(run.data["order"]) for run in done))
    lines, of_group = [], []
    for group in groups:
        runs = [run for run in done if across is None or run.params.get(across) == group]
        points: dict[str, dict[str, list[Run]]] = {}
        for run in runs:
            point = str({path: run.params.get(path) for path in paths})
            points.setdefault(point, {}).setdefault(str(run.data["order"]), []).append(run)
        found = [fastest(by_order, exact=done.on == "sim") for by_order in points.values()]
        alone = len(found) == 1 or not all(one.compared for one in found) or all(one.once for one in found)
        single = len(found) == 1 and len(found[0].orders) == 1
        words = in_words(found, orders) if alone else _most_often(found, list(points.values()))
        if single:
            best = next(iter(points.values()))[found[0].orders[0]]
            words += f": {_mean([run.makespan_s for run in best])} s"
        sentence = words if words.startswith("python:") else f"{words[:1].upper()}{words[1:]}"
        lines.append(f"{_group_name(across, group)}: {words}." if across else f"{sentence}.")
        of_group.append({order: _shares([one[order] for one in points.values() if order in one]) for order in orders})
    bounded = all(shares for by_order in of_group for shares in by_order.values())
    names = [_short_name(across, group) for group in groups]
    columns, rows, first = _by_share(orders, of_group, names) if bounded else _by_seconds(orders, done, across, groups)
    title = "% of upper bound" if columns[1][0] != "% of upper bound" else None
    count = number_of(len({str({path: run.params.get(path) for path in paths}) for run in done}), "point")
    what = " x ".join(short_names(paths)) if paths else "orders"
    how = "simulated " if done.on == "sim" else ""
    each = "one" if len(done) == len(orders) else f"{len(done) / len(orders):g}"
    note = f"{len(done)} {how}runs, {f'{what}: {count}' if paths else f'{each} per order'}"
    return Answer(
        lines,
        [Section(columns, rows[:most], title if bounded else None, first)],
        [note],
        wide=tables_of(done, most),
        rest="All points" if paths else "All figures",
    )


def _most_often(found: Sequence[Fastest], points: Sequence[Mapping[str, Sequence[Run]]]) -> str:
    """Return which order was fastest at most points, ties counted for each, and how far it was behind at the others."""
    counts = Counter(order for one in found for order in one.orders)
    best, count = counts.most_common(1)[0]
    behind = [
        fmean(run.makespan_s for run in by_order[best]) / fmean(run.makespan_s for run in by_order[one.orders[0]]) - 1
        for one, by_order in zip(found, points, strict=True)
        if best not in one.orders and best in by_order
    ]
    tied = sum(best in one.orders and len(one.orders) > 1 for one in found)
    words = f"{best} was fastest at {count} of {len(found)} points"
    words += f" (tied at {tied})" if tied else ""
    if not behind:
        return words
    least = f"{plain(100 * max(behind), 2)} % behind"
    return f"{words}, {least} at the other" if len(behind) == 1 else f"{words}, at most {least} at the others"


def _by_share(
    orders: Sequence[str], of_group: Sequence[Mapping[str, list[float]]], names: Sequence[str]
) -> tuple[Any, Any, Any]:
    """Return columns and rows of mean and worst share of the upper bound, the best order first."""
    one_each = all(len(shares) == 1 for by_order in of_group for shares in by_order.values())
    columns = [("order", "left")]
    for name in names:
        columns += (
            [(name or "% of upper bound", "right")]
            if one_each
            else [(f"{name}: mean" if name else "mean", "right"), ("worst", "right")]
        )
    rows = []
    for order in sorted(orders, key=lambda order: -fmean(of_group[0][order])):
        cells = []
        for by_order in of_group:
            shares = by_order[order]
            cells += [f"{100 * fmean(shares):.1f}", *([] if one_each else [f"{100 * min(shares):.1f}"])]
        rows.append([order, *cells])
    return columns, rows, ()


def _by_seconds(
    orders: Sequence[str], done: Runs[Run], across: str | None, groups: Sequence[Any]
) -> tuple[Any, Any, Any]:
    columns = [("order", "left"), *((f"makespan s{f', {group}' if across else ''}", "right") for group in groups)]
    rows = []
    for order in orders:
        means = []
        for group in groups:
            alike = [
                run for run in done if run.data["order"] == order and (not across or run.params.get(across) == group)
            ]
            means.append(plain(fmean(run.makespan_s for run in alike), 4) if alike else "-")
        rows.append([order, *means])
    return columns, rows, ()


def _shares(points: Sequence[Sequence[Run]]) -> list[float]:
    """Return the mean share of the upper bound at each point; empty where a run has no bound."""
    from crosswind.run.results import mean_of_bound

    found = [mean_of_bound(alike) for alike in points]
    return [share for share in found if share is not None] if None not in found else []


def _group_name(path: str | None, value: Any) -> str:
    if path == PORTS:
        name = SENDS.get(str(value), str(value))
        return f"{name[:1].upper()}{name[1:]}"
    return f"{str(path).rsplit('.', 1)[-1]} {shown_value(value)}"


def _short_name(path: str | None, value: Any) -> str:
    if path == PORTS:
        return {"single": "one send", "multi": "several"}.get(str(value), str(value))
    return f"{path.rsplit('.', 1)[-1]}={shown_value(value)}" if path else ""


def _values(done: Runs[Any], path: str | None) -> list[Any]:
    found: list[Any] = []
    for run in done:
        value = run.params.get(str(path))
        if value not in found:
            found.append(value)
    return found


def _points(done: Runs[Run], most: int) -> Answer:
    """Return the fastest and the slowest point, and a row for each."""
    from crosswind.run.results import mean_of_bound

    points = done.by_point()
    paths = sorted(paths_of(done), key=lambda path: -len(_values(done, path)))[:MOST_PATHS]
    paths = [path for path in paths_of(done) if path in paths]
    by_time = sorted(points, key=lambda alike: fmean(run.makespan_s for run in alike))
    how = "simulated" if done.on == "sim" else f"by agents, --on {done.on}"
    if len(points) == 1:
        line = f"Makespan {_mean([run.makespan_s for run in done])} s, {number_of(len(done), 'run')} ({how})."
    else:
        ends = [
            f"{_mean([run.makespan_s for run in alike])} s{_where(alike[0])}" for alike in (by_time[0], by_time[-1])
        ]
        line = f"Makespan {ends[0]} to {ends[1]}, {number_of(len(done), 'run')} ({how})."
    bounded = [share for share in map(mean_of_bound, points) if share is not None]
    columns = [(name, "left") for name in short_names(paths)] + [("makespan s", "right"), ("% of upper bound", "right")]
    rows = [
        [
            *(shown_value(alike[0].params.get(path, "")) for path in paths),
            _mean([run.makespan_s for run in alike]),
            formatted(None if (share := mean_of_bound(alike)) is None else 100 * share, ".1f"),
        ]
        for alike in points[:most]
    ]
    lines = [line]
    if bounded:
        lines.append(f"{100 * min(bounded):.1f} to {100 * max(bounded):.1f} % of the upper bound.")
    if len({*bounded}) < 2 and bounded:
        lines[-1] = f"{100 * bounded[0]:.1f} % of the upper bound."
    if is_crowded(done):
        table = by_field(done, [("makespan s", _makespan, ""), ("% of upper bound", _percent_of_bound, ".1f")])
        return Answer(lines, [table], [NOTE], tables_of(done, most), "All points")
    return Answer(
        lines,
        [Section(columns, rows, first=("makespan s", "% of upper bound"))],
        _notes(points, most),
        tables_of(done, most),
        "All figures",
    )


def _makespan(alike: Sequence[Run]) -> float:
    return fmean(run.makespan_s for run in alike)


def _percent_of_bound(alike: Sequence[Run]) -> float | None:
    from crosswind.run.results import mean_of_bound

    share = mean_of_bound(alike)
    return None if share is None else 100 * share


def _notes(points: Sequence[Sequence[Any]], most: int) -> list[str]:
    notes = [REPEATED] if any(len(alike) > 1 for alike in points) else []
    return notes + ([f"{len(points) - most} more points: --rows, --json"] if len(points) > most else [])


def _where(run: Any) -> str:
    """Return the values of the swept fields of a run, in brackets."""
    paths = [path for path in run.params if path != "seed"]
    shown = [f"{name} {shown_value(run.params[path])}" for name, path in zip(short_names(paths), paths, strict=True)]
    return f" ({', '.join(shown)})" if shown else ""


def _mean(values: Sequence[float]) -> str:
    """Return a mean, with half of its 95 % interval where it shows at four digits.

    Examples
    --------
    >>> _mean([1.5]), _mean([1.0, 2.0, 3.0]), _mean([2.0, 2.0])
    ('1.50', '2 ± 2', '2.00')
    """
    if len(values) == 1:
        return plain(values[0])
    from crosswind.statistics.interval import span

    mean, low, high = span(values)
    half = half_of(mean, (low, high))
    return with_half(mean, half) if half > 5e-4 * abs(mean) else plain(mean, 4 if half > 5e-5 * abs(mean) else 3)


def _programs(done: Runs[ProgramRun], most: int) -> Answer:
    """Return the range of slowdowns, and how they depend on one or two swept fields."""
    points = done.by_point()
    if len(points) == 1 and (recorded := points[0][0].data.get("recorded")):
        return _recorded(done, points[0], recorded, most)
    ranks = ", ".join(dict.fromkeys(f"{one.data['program']} of {one.data['ranks']:,} ranks" for one in done))
    each = max(map(len, points))
    how = "simulated" if done.on == "sim" else f"--on {done.on}"
    if each > 1:
        how += f", {number_of(each, 'run')}{' a point' if len(points) > 1 else ''}"
    by_slowdown = sorted(points, key=lambda alike: fmean(one.slowdown for one in alike))
    ends = [
        f"{_mean([one.slowdown for one in alike])}{_where(alike[0])}" for alike in (by_slowdown[0], by_slowdown[-1])
    ]
    line = f"Slowdown {ends[0]} to {ends[1]}." if len(points) > 1 else f"Slowdown {ends[0]}."
    lines = [line, f"1 is the run time with all nodes in step. {ranks}, {how}."]
    if len(points) == 1:
        whole = fmean(one.makespan_s for one in points[0])
        factor, unit = next(((k, u) for k, u in ((1.0, "s"), (1e3, "ms")) if whole * k >= 1), (1e6, "us"))
        took = _mean([factor * one.makespan_s for one in points[0]])
        dedicated = fmean(one.slowdown_dedicated for one in points[0])
        lines.insert(0, f"The run takes {took} {unit}, {plain(dedicated)} times as long as on a dedicated machine.")
        notes = [*_notes(points, most), *_network_of(done)]
        return Answer(lines, [], notes, tables_of(done, most), "Closed forms, time stalled")
    table = _pivot(done, "slowdown", lambda one: one.slowdown)
    rest = "Run times, slowdown against a dedicated machine"
    if table is None and is_crowded(done):
        table = by_field(done, [("slowdown", lambda alike: fmean(one.slowdown for one in alike), ".4g")])
        return Answer(lines, [table], [NOTE], tables_of(done, most), rest)
    table = table or _list_of(done, points, most)
    return Answer(lines, [table], _notes(points, most), tables_of(done, most), rest)


def _network_of(done: Runs[ProgramRun]) -> list[str]:
    """Return which network a GOAL schedule ran on, where its packets are not those of LogGP: one for each message."""
    if not done.provenance or done[0].data["program"] != "goal":
        return []
    network: Any = done.provenance["experiment"].get("network", "cm5")
    packet = network.get("packet_bytes", 16) if isinstance(network, dict) else {"cm5": 16, "cluster": 4096}.get(network)
    if packet is None or packet >= LOGGP_BYTES:
        return []
    named = network if isinstance(network, str) else "cm5 with the fields that were given"
    return [
        f"Network: {named}, messages in packets of {packet:,} bytes.",
        f"LogGP's one packet for each message: --network packet_bytes={LOGGP_BYTES}",
    ]


def _recorded(done: Runs[ProgramRun], alike: Sequence[ProgramRun], recorded: Mapping[str, Any], most: int) -> Answer:
    """Return the slowdown predicted for a recorded program, or how far its replay explains the recording."""
    first = alike[0]
    undisturbed, by = plain(first.dedicated_s, 4), first.data["disturbance"]
    took, replayed = plain(recorded["recorded_s"], 4), plain(recorded["replayed_s"], 4)
    missing = recorded["replayed_s"] - recorded["recorded_s"]
    explained = f"Replayed {replayed} s of {took} s recorded"
    explained += f"; {plain(abs(missing), 2)} s are not explained." if abs(missing) >= 5e-4 else "."
    if recorded["transfers"] == "network":
        transfers = f"Messages cost what the network says: undisturbed {undisturbed} s."
    else:
        transfers = "Transfers take as long as recorded; --network models them."
    if by is None:
        line = f"{first.data['ranks']:,} ranks take {undisturbed} s undisturbed."
    else:
        slowed, whole = _mean([one.slowdown_dedicated for one in alike]), _mean([one.makespan_s for one in alike])
        line = f"Under {by} the program takes {slowed} times as long: {whole} s instead of {undisturbed} s."
    ranks = f"{first.data['ranks']:,} recorded ranks, {number_of(len(alike), 'simulated run')}"
    lines = [line, explained, transfers, f"{ranks}."]
    return Answer(lines, [], _notes([alike], most), tables_of(done, most), "Closed forms, time stalled")


def _pivot(done: Runs[Any], name: str, value: Any) -> Section | None:
    """Return the means of a figure, one swept field down and another across; None unless two fields fit so."""
    paths = paths_of(done)
    if len(paths) != 2:
        return None
    down, across = sorted(paths, key=lambda path: -len(_values(done, path)))
    columns = _values(done, across)
    if len(columns) > MOST_ACROSS:
        return None
    word = short_names([across])[0]
    heads = [(short_names([down])[0], "left"), *((f"{word}={shown_value(one)}", "right") for one in columns)]
    rows = []
    for row in _values(done, down):
        alike = [
            [value(one) for one in done if one.params.get(down) == row and one.params.get(across) == at]
            for at in columns
        ]
        rows.append([shown_value(row), *(_mean(values) if values else "-" for values in alike)])
    return Section(heads, rows, title=name)


def _list_of(done: Runs[ProgramRun], points: Sequence[Sequence[ProgramRun]], most: int) -> Section:
    paths = sorted(paths_of(done), key=lambda path: -len(_values(done, path)))[:MOST_PATHS]
    paths = [path for path in paths_of(done) if path in paths]
    columns = [(name, "left") for name in short_names(paths)] + [("slowdown", "right"), ("makespan s", "right")]
    rows = [
        [
            *(shown_value(alike[0].params.get(path, "")) for path in paths),
            _mean([one.slowdown for one in alike]),
            _mean([one.makespan_s for one in alike]),
        ]
        for alike in points[:most]
    ]
    return Section(columns, rows, first=("slowdown", "makespan s"))


def _streams(done: Runs[StreamsRun], most: int) -> Answer:
    """Return what two queues change for each stream, against one queue."""
    points = done.by_point()
    paths = sorted(paths_of(done), key=lambda path: -len(_values(done, path)))[:2]
    paths = [path for path in paths_of(done) if path in paths]
    tables = [[one.rows() for one in alike] for alike in points]
    lines = []
    for rank, first in enumerate(tables[0][0]):
        ends = []
        for field in ("slowdown_fifo", "slowdown_queued"):
            found = [fmean(rows[rank][field] for rows in alike) for alike in tables]
            low, high = plain(min(found)), plain(max(found))
            ends.append(low if low == high else f"{low} to {high}")
        what = first["name"] if first["what"] == "job" else f"{first['name']} ({first['class']})"
        lines.append(f"{what} is slowed {ends[0]} times by one queue, {ends[1]} times by two ({_queue(done)}).")
    columns = [(name, "left") for name in short_names(paths)]
    columns += [("stream", "left"), ("one queue", "right"), ("two queues", "right")]
    rows = [
        [
            *(shown_value(runs[0].params.get(path, "")) for path in paths),
            alike[0][rank]["name"],
            plain(fmean(rows[rank]["slowdown_fifo"] for rows in alike)),
            plain(fmean(rows[rank]["slowdown_queued"] for rows in alike)),
        ]
        for runs, alike in zip(points[:most], tables[:most], strict=True)
        for rank in range(len(alike[0]))
    ]
    table = Section(columns, rows, first=("stream", "one queue", "two queues"))
    notes = ["Slowdown: 1 is the time of the stream alone.", *_notes(points, most)]
    return Answer(lines[:5], [table], notes, tables_of(done, most), "Latencies, closed forms")


def _queue(done: Runs[StreamsRun]) -> str:
    return ", ".join(dict.fromkeys(str(one.data["queue"]) for one in done))
