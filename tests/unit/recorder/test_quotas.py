import numpy as np

from crosswind.recorder import quotas as module
from crosswind.recorder.quotas import ABSENCE, QUOTA, Quotas, Sample, attributed

MS = 1_000_000
GROUP = "/sys/fs/cgroup/cpu/job"
OTHER = {"name": "other", "pid": 7, "cgroup": "/a", "seconds": 0.0}


def quotas(*samples):
    """Return counters of process 1. Each look: the time, the time held back until then, both ms, and the periods."""
    found = Quotas()
    found._samples[1] = [Sample(at * MS, {GROUP: (held * MS, count)}) for at, held, count in samples]
    return found


def absences(*rows):
    every = np.zeros(len(rows), ABSENCE)
    for row, (start, end, kind) in zip(every, rows, strict=True):
        row["t0"], row["t1"], row["tid"], row["kind"] = start * MS, end * MS, 5, kind
    return every.tobytes()


def causes_of(found, *rows):
    data, causes = attributed(found, {1: absences(*rows)}, [OTHER])
    names = [causes[row["cause"]]["name"] for row in np.frombuffer(data[1], ABSENCE)]
    return names, {cause["name"]: round(cause["seconds"], 6) for cause in causes}


def test_what_runs_while_a_quota_is_used_up_is_not_the_cause():
    found = quotas((0, 0, 0), (250, 140, 2), (500, 140, 2))
    names, seconds = causes_of(found, (30, 60, 0), (60, 100, 3), (130, 134, 0), (150, 200, 0), (300, 360, 0))
    assert names == [QUOTA, QUOTA, "other", QUOTA, "other"]
    assert seconds == {QUOTA: 0.12, "other": 0.064}


def test_an_absence_that_reaches_into_the_next_look_is_explained_by_both():
    assert causes_of(quotas((0, 0, 0), (250, 0, 1), (500, 70, 1)), (220, 290, 0))[0] == [QUOTA]


def test_without_a_quota_nothing_changes():
    assert causes_of(Quotas(), (0, 90, 0))[0] == ["other"]
    assert causes_of(quotas((0, 5, 3), (250, 5, 3)), (0, 90, 0))[0] == ["other"]


def test_a_stopped_thread_is_stopped():
    assert causes_of(quotas((0, 0, 0), (250, 140, 2)), (30, 100, 1))[0] == ["other"]


def test_an_idle_processor_is_the_quotas_however_short():
    found = quotas((0, 0, 0), (250, 140, 80))
    assert causes_of(found, (30, 31, 3), (40, 41, 0))[0] == [QUOTA, "other"]
    data, causes = attributed(found, {1: absences((30, 31, 3))}, [OTHER])
    assert causes[np.frombuffer(data[1], ABSENCE)[0]["cause"]]["cgroup"] == GROUP


def test_what_was_held_back_before_the_first_look_counts():
    assert causes_of(quotas((100, 20, 4)), (30, 35, 3))[0] == [QUOTA]
    assert causes_of(quotas((100, 20, 4)), (130, 135, 3))[0] == ["other"]


def test_a_process_is_looked_up_again_when_it_moves(monkeypatch):
    listed, asked = ["cpu:/"], []
    monkeypatch.setattr(module, "text", lambda root, path, *more: listed[0])
    monkeypatch.setattr(module.cgroup, "groups", lambda *words, **named: asked.append(named["process"]) or [])
    found = Quotas()
    found.look([7])
    found.look([7])
    listed[0] = "cpu:/job"
    found.look([7])
    listed[0] = None
    found.look([7])
    assert asked == ["7", "7"]
