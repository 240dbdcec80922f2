"""One point of an experiment of kind program for real: its ranks as processes of this machine, over TCP.

The ranks are those that the simulator drives, and so is the window. What computing is, `execution.compute` says:
*emulated* ranks wait as long as they would compute and keep to the disturbance by themselves, so that more ranks than
CPUs can be tried; *burning* ones keep CPUs busy, and the disturbance is injected (`crosswind.inject`). Messages cost
what they cost on this machine, whatever the experiment's network says, but for the size of a packet.

`python -m crosswind.run.ranks CONFIG RESULT` runs once from a file into a file: what an injection is given as command.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind import _core, errors
from crosswind.errors import AgentLost, CrosswindError, Notice, warning
from crosswind.experiment import ProgramPoint
from crosswind.run.rank_processes import RankProcesses
from crosswind.run.results import ProgramRun
from crosswind.run.spool import temporary_place

if TYPE_CHECKING:
    from crosswind.documents.program_runs import ProgramRun as Entry

_LOOK_S = 0.1


@dataclass(frozen=True)
class RankLimits:
    """When a live program is given up, s."""

    start_s: float = 30.0
    """Time after which ranks that have not connected are lost, s."""
    silence_s: float = 30.0
    """Time without a report on whether it moves after which a rank is lost, s; longer than any interval injected."""
    limit_s: float | None = None
    """The whole run; None: never."""


class RanksHere:
    """Runs points one after the other; remembers what each program takes undisturbed, which many points share."""

    def __init__(self, limits: RankLimits | None = None) -> None:
        self._limits = limits or RankLimits()
        self._dedicated: dict[str, float] = {}

    def __call__(self, point: ProgramPoint) -> ProgramRun:
        """Run one point, and first the same undisturbed where something disturbs it."""
        if point.recording is not None:
            message = "a recorded program runs in virtual time; a recording holds no code that real ranks could run"
            raise errors.DescriptionError(message, "argument", "leave out --on local, or start the program itself")
        dedicated_s = None
        if point.disturbance is not None:
            alone = _alone(point)
            key = alone.json
            if key not in self._dedicated:
                self._dedicated[key] = float(run_once(alone, None, self._limits)["makespan_s"])
            dedicated_s = self._dedicated[key]
        burns = point.description["execution"]["compute"] == "burn"
        perform = _injected if burns and point.disturbance is not None else run_once
        entry = perform(point, dedicated_s, self._limits)
        entry["warnings"] = [*entry["warnings"], *_warnings(entry["ranks"], burns)]
        entry["params"] = point.params
        return ProgramRun(entry)


def run_once(
    point: ProgramPoint, dedicated_s: float | None, limits: RankLimits, start_file: Path | None = None
) -> Entry:
    """Run a point's ranks as processes, once.

    Parameters
    ----------
    point : ProgramPoint
        What to run.
    dedicated_s : float or None
        What it took undisturbed, s; None: this run is undisturbed.
    limits : RankLimits
        When it is given up.
    start_file : Path or None
        Made just before the ranks begin: when that is, in ns of the monotonic clock.

    Returns
    -------
    dict
        Its entry in `runs.json`, `params` and closed forms left out.

    Raises
    ------
    AgentLost
        When a rank is lost, or the time is over.
    InfeasibleError
        When the program is stuck: no rank can continue.
    CrosswindError
        When the program's result is not that of a plain computation.
    """
    config = {
        "about": {"point": point.json, "goal": point.goal},
        "disturbance": json.dumps(point.disturbance.to_dict()) if point.disturbance else None,
        "log": None,
        "limits": vars(limits),
        "start_file": str(start_file) if start_file else None,
    }
    token = secrets.token_hex(32)
    processes = RankProcesses(token)
    config["log"] = str(processes.logs / "conductor.log")
    over = False
    try:
        conductor = _core.Conductor(json.dumps(config), token)
        conductor.start()
        processes.start(conductor.ranks, conductor.address)
        try:
            while not conductor.wait(_LOOK_S):
                if (why := processes.fallen()) is not None:
                    conductor.fail(why)
        except AgentLost as error:
            hint = f"the logs are in {processes.logs}"
            raise AgentLost(str(error), error.code, hint) from None
        finally:
            conductor.interrupt()
        over = True
        entry: Entry = json.loads(conductor.entry(dedicated_s))
        return entry
    finally:
        processes.end(keep_logs=not over)


def _alone(point: ProgramPoint) -> ProgramPoint:
    description = {name: value for name, value in point.description.items() if name != "disturbance"}
    return replace(point, description=description, disturbance=None, params={}, number=0)


def _warnings(ranks: int, burns: bool) -> list[Notice]:
    cpus = len(os.sched_getaffinity(0))
    if burns and ranks > cpus:
        message = f"{ranks} ranks compute on {cpus} CPUs: they take each other's time"
        return [warning("ranks-share-cpus", message, 'fewer ranks, or execution.compute = "emulated"')]
    return []


def _injected(point: ProgramPoint, dedicated_s: float | None, limits: RankLimits) -> Entry:
    """Run once as a command into which the disturbance is injected."""
    from crosswind.inject import inject

    assert point.disturbance is not None  # nothing is injected otherwise
    with tempfile.TemporaryDirectory(prefix="crosswind-injected-", dir=temporary_place()) as directory:
        place = Path(directory)
        config, result, file = place / "run.json", place / "result.json", place / "disturbance.toml"
        # The launcher, the ranks' own start and their meeting are not the program: time 0 is when that begins.
        start_file = place / "started"
        asked = {"dedicated_s": dedicated_s, "limits": vars(limits), "start_file": str(start_file)}
        config.write_text(json.dumps({"point": _told(point), **asked}))
        file.write_text(point.disturbance.to_toml(), encoding="utf-8")
        injected = inject(
            file,
            [sys.executable, "-m", "crosswind.run.ranks", str(config), str(result)],
            ranks=point.description["workload"].get("ranks"),
            start_file=start_file,
            seed=point.seed,
            stdout_to_stderr=True,
        )
        if injected.summary["ended"] == "asked":
            raise KeyboardInterrupt
        if not result.exists():
            raise AgentLost(f"the ranks ended without a result: {injected.summary['ended']}", "agents-lost")
        told = json.loads(result.read_text())
    if "error" in told:
        failed = told["error"]
        raise getattr(errors, failed["class"])(failed["message"], failed["code"], failed["hint"])
    entry: Entry = told["entry"]
    return {**entry, "warnings": [*entry["warnings"], *injected.warnings]}


def _told(point: ProgramPoint) -> dict[str, object]:
    disturbance = point.disturbance.to_dict() if point.disturbance else None
    return {"description": point.description, "disturbance": disturbance, "goal": point.goal}


def _heard(told: Mapping[str, Any]) -> ProgramPoint:
    from crosswind.disturbance import Disturbance

    disturbance = Disturbance.from_dict(told["disturbance"]) if told["disturbance"] else None
    return ProgramPoint(0, {}, told["description"], disturbance, told["goal"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run once from a file into a file; errors go into the file too."""
    config, result = (Path(argument) for argument in arguments or sys.argv[1:3])
    asked = json.loads(config.read_text())
    told: dict[str, Any]
    try:
        limits, start_file = RankLimits(**asked["limits"]), Path(asked["start_file"])
        told = {"entry": run_once(_heard(asked["point"]), asked["dedicated_s"], limits, start_file)}
    except CrosswindError as error:
        told = {
            "error": {
                "class": type(error).__name__,
                "message": str(error),
                "code": error.code,
                "hint": error.hint,
            }
        }
    part = result.with_suffix(".part")
    part.write_text(json.dumps(told))
    part.replace(result)
    return 1 if "error" in told else 0


if __name__ == "__main__":
    sys.exit(main())
