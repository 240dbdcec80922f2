"""What Prometheus reads of a check."""

import os
import re
import stat
from pathlib import Path

import pytest
from checks import checked

from crosswind.check.decision import Reading
from crosswind.check.metrics import labels_of, metrics, metrics_of_failure, write_metrics
from crosswind.check.result import Check


def rates(*per_cpu):
    return {
        f"compute cpu {cpu}": Reading(tuple(rate * part for part in (0.99, 1.01, 1.0, 1.0))).to_dict()
        for cpu, rate in enumerate(per_cpu)
    }


GOOD = checked(readings=rates(100.0, 100.0, 100.0), at="2026-01-01T00:00:00Z")
SICK = checked(readings=rates(100.0, 50.0, 99.0), base=GOOD, at="2026-01-11T00:00:00Z")


def rows(text, name):
    return {
        labels: float(value) for labels, value in re.findall(rf"^crosswind_check_{name}(?:{{(.*)}})? (.*)$", text, re.M)
    }


def test_by_default_a_measure_is_one_series_that_of_its_worst_cpu():
    text = metrics(SICK)
    assert rows(text, "loss") == {'measure="compute"': pytest.approx(0.5, abs=0.01)}
    assert rows(text, "steps_per_second") == {'measure="compute"': pytest.approx(50.0)}
    assert rows(text, "state") == {'state="healthy"': 0, 'state="sick"': 1, 'state="unknown"': 0}


def test_on_request_each_cpu_is_one():
    text = metrics(SICK, per_cpu=True)
    assert set(rows(text, "loss")) == {f'measure="compute",cpu="{cpu}"' for cpu in range(3)}
    assert rows(text, "steps_per_second")['measure="compute",cpu="2"'] == pytest.approx(99.0)


def test_the_age_of_the_baseline_is_told():
    assert rows(metrics(SICK), "baseline_age_seconds") == {"": 10 * 86400}
    past = [checked(at=f"2026-01-0{day}T00:00:00Z") for day in range(1, 8)]
    found = Check(checked(at="2026-01-08T00:00:00Z").document, None, past)
    assert rows(metrics(found), "baseline_age_seconds") == {"": 7 * 86400}
    assert rows(metrics(found), "earlier_checks") == {"": 7}


def test_names_from_a_file_stay_within_their_label():
    name = '\x1b[31m<script>\u202e"\n# x \\ end'
    readings = rates(100.0) | {name: Reading((1.0, 1.01, 0.99, 1.0)).to_dict()}
    text = metrics(checked(readings=readings, base=checked(readings=readings)))
    assert all(line.startswith(("crosswind_check_", "# HELP ", "# TYPE ")) for line in text.splitlines())
    assert not set(text) & set("\x1b\u202e")
    assert set(rows(text, "loss")) == {
        'measure="compute"',
        r'measure="\\x1b[31m<script>\\u202e\"\\n# x \\ end"',
    }


@pytest.mark.parametrize("name", ["rate from [fe80::1%eth0]:7117", "interference x y"])
def test_a_path_is_a_label(name):
    assert set(labels_of(name)) == {"measure", "path"}


def test_a_measure_that_failed_and_a_check_that_failed_are_unknown():
    failed = checked(failed={"noise": "no time left"}, readings=rates(100.0), base=GOOD)
    for text in (metrics(failed), metrics_of_failure()):
        assert rows(text, "state")['state="unknown"'] == 1
        assert rows(text, "timestamp_seconds")[""] > 1e9


def test_the_file_may_be_read_by_another_user_whatever_the_mask(tmp_path):
    file, mask = tmp_path / "node.prom", os.umask(0o077)
    try:
        for _ in range(2):
            write_metrics("x 1\n", file)
            assert stat.S_IMODE(file.stat().st_mode) == 0o644
            file.chmod(0o600)
    finally:
        os.umask(mask)


def test_a_link_put_in_the_place_of_the_file_leads_to_no_other_mode(tmp_path, monkeypatch):
    file, secret = tmp_path / "node.prom", tmp_path / "secret"
    secret.touch(mode=0o600)
    replace = Path.replace

    def swapped(part, place):
        replace(part, place)
        Path(place).unlink()
        Path(place).symlink_to(secret)

    monkeypatch.setattr(Path, "replace", swapped)
    write_metrics("x 1\n", file)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
