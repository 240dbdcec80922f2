"""The topology of a machine as a tree of nodes, and a tree as a topology. The files are exports of lstopo 2.9.0."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crosswind import Platform, export_platform, import_platform
from crosswind.cli import app
from crosswind.errors import DescriptionError

TOPOLOGIES = Path(__file__).parent / "topologies"
RATES = {"compute_per_s": 2.0, "mb_per_s": 100.0}


def rows(platform):
    return {n["name"]: (n.get("parent"), n["compute_per_s"], n.get("receive_limit_mb_per_s")) for n in platform.nodes}


@pytest.mark.parametrize("name", ["two-packages", "two-packages-of-version-1"])
def test_cores_are_nodes_and_packages_and_numa_domains_pass_tasks_on(name):
    found = import_platform(TOPOLOGIES / f"{name}.xml", uplink_mb_per_s=40.0, **RATES)
    expected = {"machine": (None, 0.0, None)}
    for package in range(2):
        expected[f"switch-package-{package}"] = ("machine", 0.0, 40.0)
        for numa in range(2 * package, 2 * package + 2):
            expected[f"switch-numa-{numa}"] = (f"switch-package-{package}", 0.0, 40.0)
            for core in range(3 * numa, 3 * numa + 3):
                expected[f"core-{core}"] = (f"switch-numa-{numa}", 2.0, 100.0)
    assert rows(found) == expected
    assert [one["code"] for one in found.warnings] == ["switches", "given-rates", "threads"]


def test_the_cores_of_a_single_package_share_what_leaves_the_memory():
    found = import_platform(TOPOLOGIES / "virtual-machine.xml", uplink_mb_per_s=150.0, **RATES)
    assert found.name == "vm"
    assert rows(found) == {
        "machine": (None, 0.0, None),
        "core-0": ("machine", 2.0, 100.0),
        "core-1": ("machine", 2.0, 100.0),
    }
    assert found.nodes[0]["send_limit_mb_per_s"] == 150.0
    assert [one["code"] for one in found.warnings] == ["given-rates"]


def test_a_core_as_the_root(tmp_path):
    found = import_platform(TOPOLOGIES / "two-packages.xml", root="core-4", uplink_mb_per_s=40.0, **RATES)
    parents = {node["name"]: node.get("parent") for node in found.nodes}
    assert parents["core-4"] is None
    assert parents["core-3"] == parents["core-5"] == "core-4"
    assert "machine" not in parents
    assert parents["switch-package-1"] == "switch-out of numa-1"
    assert sum(node["compute_per_s"] for node in found.nodes) == 24.0


TINY = """<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0">
  <object type="Machine" cpuset="0x7" allowed_cpuset="0x5">
    <object type="Core" cpuset="0x1"/>
    <object type="Core" cpuset="0x2"/>
    <object type="PU" cpuset="0x4"/>
    <object type="Misc"/>
  </object>
  <cpukind cpuset="0x1"/>
  <cpukind cpuset="0x6"/>
</topology>
"""


def read(tmp_path, text=TINY, **more):
    (tmp_path / "machine.xml").write_text(text)
    return import_platform(tmp_path / "machine.xml", **{**RATES, **more})


def test_cores_that_may_not_be_used_are_left_out(tmp_path):
    found = read(tmp_path)
    assert [node["name"] for node in found.nodes] == ["machine", "core-0", "core-2"]
    found = {one["code"]: one["message"] for one in found.warnings}
    assert found["left-out"].startswith("1 cores are left out (core-1)")
    assert found["kinds"].startswith("the machine has cores of 2 kinds")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('type="PU"', 'type="Anvil"', 'machine.xml:6: <object> Anvil: type="Anvil" is not read'),
        (
            '<object type="Misc"/>',
            '<object type="Machine"/>',
            "machine.xml:7: <object> Machine: a Machine lies in another",
        ),
        ('version="2.0"', 'version="3.0"', 'machine.xml:2: <topology>: version="3.0" is not read'),
        (
            'type="Machine"',
            'type="System"',
            "machine.xml:3: <object> System: the outermost object is no single Machine",
        ),
        ('cpuset="0x1"', 'cpuset="one"', 'machine.xml:4: <object> Core: cpuset="one" is no set of CPUs'),
        ('allowed_cpuset="0x5"', 'allowed_cpuset="0x8"', "machine.xml:3: <object> Machine: no core that may be used"),
        (
            '<object type="Core" cpuset="0x1"/>',
            '<object cpuset="0x1"/>',
            "machine.xml:4: <object>: no attribute `type`",
        ),
        ("</topology>", "", "machine.xml:12: no element found"),
        ("<topology", '<!DOCTYPE a [<!ENTITY b "c">]><topology', "machine.xml:2: entity b is declared"),
    ],
)
def test_what_is_no_topology_of_one_machine_is_refused_with_its_line(tmp_path, old, new, said):
    with pytest.raises(DescriptionError) as refused:
        read(tmp_path, TINY.replace(old, new, 1))
    assert str(refused.value).partition("machine.xml")[2].startswith(said.partition("machine.xml")[2]), refused.value
    assert refused.value.hint


def test_rates_and_a_root_that_it_has_are_asked_for(tmp_path):
    with pytest.raises(DescriptionError, match="a topology of hwloc says no rates"):
        read(tmp_path, mb_per_s=None)
    with pytest.raises(DescriptionError, match="there is no node core-9"):
        read(tmp_path, root="core-9")


NODES = [
    {"name": "r", "compute_per_s": 2.0},
    {"name": "a & b", "parent": "r", "compute_per_s": 0.0, "receive_limit_mb_per_s": 10.0},
    *({"name": f"a{n}", "parent": "a & b", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0} for n in range(33)),
    {"name": "c", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0},
    {"name": "empty", "parent": "r", "compute_per_s": 0.0, "receive_limit_mb_per_s": 10.0},
]
TREE = Platform.from_dict({"schema_version": 1, "name": "tree -- of <two>", "node": NODES})


def test_a_tree_is_written_with_a_core_for_each_node_that_computes(tmp_path):
    (left_out,) = export_platform(TREE, tmp_path / "tree.hwloc.xml")
    assert left_out["code"] == "left-out"
    found = import_platform(tmp_path / "tree.hwloc.xml", **RATES)
    parents = {node["name"]: node.get("parent") for node in found.nodes}
    assert list(parents) == ["machine", "core-0", "switch-group-0", *(f"core-{n}" for n in range(1, 34)), "core-34"]
    assert parents["core-33"] == "switch-group-0"
    assert parents["core-34"] == "machine"


def test_lstopo_shows_what_is_written(tmp_path):
    lstopo = shutil.which("lstopo-no-graphics")
    if lstopo is None:
        pytest.skip("hwloc is not installed")
    export_platform(TREE, tmp_path / "tree.hwloc.xml")
    command = [lstopo, "-i", str(tmp_path / "tree.hwloc.xml"), "--of", "console"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not shown.stderr
    assert shown.stdout.count("Core L#") == 35
    assert "Group" in shown.stdout


def test_a_tree_without_a_node_that_computes_is_refused(tmp_path):
    nodes = [{"name": "r", "compute_per_s": 0.0}]
    with pytest.raises(DescriptionError, match="no node computes"):
        export_platform(
            Platform.from_dict({"schema_version": 1, "name": "none", "node": nodes}), tmp_path / "a.hwloc.xml"
        )


def test_the_command_line_reads_and_writes_it(tmp_path):
    out = tmp_path / "back.hwloc.xml"
    arguments = ["platform", str(TOPOLOGIES / "two-packages.xml"), "--compute-per-s", "20", "--mb-per-s", "10000"]
    done = CliRunner().invoke(app, [*arguments, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "12 computing nodes" in done.output
    again = CliRunner().invoke(app, [*arguments, "-o", str(out)])
    assert again.exit_code == 0, "it is a file of Crosswind's, which may be replaced"
