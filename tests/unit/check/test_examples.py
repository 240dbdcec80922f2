"""The examples for other systems ask for what a check gives."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checks import checked

from crosswind.check.formats import NPD_CHARACTERS
from crosswind.check.metrics import metrics, metrics_of_failure

EXAMPLES = Path(__file__).parents[3] / "examples"


ALERTS = EXAMPLES / "check/alerts.yml"


@pytest.mark.parametrize("per_cpu", [False, True])
def test_the_dashboard_and_the_alerts_ask_only_for_metrics_that_are_written(per_cpu):
    panels = json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in _metrics(target["expr"])}
    asked |= _metrics(ALERTS.read_text())
    written = _metrics(metrics(checked(base=checked()), per_cpu=per_cpu) + "crosswind_check_steps_per_second")
    assert len(asked) > 8
    assert asked <= written


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
@pytest.mark.parametrize("per_cpu", [False, True])
def test_prometheus_takes_the_metrics(per_cpu):
    for text in (metrics(checked(base=checked()), per_cpu=per_cpu), metrics_of_failure()):
        ran = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_each_alert_is_raised_for_its_node_only(tmp_path):
    cases = (Path(__file__).parent / "alerts_test.yml").read_text().replace("ALERTS", str(ALERTS))
    (tmp_path / "test.yml").write_text(cases)
    ran = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "test.yml"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _metrics(text: str) -> set[str]:
    return set(re.findall(r"crosswind_check_\w+", text))


def test_the_plugin_of_node_problem_detector_gives_messages_room():
    found = json.loads((EXAMPLES / "check/node_problem_detector.json").read_text())
    assert found["pluginConfig"]["max_output_length"] == NPD_CHARACTERS
    assert found["rules"][0]["args"][-1] == "npd"


def test_the_reason_of_a_node_that_is_not_sick_claims_nothing_of_an_unknown_one():
    """Node Problem Detector shows the default reason for False and for Unknown."""
    [condition] = json.loads((EXAMPLES / "check/node_problem_detector.json").read_text())["conditions"]
    assert condition["reason"] == "NoLossFoundByLastCheck"
    assert "Unknown: the check gave no verdict" in condition["message"]


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "OK: fine", ""),
        (1, "ERROR: crosswind check: sick", "died 1 crosswind check: sick"),
        (1, "", "logged check_crosswind: exit code 1"),
        (3, "WARNING: crosswind check: unknown", "logged check_crosswind: WARNING: crosswind check: unknown"),
    ],
)
def test_the_nhc_check_drains_only_what_is_sick(code, said, expected):
    stubs = (
        f'crosswind() {{ echo "{said}"; return {code}; }}; die() {{ echo "died $*"; }}; log() {{ echo "logged $*"; }}'
    )
    command = f"{stubs}; source {EXAMPLES / 'check/crosswind.nhc'}; check_crosswind good.json 10%"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == expected
    assert ran.returncode == int(said.startswith("ERROR"))
