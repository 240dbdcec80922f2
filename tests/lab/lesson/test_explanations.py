"""What the lesson says of a wrong guess: the mistake's rate, and facts of the simulated run."""

import re

import pytest

from crosswind.lab.lesson.explanations import CLOSE, comparison_of, explanations_of
from crosswind.lab.lesson.scenes import TASKS, scenes_of
from crosswind.lab.papers import table_4
from crosswind.platform import Platform


@pytest.fixture(scope="module")
def scenes():
    return scenes_of(None, 2.0, 5.0)


def setting_of(scenes, link, rate):
    return next(one for one in scenes.settings if (one.link, one.rate_mb_per_s) == (link, rate))


def test_each_mistake_has_the_rate_that_it_leads_to(scenes):
    setting = setting_of(scenes, "Tenn", 1.0)
    arrival, bandwidth = explanations_of(scenes, setting)
    rates = {text.split(" tasks/s is ")[1][:20]: rate for rate, text in arrival.mistakes}
    nodes = table_4.platform()["node"]
    assert rates["what all processors "] == pytest.approx(sum(node["compute_per_s"] for node in nodes) / 5.0)
    assert rates["the bound of every s"] == setting.bound_tasks_per_s
    assert rates["what Lab0 computes a"] == pytest.approx(table_4.ROOT_COMPUTE_PER_S / 5.0)
    assert rates["the rate before the "] == scenes.as_given[0].tasks_per_s
    assert rates["what bandwidth reach"] == setting.scenes[1].tasks_per_s
    # `bandwidth` sends nothing to Tenn at either rate: its rate before the change is no mistake.
    assert not [text for _, text in bandwidth.mistakes if "before the change" in text]


def test_no_mistake_has_a_rate_that_counts_as_right(scenes):
    for setting in scenes.settings:
        for scene, why in zip(setting.scenes, explanations_of(scenes, setting), strict=True):
            for rate, text in why.mistakes:
                assert abs(rate - scene.tasks_per_s) > CLOSE * scene.tasks_per_s
                assert text.startswith(f"{rate:.2f} tasks/s is ")
                assert text.endswith(".")


def test_the_port_and_tasks_that_a_sentence_names_are_those_of_the_run(scenes):
    setting = setting_of(scenes, "Tenn", 1.0)
    names = [node["name"] for node in setting.platform.nodes]
    text = explanations_of(scenes, setting)[0].high
    share, child, tasks, other = re.search(
        r"arrival gives (\d+) % of Lab0's port to (\w+), which computes (\d+) of the 200 tasks \(bandwidth: (\d+) %\)",
        text,
    ).groups()
    arrival, bandwidth = setting.scenes
    at = names.index(child)
    assert child == "Tenn"
    assert (int(share), int(tasks)) == (round(100 * arrival.port[at]), arrival.tasks[at])
    assert int(other) == round(100 * bandwidth.port[at])


def test_a_low_guess_is_told_which_nodes_compute_all_tasks(scenes):
    for setting in scenes.settings[::7]:
        for why in explanations_of(scenes, setting):
            counts = [
                int(number)
                for number in re.findall(r"(\d+)(?: of the 200 tasks)?(?=[,.]| of)", why.low.split("computes")[1])
            ]
            assert sum(counts) == TASKS


def test_which_order_is_faster_is_what_was_simulated(scenes):
    seen = set()
    for setting in scenes.settings:
        arrival, bandwidth = (scene.tasks_per_s for scene in setting.scenes)
        faster, why = comparison_of(setting)
        seen.add(faster)
        if faster == "bandwidth":
            assert bandwidth > 1.05 * arrival
            assert f"{bandwidth / arrival:.2f} times" in why
        else:
            assert faster == ""
            assert abs(bandwidth - arrival) <= 0.0501 * max(arrival, bandwidth)
    assert seen == {"bandwidth", ""}


def test_in_a_tree_the_port_nearest_the_root_that_is_always_sending_is_named():
    """With `old` at 5 MB/s the master's port is full, and the slower rack takes time from the faster one."""
    nodes = [
        {"name": "master", "compute_per_s": 0.0},
        {"name": "rack", "parent": "master", "compute_per_s": 4.0, "receive_limit_mb_per_s": 8.0},
        {"name": "other", "parent": "master", "compute_per_s": 0.0, "receive_limit_mb_per_s": 6.0},
        {"name": "old", "parent": "rack", "compute_per_s": 20.0, "receive_limit_mb_per_s": 0.5},
        {"name": "gpu", "parent": "rack", "compute_per_s": 20.0, "receive_limit_mb_per_s": 10.0},
        {"name": "a", "parent": "other", "compute_per_s": 5.0, "receive_limit_mb_per_s": 4.0},
        {"name": "b", "parent": "other", "compute_per_s": 5.0, "receive_limit_mb_per_s": 2.0},
    ]
    racks = scenes_of(Platform.from_dict({"schema_version": 1, "name": "racks", "node": nodes}), 2.0, 5.0)
    fast = setting_of(racks, "old", 5.0)
    assert "of master's port to other, whose subtree computes" in comparison_of(fast)[1]
    slow = setting_of(racks, "old", 1.0)
    assert "of rack's port to old, which computes" in comparison_of(slow)[1]
