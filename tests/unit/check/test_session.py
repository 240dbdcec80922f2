"""What a check makes of a measurement that fails, hangs, or finds no time left: nothing ends it."""

import contextlib
import os
import signal
import threading
import time

import pytest
from checks import checked

from crosswind.check import rates, session
from crosswind.check.decision import Reading
from crosswind.check.result import Check
from crosswind.check.time_limit import OverTimeError, run_until
from crosswind.errors import DescriptionError, MeasurementError, warning

HOST = checked().document["host"]
ROUNDS = [0.99, 1.0, 1.01, 1.0, 1.0]
GOOD = checked(
    readings={name: Reading(tuple(ROUNDS * 2)).to_dict() for name in rates.names_of(0)[:2]}
    | {name: Reading((0.01,) * 8, "share", part=0.5).to_dict() for name in ("lost time cpu 0", "noise")}
    | {"interference loopback": Reading((), "share", mean=0.1, error=0.01).to_dict()}
)


class Kernels:
    """Kernels of a CPU that answer at once."""

    looks = 2

    def __init__(self, cpus):
        self.failed = {}

    def wait_until_ready(self, until):
        pass

    def measured(self, seconds, until):
        if not Kernels.looks:
            self.failed[0] = "its process ended"
            return {}
        Kernels.looks -= 1
        return {name: [0.01] * 5 if "lost" in name else ROUNDS for name in rates.names_of(0)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Recorded:
    def __init__(self):
        self.summary, self.share = {"interrupted": False}, 0.01


@pytest.fixture
def measured(monkeypatch):
    """Check with stand-ins; `interference` and `noise` may be replaced."""

    def run(
        interference=None, noise=lambda *_, **__: Recorded(), looks=2, limit_s=10.0, peer=None, settings=lambda: HOST
    ):
        Kernels.looks = looks
        alike = {"interference loopback": Reading((), "share", excusable=True, mean=0.1, error=0.01)}
        monkeypatch.setattr(session.rates, "Kernels", Kernels)
        monkeypatch.setattr(session, "allowed_cpus", lambda: [0])
        monkeypatch.setattr(session, "import_what_follows", lambda: None)
        monkeypatch.setattr(session, "record", noise)
        monkeypatch.setattr(session, "_LEAST_PATH_S", 0.01)
        monkeypatch.setattr(session.surroundings, "settings", settings)
        monkeypatch.setattr(session, "interference", interference or (lambda *_: (alike, 1.0, [])))
        document = session.performed(GOOD, 0.1, 10.0, peer, None, None, None, limit_s)
        return Check(document | {"load": {"others": 0.0, "steal": 0.0}}, GOOD)

    return run


def raising(error):
    def function(*_, **__):
        raise error

    return function


def test_as_it_was_it_is_healthy(measured):
    assert measured().outcome == "healthy"


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("float division by zero"), MeasurementError("no"), OSError(28, "full")]
)
@pytest.mark.parametrize(("what", "name"), [("interference", "interference loopback"), ("noise", "noise")])
def test_a_measurement_that_fails_is_unknown_with_the_reason_and_the_others_stand(measured, error, what, name):
    found = measured(**{what: raising(error)})
    assert (found.outcome, found.exit_code) == ("unknown", 3)
    assert str(error) in found.document["failed"][name]
    assert [each.name for each in found.judged if each.outcome != "healthy"] == [name]
    assert "\n" not in found.sentence


def test_a_measurement_that_hangs_is_ended_and_the_second_look_still_made(measured):
    found = measured(interference=lambda *_: time.sleep(600), limit_s=3.0)
    assert found.document["failed"]["interference loopback"] == "not done within the limit of 3 s"
    assert (found.outcome, found.interrupted) == ("unknown", False)
    assert found.readings["compute cpu 0"].looks == 2


def test_where_no_time_is_left_all_is_unknown(measured):
    found = measured(limit_s=0.0)
    assert (found.outcome, found.exit_code, found.interrupted) == ("unknown", 3, False)
    assert set(found.document["failed"]) == {"noise", "interference loopback"}


def test_a_loss_that_was_looked_at_once_is_not_sick(measured):
    found = measured(looks=1)
    assert found.outcome == "healthy"
    slow = Check(found.document, checked(readings={"compute cpu 0": Reading((2.0, 2.01, 1.99, 2.0)).to_dict()}))
    assert [each.why for each in slow.judged] == ["measured only once"]
    assert slow.outcome == "unknown"


def test_a_peer_that_is_away_costs_its_measures_only(measured):
    def interference(path, *_):
        if path:
            raise MeasurementError("10.0.0.2:7117 cannot be reached")
        return {"interference loopback": Reading((), "share", mean=0.1, error=0.01)}, 1.0, []

    found = measured(interference=interference, peer="10.0.0.2:7117")
    assert found.exit_code == 3
    assert set(found.document["failed"]) == {"rate from 10.0.0.2:7117", "interference 10.0.0.2:7117"}
    assert "cannot be reached" in found.sentence


@pytest.mark.parametrize("path", [None, "10.0.0.2:7117"])
def test_an_interference_that_is_not_found_is_unknown_with_the_reason(measured, path):
    """A baseline without it would hide a fault, and a baseline with it would find none."""

    def interference(at, *_):
        if at == path:
            rate = {f"rate from {path}": Reading(tuple(ROUNDS), "MB/s", excusable=True)} if path else {}
            return rate, None, [warning("too-few-points", "too few samples for a fit", "more --seconds")]
        return {"interference loopback": Reading((), "share", mean=0.1, error=0.01)}, 1.0, []

    found = measured(interference=interference, peer="10.0.0.2:7117" if path else None)
    assert found.document["failed"] == {f"interference {path or 'loopback'}": "too few samples for a fit"}
    assert (found.outcome, found.exit_code) == ("unknown", 3)


def test_a_wrong_argument_is_no_verdict(measured):
    with pytest.raises(DescriptionError):
        measured(interference=raising(DescriptionError("the token is too short")))


def test_a_host_that_cannot_be_described_is_checked(measured):
    found = measured(settings=raising(ValueError("invalid literal: '(null)'")))
    assert found.outcome == "healthy"
    assert "not-described" in {each["code"] for each in found.document["warnings"]}


def test_ctrl_c_is_no_time_limit():
    timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_until(time.monotonic() + 600, lambda: time.sleep(600))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_limit_that_passes_as_the_body_ends_interrupts_nothing_else():
    for late in (0.0, 0.0005, 0.001, 0.002):
        for _ in range(20):
            with contextlib.suppress(OverTimeError):
                run_until(time.monotonic() + late, lambda: time.sleep(0.001))
            sum(range(1000))
    with pytest.raises(OverTimeError):
        run_until(time.monotonic() - 1.0, lambda: None)
