"""Slurm's topology.conf as a tree of nodes, and a tree as topology.conf."""

from __future__ import annotations

import pytest

from crosswind import Platform, export_platform, import_platform
from crosswind.errors import DescriptionError

TOPOLOGY = """
# two racks
SwitchName=rack0 Nodes=n[0-1] LinkSpeed=100
switchname=rack1 \\
    nodes=n2,m[08-09]   # five in all
SwitchName=rack2 Nodes=o
SwitchName=top Switches=rack[0-2]
"""
RATES = {"compute_per_s": 2.0, "mb_per_s": 100.0}


def read(tmp_path, text=TOPOLOGY, **more):
    (tmp_path / "topology.conf").write_text(text)
    return import_platform(tmp_path / "topology.conf", **{**RATES, **more})


def test_switches_become_nodes_that_pass_tasks_on(tmp_path):
    found = read(tmp_path, uplink_mb_per_s=40.0)
    rows = {n["name"]: (n.get("parent"), n["compute_per_s"], n.get("receive_limit_mb_per_s")) for n in found.nodes}
    assert rows == {
        "n0": (None, 2.0, None),
        "n1": ("n0", 2.0, 100.0),
        "switch-top": ("n0", 0.0, 40.0),
        "switch-rack1": ("switch-top", 0.0, 40.0),
        "n2": ("switch-rack1", 2.0, 100.0),
        "m08": ("switch-rack1", 2.0, 100.0),
        "m09": ("switch-rack1", 2.0, 100.0),
        "o": ("switch-top", 2.0, 40.0),
    }
    assert found.nodes[0]["send_limit_mb_per_s"] == 100.0


def test_another_root(tmp_path):
    found = {node["name"]: node.get("parent") for node in read(tmp_path, root="o").nodes}
    assert found == {
        "o": None,
        "switch-rack0": "o",
        "n0": "switch-rack0",
        "n1": "switch-rack0",
        "switch-rack1": "o",
        "n2": "switch-rack1",
        "m08": "switch-rack1",
        "m09": "switch-rack1",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SwitchName=a Nodes=x\nSwitchName=a Nodes=y", "topology.conf:2: switch a is there already"),
        ("SwitchName=a Nodes=x\nSwitchName=b Nodes=x", "topology.conf:2: node x is at switch a already"),
        ("SwitchName=a Nodes=x\nSwitchName=b Nodes=y", "topology.conf:2: no switch joins y and x"),
        ("SwitchName=a Switches=b", "topology.conf:1: there is no switch b"),
        ("SwitchName=a Nodes=x\nSwitchName=b Switches=a\nSwitchName=c Switches=a", "switch a is below b and c"),
        ("SwitchName=a Nodes=x Colour=red", "topology.conf:1: `Colour` is not read"),
        ("BlockName=a Nodes=x\nSwitchName=b Nodes=y", "`BlockName` is not read"),
        ("SwitchName=a Nodes=x[3-1]", "`3-1` is no range of numbers"),
        ("SwitchName=a Nodes=x[1-9][0-99999][0-99999]", "stands for more than 1,000,000 hosts"),
        ("SwitchName=a Nodes=x[1", "`x[1` is no list of hosts"),
        ("SwitchName=a Nodes=x,,y", "`x,,y` is no list of hosts"),
        ("SwitchName=a", "no node is in it"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path, text, said):
    with pytest.raises(DescriptionError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert error.value.hint


def test_rates_are_asked_for(tmp_path):
    with pytest.raises(DescriptionError, match="says no rates"):
        read(tmp_path, mb_per_s=None)


def test_a_tree_becomes_switches(tmp_path):
    nodes = [{"name": "r", "compute_per_s": 1.0}]
    for name, parent, rate in (("s", "r", 0.0), ("a", "s", 1.0), ("b", "s", 1.0), ("c", "r", 1.0), ("d", "c", 1.0)):
        nodes.append({"name": name, "parent": parent, "compute_per_s": rate, "receive_limit_mb_per_s": 1.0})
    platform = Platform.from_dict({"schema_version": 1, "name": "six", "node": nodes})
    lost = export_platform(platform, tmp_path / "topology.conf")
    assert [one["code"] for one in lost] == ["left-out"]
    assert (tmp_path / "topology.conf").read_text().splitlines() == [
        "# Crosswind: six",
        "SwitchName=switch-r-nodes Nodes=r",
        "SwitchName=switch-r Switches=switch-r-nodes,s,switch-c",
        "SwitchName=s Nodes=a,b",
        "SwitchName=switch-c Nodes=c,d",
    ]
    again = import_platform(tmp_path / "topology.conf", **RATES)
    assert {node["name"] for node in again.nodes if node["compute_per_s"]} == {"r", "a", "b", "c", "d"}


@pytest.mark.parametrize("root", ["n01", "n04"])
def test_slurm_reads_what_is_written_and_it_reads_as_the_same_tree(tmp_path, root):
    lines = [
        "SwitchName=leaf1 Nodes=n[01-03]",
        "SwitchName=leaf2 Nodes=n[04-05],gpu1",
        "SwitchName=top Switches=leaf[1-2]",
    ]
    first = read(tmp_path, "\n".join(lines), root=root)
    texts = []
    for turn in range(3):
        export_platform(first, tmp_path / f"{turn}.conf")
        texts.append((tmp_path / f"{turn}.conf").read_text().partition("\n")[2])
        # Slurm's parser refuses a switch that has both.
        assert not any("Nodes=" in line and "Switches=" in line for line in texts[-1].splitlines())
        again = import_platform(tmp_path / f"{turn}.conf", root=root, **RATES)
        assert {node["name"]: node.get("parent") for node in again.nodes} == {
            node["name"]: node.get("parent") for node in first.nodes
        }
        first = again
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "BlockName=b1 Nodes=n[1-3]\n", "Nodes=n1\n"])
def test_a_topology_without_switches_is_one_by_its_name(tmp_path, text):
    with pytest.raises(DescriptionError, match=r"topology\.conf.*(no node is in it|is not read)"):
        read(tmp_path, text)
