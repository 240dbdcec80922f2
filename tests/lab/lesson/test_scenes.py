"""The lesson's runs: what the page says of them follows from what was simulated."""

import html
import itertools
import xml.etree.ElementTree as xml

import pytest

from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment
from crosswind.lab.lesson import lesson
from crosswind.lab.lesson.scenes import ORDERS, TASKS, scenes_of
from crosswind.lab.papers import table_4
from crosswind.platform import Platform
from crosswind.run.grid import run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def scenes():
    return scenes_of(None, 2.0, 5.0)


def triples(flat):
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def test_under_arrival_the_slowest_link_holds_the_port_from_2_to_22_s(scenes):
    names = [node["name"] for node in scenes.platform.nodes]
    held = [
        (start, start + length) for child, start, length in triples(scenes.as_given[0].sends) if names[child] == "Tenn"
    ]
    (first, between), (again, end) = held[:2]
    assert 2_000 < first < 3_000
    assert between == again
    assert end - first == 20_000


def test_the_port_sends_to_one_child_at_a_time_in_every_scene(scenes):
    every = [*scenes.as_given, *(scene for setting in scenes.settings for scene in setting.scenes)]
    assert len(every) > 80
    for scene in every:
        sends = triples(scene.sends)
        for (_, start, length), (_, following, _) in itertools.pairwise(sends):
            assert following >= start + length - 1  # rounded to ms


def test_no_outcome_beats_its_bound_and_bandwidth_is_never_far_behind(scenes):
    for setting in scenes.settings:
        arrival, bandwidth = (scene.tasks_per_s for scene in setting.scenes)
        assert max(arrival, bandwidth) <= setting.bound_tasks_per_s * (1 + 1e-9) + 2 / TASKS * setting.bound_tasks_per_s
        assert bandwidth >= 0.9 * arrival


def test_an_outcome_is_what_the_simulator_says_of_the_changed_fork(scenes):
    setting = next(one for one in scenes.settings if (one.link, one.rate_mb_per_s) == ("Tenn", 5.0))
    platform = table_4.platform()
    platform["node"][-1]["receive_limit_mb_per_s"] = 5.0
    for scene, order in zip(setting.scenes, ORDERS, strict=True):
        description = {
            "schema_version": 1,
            "name": "again",
            "platform": platform,
            "workload": {"kind": "farm", "tasks": TASKS, "task_size_mb": 2.0, "task_work": 5.0},
            "policy": {"order": order, "ports": "single", "buffer_tasks": 2, "level_end": False},
        }
        assert scene.makespan_s == run(Experiment.from_dict(description))[0].makespan_s


def test_the_same_arguments_give_the_same_bytes(tmp_path):
    one, two = (lesson(out=tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert one == two


def tree(*edges):
    """Return a platform of (name, parent, MB/s, work units/s), the root first."""
    nodes = [
        {
            "name": name,
            "compute_per_s": rate,
            **({"parent": parent, "receive_limit_mb_per_s": link} if parent else {}),
        }
        for name, parent, link, rate in edges
    ]
    return Platform.from_dict({"schema_version": 1, "name": "tree", "node": nodes})


TWO_RACKS = (
    ("master", None, 0, 0.0),
    ("rack", "master", 8.0, 4.0),
    ("other", "master", 6.0, 0.0),
    ("old", "rack", 0.5, 20.0),
    ("a", "other", 4.0, 5.0),
    ("gpu", "rack", 10.0, 20.0),
    ("b", "other", 2.0, 5.0),
)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([("r", None, 0, 1.0), ("a", "r", 1.0, 1.0)], "has 1 nodes below its root; it must have 2 to 12"),
        (
            [("r", None, 0, 1.0), *((f"c{at}", "r", 1.0, 1.0) for at in range(13))],
            "has 13 nodes below its root; it must have 2 to 12",
        ),
        (
            [
                ("r", None, 0, 1.0),
                ("a", "r", 1.0, 1.0),
                ("b", "a", 1.0, 1.0),
                ("c", "b", 1.0, 1.0),
                ("d", "c", 1.0, 1.0),
            ],
            "node 'd' is 4 levels below the root; it must be at most 3",
        ),
        (
            [("r", None, 0, 1.0), ("a", "r", 1.0, 1.0), ("b", "a", 1.0, 1.0)],
            "no node of tree has two children, so there is no order of service",
        ),
    ],
)
def test_a_tree_without_an_order_or_too_large_for_a_page_is_refused(tmp_path, edges, said):
    with pytest.raises(DescriptionError, match=said):
        lesson(tree(*edges), tmp_path / "lesson.html")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def racks():
    return scenes_of(tree(*TWO_RACKS), 2.0, 5.0)


def test_a_subtree_of_a_lesson_stands_in_one_piece_and_siblings_keep_their_order(racks):
    names = [node["name"] for node in racks.platform.nodes]
    assert names == ["master", "rack", "old", "gpu", "other", "a", "b"]


def test_in_a_tree_each_port_sends_to_one_of_its_own_children_at_a_time(racks):
    nodes = list(racks.platform.nodes)
    for scene in racks.as_given:
        sends = triples(scene.sends)
        for sender in ("master", "rack", "other"):
            own = [one for one in sends if nodes[one[0]]["parent"] == sender]
            for (_, start, length), (_, following, _) in itertools.pairwise(own):
                assert following >= start + length - 1  # rounded to ms
        assert sum(scene.tasks) == TASKS
        assert scene.tasks[0] == scene.tasks[4] == 0  # compute nothing
        assert max(scene.busy) <= 1.0 + 1e-9


def test_the_share_of_a_port_is_what_its_sends_take_of_the_run(racks):
    arrival, bandwidth = racks.as_given
    held = dict.fromkeys(range(len(arrival.port)), 0)
    for child, _, length in triples(bandwidth.sends):
        held[child] += length
    assert racks.window_s >= bandwidth.makespan_s  # the whole run is in the scene
    for place, share in enumerate(bandwidth.port):
        assert share == pytest.approx(held[place] / 1000 / bandwidth.makespan_s, abs=2e-3)
    names = [node["name"] for node in racks.platform.nodes]
    assert arrival.port[names.index("old")] > 0.8
    assert bandwidth.port[names.index("old")] == 0.0


def test_a_tree_is_taught_with_its_own_words(tmp_path):
    page = html.unescape(lesson(tree(*TWO_RACKS), tmp_path / "lesson.html").read_text())
    assert "master has 200 tasks for the 6 nodes below it. Each parent sends to one of its children at a time." in page
    assert "holds rack's only port for 4 s" in page
    assert "its subtree computes at most, tasks/s" in page
    assert "<td>rack</td>" in page
    fork = lesson(out=tmp_path / "fork.html").read_text()
    assert "holds the only port for 10 s" in fork
    assert "its subtree computes" not in fork


def test_the_figures_for_slides_show_the_tree_and_both_orders(tmp_path):
    lesson(tree(*TWO_RACKS), tmp_path / "lesson.html", figures=tmp_path / "slides")
    written = sorted(path.name for path in (tmp_path / "slides").iterdir())
    assert written == [
        f"{name}.{kind}" for name in ("arrival", "bandwidth", "orders", "tree") for kind in ("png", "svg")
    ]
    drawn = {name: xml.fromstring((tmp_path / "slides" / f"{name}.svg").read_text()) for name in ("arrival", "tree")}
    words = {name: ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")] for name, svg in drawn.items()}
    assert {"master", "only sends", "0.5 MB/s", "gpu"} <= set(words["tree"])
    assert {"port of rack", "port of other", "old"} <= set(words["arrival"])
    assert (tmp_path / "slides" / "tree.png").read_bytes().startswith(b"\x89PNG")
    width = float(drawn["arrival"].get("width"))
    for rect in drawn["arrival"].iter(f"{SVG}rect"):
        if rect.get("x"):
            assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= width


@pytest.mark.parametrize("field", ["task_size_mb", "task_work"])
def test_a_task_of_no_size_or_work_is_refused_by_name(tmp_path, field):
    with pytest.raises(DescriptionError, match=field):
        lesson(out=tmp_path / "lesson.html", **{field: 0.0})


def test_a_root_that_only_sends_is_taught_as_well(tmp_path):
    """The master of textbooks computes nothing: `root-only` would never end, and the rule does not either."""
    root = {"name": "master", "compute_per_s": 0.0}
    limits = {"a": 4.0, "b": 2.0, "c": 1.0}
    children = [
        {"name": name, "parent": "master", "compute_per_s": k + 1.0, "receive_limit_mb_per_s": limit}
        for k, (name, limit) in enumerate(limits.items())
    ]
    fork = Platform.from_dict({"schema_version": 1, "name": "master and three", "node": [root, *children]})
    page = lesson(fork, tmp_path / "lesson.html", task_size_mb=1.0, task_work=1.0).read_text()
    assert "master computes nothing" in page
    assert "<code>root-only</code>" not in page
    assert "children wait" in page


@pytest.mark.parametrize(
    ("costs", "same"),
    [
        ({}, True),
        ({"ir_send_s_per_mb": 0.05}, False),
        ({"send_losses": [[2.0, 0.1], [4.0, 0.3]]}, False),
        ({"send_losses": [[2.0, 0.1]], "ir_send_s_per_mb": 0.0}, False),
        ({"send_losses": [[4.0, 0.0]], "ir_send_s_per_mb": 0.05}, True),  # the losses stand in the place of the rate
    ],
)
def test_a_page_says_that_sending_costs_nothing_only_where_that_is_so(tmp_path, costs, same):
    nodes = [{"name": "root", "compute_per_s": 2.0}]
    nodes += [
        {"name": name, "parent": "root", "compute_per_s": 1.0, "receive_limit_mb_per_s": limit, **costs}
        for name, limit in (("a", 4.0), ("b", 2.0))
    ]
    fork = Platform.from_dict({"schema_version": 1, "name": "fork", "node": nodes})
    page = lesson(fork, tmp_path / "lesson.html", task_size_mb=1.0, task_work=1.0).read_text()
    assert ("so both orders are the same here" in page) == same
    assert ("what sending costs root's own computation" in page) != same
