"""Every part of every claim: whence its limit is, and that it can fail. A grade that nothing can turn means nothing."""

import copy
from dataclasses import replace

import disturbed
import forks
import interacting
import pytest

from crosswind import plan as planned
from crosswind.lab.papers import table_2, table_3, table_4
from crosswind.lab.papers.grading import DEFECTS, HOLDS, OPEN, Claim
from crosswind.lab.papers.interference_aware_scheduling import fork_claims, model_claims
from crosswind.lab.papers.interference_in_java import measured_here, printed
from crosswind.lab.papers.interference_in_java.study import claims as of_java
from crosswind.lab.papers.quadrics_overlap.claims import claims as of_overlap
from crosswind.lab.papers.quadrics_overlap.matrix import Times
from crosswind.lab.papers.quadrics_overlap.tables import BURN_S, load
from crosswind.lab.papers.quadrics_overlap.tables import printed as cell_of
from crosswind.lab.papers.scheduling_and_communication import figures, variants, window_claims
from crosswind.lab.papers.scheduling_and_communication.calibration import PROGRAMS, QUICK
from crosswind.run.results import ProgramRun, Runs

EVERY_PART = replace(QUICK, polls=(True, False), filling_disturbed=PROGRAMS)
"""With daemons that poll and all programs in a network that can fill, as in the full form: no part is left out."""


def scheduling_runs(change):
    """Return runs in which everything is as claimed, but for a change: (figure, params, makespan) -> makespan."""
    runs = disturbed.study_runs(EVERY_PART)
    for figure, own in runs.items():
        entries = [ProgramRun({**r.data, "makespan_s": change(figure, r.params, r.makespan_s)}) for r in own]
        runs[figure] = Runs(own.experiment, own.on, entries, own.digest, "program")
    return runs


def of_scheduling(change=lambda figure, params, makespan_s: makespan_s):
    return disturbed.studied(EVERY_PART, runs=scheduling_runs(change)).claims


def of_windows(change):
    """Grade what is claimed of windows alone: where other windows are best, other figures have no runs with them."""
    return window_claims.claims(figures.Rows(scheduling_runs(change)), EVERY_PART)


def of_interacting(change=None):
    """Grade runs in which everything is as claimed, but for a change of each run's entry."""
    runs = interacting.study_runs()
    if change is not None:
        for figure, own in runs.items():
            entries = []
            for run in own:
                data = copy.deepcopy(dict(run.data))
                change(figure, run.params, data)
                entries.append(type(run)(data))
            runs[figure] = Runs(own.experiment, own.on, entries, own.digest, "streams")
    return interacting.studied(runs=runs).claims


def of_quadrics(change=None):
    """Grade the printed tables, but for a change: (setting, cell, times) -> times."""
    matrix = {}
    for row in load():
        if row.setting != "alone":
            times = Times(cell_of("alone", row.cell).ping_s, BURN_S, row.ping_s, row.burn_s, 0.0)
            matrix[row.setting, row.cell] = times if change is None else change(row.setting, row.cell, times)
    return of_overlap({"lingers": matrix, "does not": matrix})


def of_fork(rows=None):
    rows = rows or forks.as_claimed()
    return [*fork_claims.claims(rows), *model_claims.claims(rows)]


def changed_tables(monkeypatch, change):
    """Have tables 2 and 3 with each peer changed."""
    for module in (table_2, table_3):
        whole = module.load
        monkeypatch.setattr(module, "load", lambda *args, whole=whole: [change(peer) for peer in whole(*args)])


def with_rates(peer, receive, send):
    return replace(
        peer,
        receive=replace(peer.receive, ir_s_per_mb=receive),
        send=replace(peer.send, ir_s_per_mb=send),
    )


STUDIES = {
    "scheduling": of_scheduling,
    "interactions": of_interacting,
    "quadrics": of_quadrics,
    "java": of_java,
    "fork": of_fork,
}


def parts(claims):
    return [(claim.id, check) for claim in claims for check in claim.checks]


@pytest.mark.parametrize("study", STUDIES)
def test_every_part_says_whence_its_limit_is_or_why_it_is_not_graded(study):
    for claim, check in parts(STUDIES[study]()):
        assert check.defect or check.band is not None, (claim, check.text)
        assert not check.defect or check.defect in DEFECTS, (claim, check.text)
        assert (check.band is not None and check.band.source == "own") == (check.defect == "own band"), (
            claim,
            check.text,
        )


@pytest.mark.parametrize("study", STUDIES)
def test_no_part_with_a_defect_is_decided_and_each_says_what_would_settle_it(study):
    for claim, check in parts(STUDIES[study]()):
        if check.defect:
            assert (check.verdict, check.answers) == (OPEN, ()), (claim, check.text)
        if check.verdict != HOLDS:
            assert check.hangs_on, (claim, check.text)


@pytest.mark.parametrize("study", STUDIES)
def test_a_part_is_read_back_as_it_was_written(study):
    for claim in STUDIES[study]():
        assert Claim.from_dict(claim.summary()).summary() == claim.summary()


def test_no_part_is_asked_twice():
    texts = [check.text for study in STUDIES.values() for _, check in parts(study())]
    assert len(texts) == len(set(texts)), sorted(text for text in texts if texts.count(text) > 1)


NETWORKS = ("figure-1", figures.FILLING, figures.FINE, figures.FINE_FILLING, figures.ONE_SUM)
LARGE = 512
LONE = disturbed.DEDICATED_S
DAEMONS = ("figure-4", figures.FINE_DISTURBED, figures.SYNCS, figures.STAGGERED, figures.BARRIERS, figures.LONGER)


def under_daemons(figure, params):
    return figure in (*DAEMONS, figures.DISTURBED) and params.get("under", "daemons") == "daemons"


def beside_a_job(figure, params):
    return figure == "figure-5" or params.get("under") == variants.SERIAL


OTHERWISE = {
    "EM3D is spared by local scheduling": lambda f, p, s: (
        s * (0.1 if f == "figure-2" and p["program"] == "em3d" else 1)
    ),
    "EM3D is spared by daemons": lambda f, p, s: s * (0.5 if under_daemons(f, p) and p["program"] == "em3d" else 1),
    "daemons of 10 ms cost more": lambda f, p, s: (
        s * (1.2 if under_daemons(f, p) and p.get("duration_s") == 0.01 else 1)
    ),
    "local scheduling costs three times as much": lambda f, p, s: s * (3.0 if f == "figure-2" else 1),
    "three jobs cost less than two": lambda f, p, s: s * (0.1 if f == figures.MORE_JOBS else 1),
    "local scheduling costs next to nothing": lambda f, p, s: s * (0.01 if f == "figure-2" else 1),
    "no program gains by a window": lambda f, p, s: (
        s * (10 if f == "figure-2" and p["window"] != disturbed.BEST_WINDOW[p["program"]] else 1)
    ),
    "skews cost more": lambda f, p, s: (
        s
        * (
            1.2
            if f in ("figure-3", figures.DRAWN_ANEW, figures.SKEWED_BARRIERS)
            and p["skew_s"]
            and p["program"] != "sample"
            else 1
        )
    ),
    "skews cost SAMPLE most": lambda f, p, s: (
        s * (1.3 if f == "figure-3" and p["skew_s"] and p["program"] == "sample" else 1)
    ),
    "skews save time": lambda f, p, s: s * (0.8 if f == "figure-3" and p["skew_s"] else 1),
    "daemons cost nothing": lambda f, p, s: LONE[p["program"]] if under_daemons(f, p) else s,
    "daemons cost COLUMN more": lambda f, p, s: s * (2.0 if under_daemons(f, p) and p["program"] == "column" else 1),
    "large windows help": lambda f, p, s: (
        s * (0.1 if f in ("figure-4", "figure-5", figures.DISTURBED) and p["window"] == LARGE else 1)
    ),
    "large windows hurt": lambda f, p, s: (
        s * (3 if f in ("figure-5", figures.DISTURBED, figures.FINE_DISTURBED) and p["window"] == LARGE else 1)
    ),
    "EM3D is spared by a busy node": lambda f, p, s: s * (0.5 if beside_a_job(f, p) and p["program"] == "em3d" else 1),
}
WINDOWS = {
    "small windows are slow": lambda f, p, s: s * (3 if f in NETWORKS and p["window"] <= 5 else 1),
    "a large window is slow": lambda f, p, s: s * (3 if f in NETWORKS and p["window"] == LARGE else 1),
    "windows change nothing": lambda f, p, s: LONE[p["program"]] if f in NETWORKS else s,
}


def set_slow(stream, queue, slow):
    stream[f"slowdown_{queue}"] = slow
    stream["latency_s"][queue]["mean"] = slow * stream["latency_s"]["alone"]["mean"]


def lose_more(figure, params, data):
    for stream in data["streams"] if figure in ("figure-2", "table-2") else ():
        stream["latency_s"]["fifo"]["mean"] *= 1.5


def delay_all_alike(figure, params, data):
    if figure == "figures-3-4":
        data["jobs"][0]["fifo_s"] = 2.9 if params["hosts"] == 8 else 2.8


def all_streams(tested, local):
    """Change what is tested and what is local in figures 8 to 10."""

    def change(figure, params, data):
        if figure in ("figure-8", "figure-9", "figure-10"):
            tested(params, data["streams"][0])
            for stream in data["streams"][1:]:
                local(params, stream)

    return change


INTERACTING = {
    "flows lose more": lose_more,
    "the rate of local flows changes nothing, and hosts cost": delay_all_alike,
    "one queue costs nothing, two cost": all_streams(
        lambda params, stream: (set_slow(stream, "fifo", 1.0), set_slow(stream, "queued", 2.0)),
        lambda params, stream: (set_slow(stream, "fifo", 2.0), set_slow(stream, "queued", 1.0)),
    ),
    "two queues cost local streams": all_streams(
        lambda params, stream: None, lambda params, stream: set_slow(stream, "queued", 99.0)
    ),
    "B is slowed most, and gains most": all_streams(
        lambda params, stream: (
            set_slow(stream, "fifo", 99.0 if params["stream"] == "B" else 1.5),
            set_slow(stream, "queued", 1.2),
        ),
        lambda params, stream: set_slow(stream, "queued", 9.0 if params["stream"] == "A" else 1.9),
    ),
}

TURNED = {
    "events cost a ping": lambda s, c, t: replace(t, ping_s=2 * t.ping_s) if s == "event" else t,
    "pings go first": lambda s, c, t: replace(t, ping_s=1.0) if s == "burn -20" else t,
    "polling is cheap": lambda s, c, t: replace(t, ping_s=0.5 * t.ping_alone_s, burn_s=60.0) if s == "poll" else t,
    "large ones cost": lambda s, c, t: replace(t, ping_s=900.0, burn_s=900.0) if s == "poll" and c == (100, 64) else t,
}


def failing(claims):
    return {check.text for _, check in parts(claims) if check.verdict in ("does not hold", "paper wrong")}


def graded(claims):
    return {check.text for _, check in parts(claims) if not check.defect}


def test_each_part_about_disturbed_programs_fails_in_some_world():
    turned = set().union(*(failing(of_scheduling(change)) for change in OTHERWISE.values()))
    turned |= set().union(*(failing(of_windows(change)) for change in WINDOWS.values()))
    assert sorted(graded(of_scheduling()) - turned) == []


def test_each_part_about_messages_that_meet_fails_in_some_world():
    turned = set().union(*(failing(of_interacting(change)) for change in INTERACTING.values()))
    assert sorted(graded(of_interacting()) - turned) == []


def test_each_part_about_overlap_fails_in_some_world():
    turned = set().union(*(failing(of_quadrics(change)) for change in TURNED.values()))
    assert sorted(graded(of_quadrics()) - turned) == []


def test_each_part_about_java_fails_where_tables_or_text_are_otherwise(monkeypatch):
    turned = failing(of_java())
    near = ("Lab", "Campus")

    def cheap_far_away(peer):
        return with_rates(peer, *((0.2, 0.3) if peer.node.startswith(near) else (0.01, 0.1)))

    def far_and_linux(peer):
        at_home = peer.node.startswith(near)
        return with_rates(peer, 0.001 if at_home else 0.04, 0.02 if at_home else 0.5)

    def sending_grows(peer):
        return with_rates(peer, 0.05, 0.01 if peer.node.startswith(near) else 0.05)

    for change in (cheap_far_away, far_and_linux, sending_grows):
        with monkeypatch.context() as patch:
            changed_tables(patch, change)
            turned |= failing(of_java())
    with monkeypatch.context() as patch:
        patch.setitem(printed.PLANE, "receive", 0.02)
        patch.setattr(printed, "CORNERS", {(3.0, 4.5): 0.7, (3.0, 9.5): 0.65, (10.5, 1.0): 0.65, (10.5, 5.5): 0.1})
        patch.setattr(printed, "FOOTPRINT", (0.049, 0.040))
        turned |= failing(of_java())
    assert sorted(graded(of_java()) - turned) == []


def test_each_part_about_forks_fails_where_runs_tables_or_plans_are_otherwise(monkeypatch):
    turned = failing(of_fork())
    every = [(size, work) for size in (2, 5, 10) for work in (1, 3, 5, 7, 9, 11)]
    slow = {"IA:Multi": 1.4, "IA:Single": 1.3, "BWC": 0.2, "CompRate": 0.5, "FCFS": 0.1, "RootComputes": 0.15}
    times = {(one, name, "figure-5"): time for one in every for name, time in slow.items()}
    turned |= failing(of_fork(forks.as_claimed(times=times)))
    behind = {"IA:Multi": 0.4, "IA:Single": 0.5, "BWC": 0.9, "CompRate": 0.8, "FCFS": 0.7, "RootComputes": 0.3}
    times = {(one, name, "figure-5"): time for one in every for name, time in behind.items()}
    times |= {((2, work), "BWC", "slow-sends"): 0.1 for work in (9, 11)}
    times |= {((2, work), "CompRate", "figure-5"): 5.0 for work in (9, 11)}
    turned |= failing(of_fork(forks.as_claimed(times=times)))
    with monkeypatch.context() as patch:
        changed_tables(patch, lambda peer: with_rates(peer, 0.03, 0.05))
        slower = measured_here.Ratio(0.8, 0.9, 1.0)
        patch.setattr(measured_here, "load", lambda: {("stream", "receive"): slower, ("stream", "send"): slower})
        patch.setattr(model_claims, "ROOT_COMPUTE_PER_S", 1.0)
        patch.setattr(
            table_4,
            "load",
            lambda *_: [
                replace(leaf, leaf=name)
                for leaf, name in zip(table_4_as_printed, ("Tenn", "SB0", "Lab6", "Lab5", "Lab4", "Lab3"), strict=True)
            ],
        )
        turned |= failing(of_fork())
    with monkeypatch.context() as patch:
        for module in (fork_claims, model_claims):
            patch.setattr(module, "plan", lambda *args, **options: _Worse(planned(*args, **options)))
        turned |= failing(of_fork())
    assert sorted(graded(of_fork()) - turned) == []


table_4_as_printed = table_4.load()


class _Worse:
    """A plan that misses its bound."""

    def __init__(self, plan):
        self.data = plan.data
        self.throughput_tasks_per_s = 0.5 * plan.throughput_tasks_per_s
        self.gap_to_exact = 0.5
