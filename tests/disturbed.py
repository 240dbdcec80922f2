"""What tests of programs under disturbances report on: runs, a blame and a study, known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from reported import BREAKS_ATTRIBUTE, BREAKS_SCRIPT, IS_A_TEMPLATE

from crosswind.blame.command import CommandBlame
from crosswind.blame.interleaving import Turns
from crosswind.blame.result import Blame
from crosswind.blame.shares import coalitions
from crosswind.disturbance import Disturbance
from crosswind.inject import Injected
from crosswind.lab.papers.scheduling_and_communication import figures, variants
from crosswind.lab.papers.scheduling_and_communication.calibration import QUICK, Calibration
from crosswind.lab.papers.scheduling_and_communication.figures import Figure, Rows
from crosswind.lab.papers.scheduling_and_communication.study import Study, _study
from crosswind.run.results import ProgramRun, Runs

HALF = """
schema_version = 1
name = "half"
[[source]]
kind = "coscheduled"
quantum_s = 0.02
jobs = 2
"""
"""Half of the processor is taken away, in quanta of 20 ms."""


def program_run(params: dict[str, Any], *, seed: int = 1, makespan_s: float = 3.0, **other: Any) -> dict[str, Any]:
    """Return an entry of a program's `runs.json`: 1 s dedicated, 2 s coscheduled."""
    return {
        "params": params,
        "seed": seed,
        "program": "em3d",
        "ranks": 64,
        "disturbance": "local",
        "compute": "simulated",
        "makespan_s": makespan_s,
        "dedicated_s": 1.0,
        "coscheduled_s": 2.0,
        "slowdown": makespan_s / 2.0,
        "slowdown_dedicated": makespan_s,
        "messages": 1_000_000,
        "packets": 1_500_000,
        "stalled_s": 6.4,
        "bounds": {"barrier": 0.9 * makespan_s / 2.0},
        "busy_s": {"min": 0.9, "mean": 0.95, "max": 1.0},
        "away_s": {"min": 0.9, "mean": 1.0, "max": 1.1},
        "warnings": [],
    } | other


def program_runs(on: str = "sim", *, slower: float = 1.0, seeds: int = 3, hostile: bool = False) -> Runs[ProgramRun]:
    """Return runs over two quanta and four windows; seeds differ by a percent each."""
    runs = []
    for quantum in (0.1, 0.5):
        for window in (1, 2, 8, 64):
            for seed in range(seeds):
                params: dict[str, Any] = {"disturbance.source[0].quantum_s": quantum, "policy.window_packets": window}
                makespan = 30 * quantum * slower * (1 + 0.01 * seed) * (1 + 1 / window)
                entry = program_run(params, seed=seed + 1, makespan_s=makespan)
                if hostile:
                    params["disturbance"] = BREAKS_ATTRIBUTE
                    entry |= {"program": BREAKS_SCRIPT, "bounds": {IS_A_TEMPLATE: 2.0}}
                    entry["warnings"] = [{"code": "odd", "message": BREAKS_SCRIPT, "hint": IS_A_TEMPLATE}]
                runs.append(ProgramRun(entry))
    return Runs(BREAKS_SCRIPT if hostile else "EM3D locally scheduled", on, runs, "digest", "program")


def injected(name: str = "half", share: float = 0.5, elapsed_s: float = 2.02, hostile: bool = False) -> Injected:
    """Return what `crosswind inject --json` says: one rank away for `share` of the time."""
    away = share * elapsed_s
    rank = {"rank": 0, "share": share, "away_s": away, "intervals": 20, "late_mean_s": 0.0001, "late_max_s": 0.001}
    rank |= {"complaints": [BREAKS_SCRIPT] if hostile else [], "too_short": 0, "too_short_s": 0.0, "causes": []}
    summary = {
        "command": ["./app", BREAKS_SCRIPT if hostile else "--quick"],
        "disturbance": f"/tmp/{BREAKS_ATTRIBUTE if hostile else name}.toml",
        "elapsed_s": elapsed_s,
        "start_s": 0.0,
        "ended": "exited",
        "keep_running": False,
        "exit_status": 0,
        "ranks": [rank],
    }
    return Injected(summary, "")


PRICES = {"cron": 0.5, "update": 0.3, "routed": 0.05}


def blamed(seeds: int = 5, causes: tuple[str, ...] = tuple(PRICES), together_s: float = 0.2) -> Blame:
    """Return a blame of causes that cost `PRICES` alone, and cron and update `together_s` more in company."""
    prices = [PRICES.get(cause, 0.1) for cause in causes]
    everything, runs = (1 << len(causes)) - 1, []
    rng = np.random.default_rng(1)
    for seed in range(seeds):
        for coalition in coalitions(len(causes)):
            cost = sum(price for k, price in enumerate(prices) if coalition >> k & 1)
            cost += together_s * (coalition & 3 == 3)
            kept = [cause for k, cause in enumerate(causes) if coalition >> k & 1]
            makespan = 10.0 + cost + 0.01 * float(rng.normal())
            runs.append(ProgramRun(program_run({"causes": kept, "aligned": False}, seed=seed + 1, makespan_s=makespan)))
            if coalition == everything:
                params = {"causes": kept, "aligned": True}
                runs.append(ProgramRun(program_run(params, seed=seed + 1, makespan_s=10.1)))
    return Blame(list(causes), Runs("EM3D under daemons", "sim", runs, "digest", "program"))


DEDICATED_S = {"cholesky": 4.0, "connect": 5.0, "column": 6.0, "em3d": 2.0, "sample": 3.0}
BEST_WINDOW = {"cholesky": 8, "connect": 8, "column": 5, "em3d": 2, "sample": 1}
WRONG_WINDOW = {"cholesky": 0.02, "connect": 0.02, "column": 0.2, "em3d": 0.7, "sample": 0.7}


def by_an_open_input(params: dict[str, Any]) -> float:
    """Return the makespan of SAMPLE at a fine grain, or of CONNECT with more syncs, in that world."""
    whole, narrow = DEDICATED_S[params["program"]], params["window"] == 1
    under = params.get("under", "")
    if under == "daemons":
        return whole * 1.4
    if "duration_s" in params:
        return whole * 1.4
    if under == "serial job":
        return whole * 5.0 * (1.0 if narrow else 0.8)
    if under == "local":
        return 2.0 * whole * 1.7
    if under == "skew":
        return 2.0 * whole * (1.02 if params["skew_s"] else 1.0)
    return whole * (1.0 if narrow else 1.7)


def as_printed(params: dict[str, Any]) -> float:
    """Return the makespan of a point, s, in a world where every claim of the paper holds."""
    program, window = params["program"], params["window"]
    best = BEST_WINDOW[program]
    whole = DEDICATED_S[program]
    narrow = window == best
    if program != "em3d" and ("operation_s" in params or "gets_per_sync" in params):
        return by_an_open_input(params)
    if "jobs" in params:
        return 2.0 * 3.0 * whole * {"em3d": 7.0, "column": 3.0}.get(program, 1.7)
    if "buffer_packets" in params and "under" in params:
        if params["under"] == "daemons":
            return whole * {"em3d": 2.4, "column": 1.15}.get(program, 1.4) * (1.0 if narrow else 1.2)
        helped = program in ("sample", "cholesky")
        return whole * 5.0 * (1.0 if narrow else 0.8 if helped else 1.2)
    if "daemons" in params:
        return whole * 2.4
    if "under" in params:
        jobs = 2.0 if params["under"] == variants.LOCAL else 1.0
        if params["variant"] == variants.ELSEWHERE:
            return whole * (5.0 if program in ("em3d", "column", "sample") else 4.0)
        return jobs * whole * (1.5 if params["variant"] == variants.AS_IT_IS else 1.2)
    if "skew_s" in params:
        part = params["skew_s"] / params["quantum_s"] * (0.5 if program == "em3d" else 0.2)
        return 2.0 * whole * (1.0 + min(part, 0.05)) * (1.0 if narrow else 1.3)
    if "phases" in params:
        if params["quantum_s"] < 0.2:
            return 2.0 * whole * {"em3d": 7.0, "column": 3.0}.get(program, 1.7) * (1.0 if narrow else 1.05)
        # From 5 to 75 over either time: that of the caption, and half of it.
        slow = {"em3d": 36.0, "column": 20.0, "sample": 30.0, "cholesky": 25.0}.get(program, 9.0)
        one_way = program in ("em3d", "column", "sample")
        return 2.0 * whole * slow * (1.0 if narrow or not one_way else 0.4)
    if "duration_s" in params:
        part = params["duration_s"] / params.get("interval_s", 5.0)
        cost = max(part * {"em3d": 140.0, "column": 15.0}.get(program, 40.0), 0.02)
        if params["duration_s"] < 0.02:
            cost = min(cost, 0.08 if params["duration_s"] < 0.008 else 0.15)
        if (program, params["duration_s"], params["interval_s"]) == ("connect", 0.01, 10.0):
            cost = 0.8
        return whole * (1.0 + cost) * (1.0 if narrow else 1.2)
    if "share" in params:
        whole_node = program in ("em3d", "column", "sample")
        slow = 1.0 / params["share"] if whole_node else max(0.8 / params["share"], 1.0)
        helped = program in ("sample", "cholesky") and window > best
        return whole * slow * (0.8 if helped else 1.0)
    if window == best:
        return whole
    return whole * (1.0 + WRONG_WINDOW[program] * (1.0 if window > best else 0.5))


def figure_runs(figure: Figure, calibration: Calibration, jobs: float = 1.0) -> Runs[ProgramRun]:
    """Return the runs of a figure as `as_printed` says."""
    runs = []
    for params, _ in figure.settings:
        makespan = jobs * as_printed(params)
        alone = {"dedicated_s": DEDICATED_S[params["program"]]}
        entry = program_run(params, makespan_s=makespan, program=params["program"], bounds={}, **alone)
        runs += [ProgramRun(entry | {"seed": seed + 1}) for seed in range(calibration.repetitions)]
    return Runs(f"{figure.id}: {figure.title}", "sim", runs, "digest", "program")


def study_runs(calibration: Calibration = QUICK) -> dict[str, Runs[ProgramRun]]:
    """Return the runs of all figures in a world where every claim holds."""
    best = BEST_WINDOW
    tried = {"figure-2-windows": figure_runs(figures.local_windows(calibration, best), calibration)}
    filling = {figures.FILLING: figure_runs(figures.filling(calibration), calibration)}
    fine = {figures.FINE: figure_runs(figures.fine_sample(calibration), calibration)}
    polled = figures.longer(calibration, best, Rows(fine)) if True in calibration.polls else None
    longer = {figures.LONGER: figure_runs(polled, calibration)} if polled else {}
    return {
        "figure-1": figure_runs(figures.windows(calibration), calibration),
        "section-4": figure_runs(figures.coscheduled(calibration, best), calibration, jobs=2.04),
        **tried,
        "figure-2": figure_runs(figures.local(calibration, best, Rows(tried)), calibration),
        "figure-3": figure_runs(figures.skew(calibration, best), calibration),
        "figure-4": figure_runs(figures.daemons(calibration, best), calibration),
        figures.STAGGERED: figure_runs(figures.staggered(calibration, best), calibration),
        "figure-5": figure_runs(figures.shared_node(calibration, best), calibration),
        figures.ONE_SUM: figure_runs(figures.one_sum(calibration), calibration),
        **fine,
        figures.FINE_FILLING: figure_runs(figures.fine_sample_filling(calibration), calibration),
        figures.FINE_DISTURBED: figure_runs(figures.fine_sample_disturbed(calibration, Rows(fine)), calibration),
        figures.SYNCS: figure_runs(figures.connect_syncs(calibration, best), calibration),
        figures.DRAWN_ANEW: figure_runs(figures.drawn_anew(calibration, best), calibration),
        figures.MORE_JOBS: figure_runs(figures.more_jobs(calibration, best), calibration),
        figures.SKEWED_BARRIERS: figure_runs(figures.skewed_barriers(calibration, best), calibration),
        figures.BARRIERS: figure_runs(figures.barriers(calibration, best), calibration),
        **longer,
        **filling,
        figures.DISTURBED: figure_runs(figures.filling_disturbed(calibration, Rows(filling)), calibration),
        variants.NAME: figure_runs(variants.not_built(calibration, best), calibration),
    }


def studied(calibration: Calibration = QUICK, runs: dict[str, Runs[ProgramRun]] | None = None) -> Study:
    """Return the study of such runs."""
    found = runs or study_runs(calibration)
    return _study(Rows(found), calibration, found)


def recorded():
    """Return what `crosswind record` writes, of two CPUs and 10 s."""
    intervals = [[[0.5, 1.0, 0], [3.0, 0.5, 1]], [[9.0, 0.5, 1]]]
    source = {"kind": "recorded", "length_s": 10.0, "causes": ["cron", "<b>irq</b>"], "aligned": False}
    source["cpu"] = [{"cpu": cpu, "intervals": each} for cpu, each in zip((0, 4), intervals, strict=True)]
    return Disturbance.from_dict({"schema_version": 1, "name": "noise of two", "source": [source]})


def of_a_command(blocks: int = 4, saved_s: float = 0.2) -> CommandBlame:
    """Return the blame of a command with two causes, the first of which costs something."""
    rng = np.random.default_rng(1)
    bare = np.full(blocks, 1.0)

    def noise() -> np.ndarray:
        return 0.01 * rng.standard_normal(blocks)

    columns = [bare, bare + saved_s + noise(), bare + noise(), bare + saved_s + noise()]
    names = ["undisturbed", "disturbed", "without agent", "without cron"]
    told = [{"code": "odd", "message": "two ranks were expected", "hint": "name them"}]
    turns = Turns(["./app", "--quick"], names, np.array(columns).T, False, told)
    return CommandBlame("two daemons", ["agent", "cron"], ["timer"], turns)
