"""What a path comes to when little could be measured there."""

from importlib import import_module
from types import SimpleNamespace

from crosswind.check.network import interference
from crosswind.errors import DescriptionError


def test_too_few_samples_for_a_fit_leave_the_other_measures_to_judge(monkeypatch):
    def starved(_):
        raise DescriptionError("too few samples for a fit", "too-few-points")

    measured = SimpleNamespace(header={"ended": "time"})
    monkeypatch.setattr(import_module("crosswind.measure"), "measure", lambda *_, **__: measured)
    monkeypatch.setattr(import_module("crosswind.model.fit"), "fit", starved)
    readings, top, warnings = interference(None, 100.0, 5.0, None, None)
    assert (readings, top) == ({}, None)
    assert [each["code"] for each in warnings] == ["too-few-points"]
