"""The lesson's runs: what the page says of them follows from what was simulated."""

import itertools

import pytest

from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment
from crosswind.lab.lesson import lesson
from crosswind.lab.lesson.scenes import ORDERS, TASKS, scenes_of
from crosswind.lab.papers import table_4
from crosswind.platform import Platform
from crosswind.run.grid import run


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


def test_a_tree_that_is_not_a_fork_is_refused_with_the_node_and_its_parent(tmp_path):
    root = {"name": "r", "compute_per_s": 1.0}
    a = {"name": "a", "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0}
    deep = Platform.from_dict(
        {"schema_version": 1, "name": "deep", "node": [root, a, {**a, "name": "b", "parent": "a"}]}
    )
    with pytest.raises(DescriptionError, match="node 'b' has the parent 'a'; in a fork"):
        lesson(deep, tmp_path / "lesson.html")
    pair = Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, a]})
    with pytest.raises(DescriptionError, match="has 1 children; it must have 2 to 12"):
        lesson(pair, tmp_path / "lesson.html")
    assert list(tmp_path.iterdir()) == []


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
    assert "children wait for a task" in page


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
