"""What a check says against a baseline, and how other systems read it."""

from xml.etree import ElementTree

import pytest
from checks import SETTINGS, checked

from crosswind.check import check, formats
from crosswind.check.decision import Reading
from crosswind.check.metrics import metrics
from crosswind.check.result import Check
from crosswind.errors import DescriptionError

GOOD = checked()
SICK = checked(memory=50.0, base=GOOD)
HEALTHY = checked(base=GOOD)
BUSY = checked(memory=80.0, noise=0.4, others=0.5, base=GOOD)


def test_half_the_memory_rate_is_sick_and_named():
    assert (SICK.outcome, SICK.exit_code) == ("sick", 1)
    assert SICK.sentence.startswith("sick: memory cpu 0 is 50")


def test_the_same_node_is_healthy():
    assert (HEALTHY.exit_code, HEALTHY.sentence) == (0, "healthy: 2 measures within tolerance")


def test_a_busy_host_is_unknown_and_said():
    assert BUSY.exit_code == 3
    assert BUSY.sentence.startswith("unknown (busy host): ")
    assert "busy-host" in {each["code"] for each in BUSY.warnings}


def test_a_healthy_verdict_asks_for_no_other_check():
    """ "healthy (busy host)" stood beside "check again when the node is idle"."""
    busy = checked(others=0.9, base=GOOD)
    assert (busy.outcome, busy.sentence) == ("healthy", "healthy: 2 measures within tolerance")
    assert not {"busy-host"} & {each["code"] for each in busy.warnings}


def test_without_a_baseline_nothing_is_judged():
    assert (GOOD.exit_code, GOOD.judged, GOOD.sentence) == (3, [], "No verdict: no baseline")


def test_a_changed_setting_is_named_and_drains_nothing():
    found = checked(base=GOOD, settings=SETTINGS | {"governor": "powersave"})
    assert found.changed == ["governor: performance -> powersave"]
    assert found.exit_code == 0
    assert found.sentence.endswith("; changed: governor")


def test_a_measure_that_only_one_has_is_said():
    found = checked(base=checked(readings={"noise": GOOD.document["readings"]["noise"]}))
    assert [each.name for each in found.judged] == ["noise"]
    assert "not-in-both" in {each["code"] for each in found.warnings}


def test_what_the_baseline_has_and_was_not_measured_is_unknown():
    readings = GOOD.document["readings"]
    loopback = Reading(mean=0.3, error=0.01, unit="share").to_dict()
    base = checked(readings=readings | {"interference loopback": loopback, "rate from 10.0.0.2:7117": loopback})
    found = checked(base=base)
    assert found.sentence == "unknown: interference loopback is not known (not measured)"
    assert "not-in-both" in {each["code"] for each in found.warnings}


def test_a_saved_check_is_a_baseline(tmp_path):
    SICK.save(tmp_path / "check.json")
    read = Check.load(tmp_path / "check.json")
    assert read.readings == SICK.readings
    assert checked(base=read).outcome == "healthy"  # it got better


def test_another_file_is_no_baseline(tmp_path):
    (tmp_path / "x.json").write_text('{"kind": "cost"}')
    with pytest.raises(DescriptionError, match=r"no check\.json"):
        Check.load(tmp_path / "x.json")


@pytest.mark.parametrize("argument", [{"tolerance": 1.5}, {"tolerance": 0.0}, {"seconds": 1.0}])
def test_a_wrong_argument_is_named_before_anything_is_measured(argument):
    with pytest.raises(DescriptionError, match=next(iter(argument))):
        check(**argument)


def test_nhc_gets_a_level_and_one_line():
    lines = [formats.nhc(found) for found in (SICK, HEALTHY, BUSY)]
    assert [line.partition(":")[0] for line in lines] == ["ERROR", "OK", "WARNING"]
    assert not any("\n" in line for line in lines)
    assert "is 50 +- " in lines[0] or "is 50.0 +- " in lines[0], lines[0]
    assert all(line.isascii() for line in [*lines, *map(formats.npd, (SICK, HEALTHY, BUSY))])


def test_a_name_with_a_line_end_keeps_the_verdict_in_one_line():
    name = "x\nOK: crosswind check: healthy\x1b[2J"
    readings = {name: Reading((1.0, 1.01, 0.99, 1.0)).to_dict()}
    found = checked(readings={name: Reading((2.0, 2.02, 1.98, 2.0)).to_dict()}, base=checked(readings=readings))
    sick = checked(readings=readings, base=found)
    assert sick.outcome == "sick"
    for line in (formats.nhc(sick), formats.npd(sick), formats.failed(name, "nhc")):
        assert "\n" not in line
        assert "\x1b" not in line


def test_node_problem_detector_gets_80_characters():
    assert max(len(formats.npd(found)) for found in (SICK, HEALTHY, BUSY)) <= 80
    assert formats.npd(BUSY).endswith("...")


def test_junit_fails_what_is_sick_and_skips_what_is_unknown():
    for found, tag in ((SICK, "failure"), (BUSY, "skipped")):
        suite = ElementTree.fromstring(formats.junit(found))
        assert suite.get("tests") == "2"
        assert suite.find(f".//{tag}") is not None
        for case in suite.findall("testcase"):
            numbers = {each.get("name"): float(each.get("value")) for each in case.iter("property")}
            assert numbers["loss_low"] <= numbers["loss"] <= numbers["loss_high"]
            assert "permitted: " in case.findtext("system-out")


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (Reading((), "MB/s", mean=0.0, error=0.0), Reading((), "MB/s", mean=100.0, error=0.0)),
        (Reading((1e-300, 1e300) * 5), Reading((1e300, 1e-300) * 5)),
        (Reading((5e-324,) * 10), Reading((1e308,) * 10)),
        (Reading((float("nan"),) * 10), Reading((1.0,) * 10)),
        (Reading((0.0,) * 10), Reading((1.0,) * 10)),
        (Reading((1.0,) * 10, "share"), Reading((1.0,) * 10)),
        (Reading((1e308,) * 10), Reading((1e-308,) * 10)),
        (Reading((1e200, -1e200) * 5, "share"), Reading((0.1,) * 10, "share")),
        (Reading((), "MB/s", mean=1e-300, error=1e300), Reading((), "MB/s", mean=100.0, error=0.0)),
        (Reading((), "share", mean=0.1, error=1e300), Reading((), "share", mean=0.1, error=0.0)),
    ],
)
def test_no_reading_ends_a_verdict(now, then):
    for one, other in ((now, then), (then, now)):
        found = checked(readings={"x": one.to_dict()}, base=checked(readings={"x": other.to_dict()}))
        assert found.outcome in ("healthy", "sick", "unknown")
        assert found.sentence
        assert formats.junit(found)
        assert metrics(found)
