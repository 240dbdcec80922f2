"""Platforms of SimGrid as trees of nodes: by hand, there and back, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind import Platform, export_platform, import_platform
from crosswind.errors import DescriptionError
from crosswind.exchange import simgrid

HEAD = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"


def written(tmp_path, zone, version="4.1"):
    path = tmp_path / "made.xml"
    path.write_text(f'{HEAD}<platform version="{version}">\n{zone}\n</platform>\n')
    return path


def shape(platform):
    """Name -> parent, receive limit, send limit, latency in us."""
    return {
        node["name"]: (
            node.get("parent"),
            node.get("receive_limit_mb_per_s"),
            node.get("send_limit_mb_per_s"),
            round(1e6 * float(node.get("latency_s") or 0)),
        )
        for node in platform.nodes
    }


def test_a_cluster_may_be_the_whole_platform(tmp_path):
    found = shape(import_platform(written(tmp_path, CLUSTER.format(more=""))))
    assert found["n0"] == (None, None, 125.0, 0)
    assert found["n1"] == ("n0", 125.0, None, 100)


CLUSTER = '<cluster id="c" prefix="n" suffix="" radical="0-2" speed="2Gf" bw="1Gbps" lat="50us" {more}/>'


def test_a_cluster_without_a_backbone_is_a_star_whose_root_sends_over_its_own_link(tmp_path):
    path = written(tmp_path, f'<zone id="w" routing="Full">{CLUSTER.format(more="")}</zone>')
    assert shape(import_platform(path)) == {
        "n0": (None, None, 125.0, 0),
        "n1": ("n0", 125.0, None, 100),
        "n2": ("n0", 125.0, None, 100),
    }


def test_a_backbone_that_is_shared_limits_what_the_root_sends(tmp_path):
    more = 'bb_bw="100MBps" bb_lat="1ms"'
    path = written(tmp_path, f'<zone id="w" routing="Full">{CLUSTER.format(more=more)}</zone>')
    assert shape(import_platform(path, root="n2")) == {
        "n2": (None, None, 100.0, 0),
        "n0": ("n2", 125.0, None, 1100),
        "n1": ("n2", 125.0, None, 1100),
    }


def test_a_backbone_that_nobody_shares_limits_each_node(tmp_path):
    more = 'bb_bw="100MBps" bb_lat="1ms" bb_sharing_policy="FATPIPE"'
    path = written(tmp_path, f'<zone id="w" routing="Full">{CLUSTER.format(more=more)}</zone>')
    found = shape(import_platform(path))
    assert found["n0"] == (None, None, 125.0, 0)
    assert found["n1"] == found["n2"] == ("n0", 100.0, None, 1100)


TWO_SITES = """
<zone id="w" routing="Full">
  <cluster id="a" prefix="a" suffix="" radical="0-1" speed="1Gf" bw="100MBps" lat="0"/>
  <cluster id="b" prefix="b" suffix="" radical="0-1" speed="4Gf" core="2" bw="100MBps" lat="0"/>
  <link id="wan" bandwidth="20MBps" latency="10ms"/>
  <zoneRoute src="a" dst="b" gw_src="aa_router" gw_dst="bb_router"><link_ctn id="wan"/></zoneRoute>
</zone>"""


def test_a_link_that_several_hosts_share_is_a_node_that_passes_tasks_on(tmp_path):
    found = import_platform(written(tmp_path, TWO_SITES))
    assert shape(found) == {
        "a0": (None, None, 100.0, 0),
        "a1": ("a0", 100.0, None, 0),
        "switch-wan": ("a0", 20.0, None, 10000),
        "b0": ("switch-wan", 100.0, None, 0),
        "b1": ("switch-wan", 100.0, None, 0),
    }
    rates = {node["name"]: node["compute_per_s"] for node in found.nodes}
    assert rates == {"a0": 1.0, "a1": 1.0, "switch-wan": 0.0, "b0": 8.0, "b1": 8.0}
    assert {one["code"] for one in found.warnings} == {"switches", "cores", "network-model"}


def test_the_way_back_of_a_zone_route_is_read_too(tmp_path):
    found = shape(import_platform(written(tmp_path, TWO_SITES), root="b1"))
    assert found["switch-wan"] == ("b1", 20.0, None, 10000)
    assert found["a0"] == found["a1"] == ("switch-wan", 100.0, None, 0)


def test_routes_that_are_joined_take_fewest_links_and_pass_hosts(tmp_path):
    zone = """
    <zone id="w" routing="Floyd">
      <host id="r" speed="1Gf"/><router id="s"/><host id="x" speed="100Mf, 50Mf" pstate="0"/><host id="y" speed="3e9"/>
      <link id="1" bandwidth="10MBps" latency="1ms"/><link id="2" bandwidth="8MBps" latency="1ms"/>
      <link id="3" bandwidth="5MBps" latency="2ms"/><link id="4" bandwidth="1MBps" latency="2ms"/>
      <route src="r" dst="s"><link_ctn id="1"/></route>
      <route src="s" dst="x"><link_ctn id="2"/></route>
      <route src="x" dst="y"><link_ctn id="3"/></route>
      <route src="r" dst="y"><link_ctn id="1"/><link_ctn id="2"/><link_ctn id="3"/><link_ctn id="4"/></route>
    </zone>"""
    found = import_platform(written(tmp_path, zone))
    assert shape(found) == {
        "r": (None, None, None, 0),
        "x": ("r", 8.0, None, 2000),
        "y": ("x", 5.0, None, 2000),
    }
    assert [node["compute_per_s"] for node in found.nodes] == [1.0, 0.1, 3.0]


def test_cabinets_and_host_links_of_a_zone_routed_as_a_cluster(tmp_path):
    zone = """
    <zone id="w" routing="Cluster">
      <link id="l" bandwidth="10MBps" latency="1ms" sharing_policy="SPLITDUPLEX"/>
      <host id="r" speed="1Gf"/><host_link id="r" up="l_UP" down="l"/>
      <cabinet id="k" prefix="k" suffix=".x" radical="7,9" speed="1Gf" bw="4MBps" lat="1ms"/>
      <backbone id="bb" bandwidth="6MBps" latency="0"/>
    </zone>"""
    assert shape(import_platform(written(tmp_path, zone))) == {
        "r": (None, None, 6.0, 0),
        "k7.x": ("r", 4.0, None, 2000),
        "k9.x": ("r", 4.0, None, 2000),
    }


HOST = '<host id="r" speed="1Gf"/><host id="x" speed="1Gf"/>'
LINK = '<link id="l" bandwidth="1MBps" latency="0"/>'
ROUTE = '<route src="r" dst="x"><link_ctn id="l"/></route>'
MESH = """<host id="r" speed="1Gf"/><host id="x" speed="1Gf"/><host id="y" speed="1Gf"/>
<link id="1" bandwidth="1MBps" latency="0"/><link id="2" bandwidth="1MBps" latency="0"/>
<link id="3" bandwidth="1MBps" latency="0"/>
<route src="r" dst="x"><link_ctn id="1"/><link_ctn id="3"/></route>
<route src="r" dst="y"><link_ctn id="2"/><link_ctn id="3"/></route>"""


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (MESH, "made.xml:6: the routes from r are no tree: those to x and to y meet in link 3 on different ways"),
        (HOST + LINK, "made.xml:4: <zone> z: no route leads from r to x"),
        (f'{HOST}<route src="r" dst="x"></route>', "no link lies between r and x"),
        (f'{HOST}<route src="r" dst="x"><link_ctn id="l"/></route>', "<link_ctn> l: there is no link l"),
        (HOST + LINK + ROUTE.replace('"x"', '"q"'), "<route> r -> q: q is not in zone z"),
        (HOST.replace("1Gf", "1GB"), '<host> r: speed="1GB" is no speed'),
        (HOST.replace("1Gf", "-1"), 'speed="-1" is no speed'),
        (HOST.replace("1Gf", "nan"), 'speed="nan" is no speed'),
        (HOST.replace('"x"', '"r"'), "<host> r: r is there already"),
        (LINK.replace("1MBps", "0"), 'bandwidth="0" is no bandwidth'),
        (LINK.replace("1MBps", "1e999MBps"), 'bandwidth="1e999MBps" is no bandwidth'),
        (LINK + LINK, "a link of that name is there already"),
        ('<link id="l" bandwidth="1Bps" latency="0" sharing_policy="WIFI"/>', "WIFI links have no counterpart"),
        ('<peer id="p" speed="1Gf" bw_in="1Bps" bw_out="1Bps"/>', "<peer> p: has no counterpart"),
        ('<bypassRoute src="r" dst="x"/>', "<bypassRoute> r -> x: has no counterpart"),
        (CLUSTER.format(more='topology="TORUS" topo_parameters="3"'), "<cluster> c: a TORUS has several ways"),
        (CLUSTER.format(more="").replace("0-2", "2-0"), "`2-0` is no range of numbers"),
        (CLUSTER.format(more="").replace("0-2", "0-999999999"), "stands for more than 1,000,000 hosts"),
        ('<host id="r" speed="1Gf" core="0"/>', 'core="0" is no number of cores'),
        ("<host/>", "<host>: no attribute `id`"),
        ("", "no host is in it"),
        ("<zone id='i'", "made.xml:4: not well-formed"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path, inside, said):
    with pytest.raises(DescriptionError) as error:
        import_platform(written(tmp_path, f'<zone id="z" routing="Full">{inside}</zone>'))
    assert said in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{HEAD}<platform version="3"/>', 'version="3" is not read'),
        (f"{HEAD}<adag/>", "<adag>: no platform of SimGrid"),
        ("<!DOCTYPE p [<!ENTITY a 'aa'>]>\n<platform/>", "entity a is declared"),
        ("<a>" * 200, "more than 100 elements inside of each other"),
        ("<", "unclosed token"),
    ],
)
def test_what_is_no_platform_is_refused(tmp_path, text, said):
    (tmp_path / "odd.xml").write_text(text)
    with pytest.raises(DescriptionError) as error:
        import_platform(tmp_path / "odd.xml")
    assert said in str(error.value)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_tree_that_is_written_and_read_is_the_same(tmp_path_factory, data):
    count = data.draw(st.integers(1, 12))
    rate = st.floats(0.001, 1e6)
    nodes = [{"name": "n0", "compute_per_s": data.draw(rate)}]
    for number in range(1, count):
        node = {"name": f"n{number}", "parent": f"n{data.draw(st.integers(0, number - 1))}"}
        node |= {"compute_per_s": data.draw(rate), "receive_limit_mb_per_s": data.draw(rate)}
        node["latency_s"] = data.draw(st.floats(0, 1))
        nodes.append(node)
    children = [sum(node.get("parent") == one["name"] for node in nodes) for one in nodes]
    for node, below in zip(nodes, children, strict=True):
        if below > 1 and data.draw(st.booleans()):  # of one child alone, the receive limit says it all
            node["send_limit_mb_per_s"] = data.draw(rate)
    before = Platform.from_dict({"schema_version": 1, "name": "drawn", "node": nodes})
    path = tmp_path_factory.mktemp("there") / "drawn.xml"
    assert export_platform(before, path) == []
    after = import_platform(path)
    nodes, again = ({node["name"]: _given(node) for node in platform.nodes} for platform in (before, after))
    assert nodes.keys() == again.keys()
    for name, (parent, rates) in nodes.items():
        assert again[name][0] == parent
        assert again[name][1] == pytest.approx(rates, rel=1e-12)  # they went through flop/s and bytes/s


def _given(node):
    """The parent, and the numbers that are not at their default."""
    numbers = {key: value for key, value in node.items() if value and key not in ("name", "parent")}
    return node.get("parent"), numbers


def test_what_simgrid_has_no_place_for_is_said():
    root = {"name": "r", "compute_per_s": 1.0}
    leaf = {"name": "a", "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0, "ir_send_s_per_mb": 0.1}
    _, lost = simgrid.text_of(Platform.from_dict({"schema_version": 1, "name": "p", "node": [root, leaf]}))
    assert [one["code"] for one in lost] == ["interference"]


def test_names_with_signs_of_xml_come_back(tmp_path):
    names = ['a"b', "<&>", "--"]
    nodes = [{"name": names[0], "compute_per_s": 1.0}]
    nodes += [
        {"name": one, "parent": names[0], "compute_per_s": 1.0, "receive_limit_mb_per_s": 2.0} for one in names[1:]
    ]
    export_platform(Platform.from_dict({"schema_version": 1, "name": "--<x>", "node": nodes}), tmp_path / "odd.xml")
    assert [node["name"] for node in import_platform(tmp_path / "odd.xml").nodes] == names
