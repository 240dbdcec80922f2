"""The examples for other systems ask for what a check gives."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checks import checked

from crosswind.check.formats import NPD_CHARACTERS
from crosswind.check.metrics import metrics

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_dashboard_asks_only_for_metrics_that_are_written():
    panels = json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in _metrics(target["expr"])}
    written = _metrics(metrics(checked(base=checked())))
    assert asked
    assert asked <= written


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_prometheus_takes_the_metrics():
    text = metrics(checked(base=checked()))
    ran = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def _metrics(text: str) -> set[str]:
    return set(re.findall(r"crosswind_check_\w+", text))


def test_the_plugin_of_node_problem_detector_gives_messages_room():
    found = json.loads((EXAMPLES / "check/node_problem_detector.json").read_text())
    assert found["pluginConfig"]["max_output_length"] == NPD_CHARACTERS
    assert found["rules"][0]["args"][-1] == "npd"


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
