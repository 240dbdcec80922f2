"""`crosswind plan --streams`: streams of two classes -> threshold and credits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosswind.cli.console import print_json, print_table, tell
from crosswind.cli.outputs import writable
from crosswind.cli.settings import settings_of
from crosswind.errors import DescriptionError


def plan_queues(
    streams: Path, local_slowdown: float | None, settings: list[str], out: Path | None, force: bool, json: bool
) -> None:
    """Print the queues that serve the parallel class best and hold the local class's slowdown.

    Raises
    ------
    DescriptionError
        When no limit is given, or the experiment is none of streams.
    InfeasibleError
        When nothing holds the limit.
    """
    from crosswind.experiment import Experiment
    from crosswind.terminal.progress import progress_bar
    from crosswind.thresholds import plan_streams

    if local_slowdown is None:
        hint = "how much slower may the slowest local stream be than alone? such as --local-slowdown 1.5"
        raise DescriptionError("--streams needs --local-slowdown", "usage", hint)
    writable(out, "streams-plan", inputs=[streams], force=force)
    experiment = Experiment.load(streams).fixed(settings_of(settings))
    with progress_bar() as advance:
        found = plan_streams(experiment, local_slowdown=local_slowdown, progress=advance)
    if out:
        found.save(out)
        tell(f"wrote {out}")
    if json:
        print_json(found.to_dict())
    else:
        _print(found)


def _row(of: dict[str, Any], says: str) -> list[str]:
    credits = of["receive_threshold"]
    named = [of["queue"], str(of["threshold"]), "none" if credits is None else str(credits)]
    return [*named, f"{of['parallel_slowdown']:.3f}", f"{of['local_slowdown']:.3f}", says]


def _print(found: Any) -> None:
    d = found.data
    policy = {"receive_threshold": None, **found.policy}
    chosen = next(one for one in found.tried if all(one[name] == value for name, value in policy.items()))
    fifo = d["fifo"]
    rows = [["fifo", "", "", f"{fifo['parallel_slowdown']:.3f}", f"{fifo['local_slowdown']:.3f}", "one queue"]]
    rows += [_row(one, "" if one["holds"] else "beyond the limit") for one in found.frontier if one is not chosen]
    rows.append(_row(chosen, "take this"))
    columns = [("queue", "left"), ("threshold", "right"), ("local credit", "right"), ("parallel slowdown", "right")]
    columns += [("local slowdown", "right"), ("", "left")]
    seeds = f"{d['seeds']} seed{'' if d['seeds'] == 1 else 's'}"
    title = f"{d['experiment']}: local streams at most {d['local_slowdown_limit']:g} times slower; {seeds}"
    print_table(columns, rows, title=title)
    print_table([("", "left"), ("", "right"), ("", "left")], _promises(d), title="whatever the parallel class sends")
    lines = [
        [f"{name} = {value if isinstance(value, int) else repr(value)}".replace("'", '"')]
        for name, value in found.policy.items()
    ]
    print_table([("", "left")], lines, title="[policy]")


def _promises(d: dict[str, Any]) -> list[list[str]]:
    promise = d["promise"]
    rows = [
        ["a local frame waits for its turn at most", f"{1e3 * promise['longest_wait_s']:.4g} ms", "at an interface"],
        ["local frames have of a link at least", f"{100 * promise['least_share']:.3g} %", "while they wait"],
    ]
    if promise["credit_wait_s"] is not None:
        rows.append(["a local sender waits for credit at most", f"{1e3 * promise['credit_wait_s']:.4g} ms", ""])
    for stream in promise["streams"]:
        most = stream["threshold"]
        limit = f"up to {most}" if most else "none"
        rows.append([f"{stream['name']} holds the limit with a threshold", limit, "alone with the parallel class"])
    return rows
