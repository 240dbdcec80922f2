"""`crosswind plan queues`: streams of two classes -> threshold and credits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.settings import Settings, settings_of
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.statistics.digits import plain

if TYPE_CHECKING:
    from crosswind.documents.queues_plan import Promise, Tried
    from crosswind.plan.queues import QueuesPlan

EXAMPLES = """
Examples:

    crosswind plan queues streams.toml --local-slowdown 1.5

    crosswind plan queues streams.toml --local-slowdown 2 --set policy.queue=threshold -o queues.json
"""


def queues(
    streams: Annotated[Path, typer.Argument(help="An experiment.toml of kind streams.", metavar="EXPERIMENT.toml")],
    local_slowdown: Annotated[
        float | None,
        typer.Option(
            metavar="TIMES", help="Most that the slowest local stream may take over its time alone (above 1)."
        ),
    ] = None,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the limits found, as JSON.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the queues that serve the parallel class best and hold the local class's slowdown."""
    from crosswind.experiment import Experiment
    from crosswind.plan.queues import plan_queues
    from crosswind.terminal.progress import progress_bar

    if local_slowdown is None:
        hint = "how much slower may the slowest local stream be than alone? such as --local-slowdown 1.5"
        raise DescriptionError("a plan of queues needs --local-slowdown", "usage", hint)
    experiment = Experiment.load(streams).fixed(settings_of(settings or []))
    of = {"experiment": experiment.name, "local_slowdown_limit": local_slowdown}
    writable(out, "queues-plan", inputs=[streams], force=force, of=of)
    with progress_bar() as advance:
        found = plan_queues(experiment, local_slowdown=local_slowdown, progress=advance)
    if out:
        found.save(out)
    show(None if json else _answer(found), wrote=written(out), document=found.to_dict() if json else None)


def _row(of: Tried, says: str) -> list[str]:
    credits = of["receive_threshold"]
    named = [of["queue"], str(of["threshold"]), "none" if credits is None else str(credits)]
    return [*named, f"{of['parallel_slowdown']:.3f}", f"{of['local_slowdown']:.3f}", says]


def _answer(found: QueuesPlan) -> Answer:
    d = found.data
    policy = {"receive_threshold": None, **found.policy}.items()
    chosen = next(one for one in found.tried if policy <= one.items())
    fifo = d["fifo"]
    rows = [["fifo", "", "", f"{fifo['parallel_slowdown']:.3f}", f"{fifo['local_slowdown']:.3f}", "one queue"]]
    rows += [_row(one, "" if one["holds"] else "beyond the limit") for one in found.frontier if one is not chosen]
    rows.append(_row(chosen, "take this"))
    columns = [("queue", "left"), ("threshold", "right"), ("local credit", "right"), ("parallel slowdown", "right")]
    columns += [("local slowdown", "right"), ("", "left")]
    seeds = f"{d['seeds']} seed{'' if d['seeds'] == 1 else 's'}"
    title = f"{d['experiment']}: local streams at most {d['local_slowdown_limit']:g} times slower; {seeds}"
    tried = Section(columns, rows, title=title)
    kept = [at for at, (name, _) in enumerate(columns) if name != "local credit"]
    narrow = Section([columns[at] for at in kept], [[row[at] for at in kept] for row in rows], title=title)
    promises = Section(
        [("", "left"), ("", "right"), ("", "left")], _promises(d["promise"]), title="whatever the parallel class sends"
    )
    lines = [
        [f"{name} = {value if isinstance(value, int) else repr(value)}".replace("'", '"')]
        for name, value in found.policy.items()
    ]
    policy_table = Section([("", "left")], lines, title="[policy]")
    parallel, local = plain(chosen["parallel_slowdown"]), plain(chosen["local_slowdown"])
    first = f"Threshold {chosen['threshold']} ({chosen['queue']}): parallel streams take {parallel} times"
    first += f" as long as alone, not {plain(fifo['parallel_slowdown'])} as with one queue."
    second = f"Local streams take {local} times as long; the limit is {d['local_slowdown_limit']:g}."
    tables = [policy_table, promises]
    return Answer([first, second], [narrow, *tables], wide=[tried, *tables], rest="Credits")


def _promises(promise: Promise) -> list[list[str]]:
    rows = [
        ["a local frame waits for its turn at most", f"{1e3 * promise['longest_wait_s']:.4g} ms", "at an interface"],
        ["local frames have of a link at least", f"{100 * promise['least_share']:.3g} %", "while they wait"],
    ]
    if promise["credit_wait_s"] is not None:
        rows.append(["a local sender waits for credit at most", f"{1e3 * promise['credit_wait_s']:.4g} ms", ""])
    for stream in promise["streams"]:
        most = stream["threshold"]
        limit = f"up to {most}" if most else "none"
        rows.append([f"{stream['name']} holds the limit with a threshold", limit, _beside(stream["beside"])])
    return rows


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("queues", help=help_of("plan queues", EXAMPLES))(queues)


def _beside(others: list[str]) -> str:
    """Return which other local streams the promise to a stream counts."""
    shown = ", ".join(others[:2]) + (f" and {len(others) - 2} more" if len(others) > 2 else "")
    return f"beside {shown}" if others else "the only local stream of its host"
