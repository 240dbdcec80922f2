"""What a run of calls does at its end, on nodes in this process."""

import threading

import pytest
from in_process import InProcess

import crosswind
from crosswind import AgentLost
from crosswind.run import call_run


class EndsAtOnce(InProcess):
    """Ends while the thread that has handed over the last call is still alive."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.is_over, self.is_asked = threading.Event(), threading.Event()

    def end_of_tasks(self):
        self.is_over.set()
        self.is_asked.wait(30)

    def ended(self, timeout_s):
        if self.is_over.is_set():
            self.is_asked.set()
        return self.is_over.is_set()


class LosesAnAnswer(InProcess):
    is_over = False

    def results(self, timeout_s=None, *, or_news=False, views=False):
        self.is_over = self.is_over or bool(super().results(timeout_s))
        return []

    def ended(self, timeout_s):
        return self.is_over


def test_a_run_that_ends_before_the_thread_that_handed_its_calls_over_has_lost_none(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", EndsAtOnce)
    values = crosswind.map(abs, [-1, -2, -3])
    for run in list(call_run._open_runs):
        run.reader.join(30)
    assert list(values) == [1, 2, 3]


def test_a_call_without_an_answer_at_the_end_fails(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", LosesAnAnswer)
    with crosswind.Farm() as farm:
        call = farm.submit(abs, -1)
    with pytest.raises(AgentLost, match="not all calls are answered"):
        call.result(timeout=0)
