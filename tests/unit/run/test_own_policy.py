"""Policies of the user's own: those of the guide run, equal the built-in ones, and are refused by name."""

import json
import re
from pathlib import Path

import pytest

from crosswind import CrosswindError, DescriptionError, Experiment, Runs
from crosswind.run import grid
from crosswind.run.rerun import run_again

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "write-a-policy.md"
NODES = [
    {"name": "r", "compute_per_s": 2.0},
    {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0, "ir_send_s_per_mb": 0.02},
    {"name": "b", "parent": "r", "compute_per_s": 9.0, "receive_limit_mb_per_s": 3.0, "latency_s": 0.001},
    {"name": "c", "parent": "b", "compute_per_s": 3.0, "receive_limit_mb_per_s": 5.0},
]
TREE = {"schema_version": 1, "name": "tree", "node": NODES}
WORK = {"distribution": "lognormal", "median": 1.0, "sigma": 0.7}
FARM = {"kind": "farm", "tasks": 60, "task_size_mb": {"distribution": "exponential", "mean": 1.0}, "task_work": WORK}


@pytest.fixture
def guide(tmp_path):
    """The directory with the files of the guide."""
    for name, body in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', GUIDE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(body)
    return tmp_path


def experiment(directory, orders, **other):
    policy = {"level_end": False, "ports": "single"} | other.pop("policy", {})
    sweep = {"policy.order": orders} | other.pop("sweep", {})
    description = {"schema_version": 1, "name": "e", "platform": TREE, "workload": FARM, "policy": policy}
    return Experiment.from_dict(description | {"sweep": sweep, "repetitions": 3} | other, directory)


def results(runs):
    """Makespans and nodes by order and the rest of the point."""
    found = {}
    for run in runs:
        found.setdefault(run.params["policy.order"], []).append((run.makespan_s, run.nodes))
    return found


def test_the_guides_policy_is_the_built_in_order_to_the_last_bit(guide):
    own = "python:my_policy.py:BandwidthCentric"
    # No send limit: with several ports a built-in order interrupts sends within one.
    sweep = {"policy.ports": ["single", "multi"], "policy.buffer_tasks": [1, 3]}
    found = results(grid.run(experiment(guide, [own, "bandwidth"], sweep=sweep)))
    assert found[own] == found["bandwidth"]
    assert len(found[own]) == 12


def test_the_guides_experiment_and_its_second_policy_run(guide):
    runs = grid.run(guide / "mine.toml")
    found = results(runs)
    own = "python:my_policy.py:BandwidthCentric"
    assert found[own] == found["bandwidth"] != found["arrival"]
    assert {run.data["order"] for run in runs} == {own, "bandwidth", "arrival"}
    longest = grid.run(experiment(guide, ["python:longest_first.py:LongestFirst"]))
    assert [run.data["tasks"] for run in longest] == [60, 60, 60]


def test_runs_with_a_policy_are_the_same_again_without_its_file_and_only_on_demand(guide):
    out = guide / "runs.json"
    grid.run(experiment(guide, ["python:my_policy.py:BandwidthCentric", "arrival"]), out=out)
    assert {run.data["order"] for run in Runs.load(out)} == {"python:my_policy.py:BandwidthCentric", "arrival"}
    (guide / "my_policy.py").unlink()
    with pytest.raises(DescriptionError, match="would run with your rights"):
        run_again(out)
    assert run_again(out, allow_code=True).verdict == "same"


def written(directory, body, name="Mine"):
    (directory / "mine.py").write_text(f"from crosswind.policy import Policy\n\n\n{body}")
    return experiment(directory, [f"python:mine.py:{name}"])


SEEN = """class Mine(Policy):
    def __init__(self, node):
        self.counts = {"ask": 0, "arrival": 0, "done": 0}

    def choose(self, node):
        assert node.waiting == len(node.tasks) > 0
        assert node.open or node.idle
        for child in node.open:
            assert child.requested > 0 and not child.sending and not child.gone
        assert not node.idle, "an idle processor has taken its task"
        return node.open[0]

    def on_ask(self, node, child):
        assert child in node.children and child.requested > 0
        self.counts["ask"] += 1
        return node.open[0] if node.open else None

    def on_done(self, node, task):
        assert task.work > 0 and task.size_mb > 0
        self.counts["done"] += 1
        if node.is_root and self.counts["done"] == 60:
            LOG.append((node.name, node.time_s, node.seed, self.counts))
        return self.choose(node) if node.open else None


LOG = []
"""


def test_it_sees_a_consistent_node_and_every_event(tmp_path):
    made = written(tmp_path, SEEN)
    runs = grid.run(made)
    log = made.point(0).policy._module().LOG
    assert [(name, seed) for name, _, seed, _ in log] == [("r", 1), ("r", 2), ("r", 3)]
    for (_, time_s, _, counts), run in zip(log, runs, strict=True):
        assert time_s >= run.makespan_s
        assert counts["done"] == 60
        assert counts["ask"] > 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    def choose(self, node): return 3", r"Mine\.\w+ returned 3; it must be a child, the node itself"),
        ("    def choose(self, node): return (node.open[0], 5)", r"it must be a child, the node itself"),
        ("    def choose(self, node): return node", "chose to compute here, but the processor computes task"),
        (
            "    def choose(self, node): return node.children[0]",
            "requested no task|a task is under way|port sends to",
        ),
        ("    own_first = False\n    def choose(self, node): return None", "it lets 60 tasks wait"),
        ("    def __init__(self, node): self.x = node.colour", r"Mine\.__init__ raised AttributeError"),
        ("    def choose(self, node): return {}['near']", r"Mine\.\w+ raised KeyError: 'near'"),
        ("    pass", r"Mine\.\w+ raised NotImplementedError: Mine has no method choose"),
    ],
)
def test_what_it_may_not_choose_is_refused_with_the_node_and_the_time(tmp_path, body, words):
    with pytest.raises(CrosswindError, match=words) as caught:
        grid.run(written(tmp_path, f"class Mine(Policy):\n{body}\n"))
    assert re.match(r'the policy of node "\w+", at [\d.e-]+ s: ', str(caught.value))
    assert caught.value.code == "policy"


def test_an_exception_is_the_cause_with_the_users_own_lines(tmp_path):
    import traceback

    body = "class Mine(Policy):\n    def choose(self, node):\n        return self.rank(node)\n\n"
    body += "    def rank(self, node):\n        return max([])\n"
    with pytest.raises(CrosswindError) as caught:
        grid.run(written(tmp_path, body))
    text = "".join(traceback.format_exception(caught.value.__cause__))
    assert "return self.rank(node)" in text
    assert "return max([])" in text
    assert f'File "{tmp_path / "mine.py"}", line 9, in rank' in text


def test_ctrl_c_in_a_policy_is_ctrl_c(tmp_path):
    body = "class Mine(Policy):\n    def choose(self, node):\n        raise KeyboardInterrupt\n"
    with pytest.raises(KeyboardInterrupt):
        grid.run(written(tmp_path, body))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file|cannot be read"),
        ("class Mine(: pass", "cannot be run: SyntaxError"),
        ("import no_such_module_there", "cannot be run: ModuleNotFoundError"),
        ("x = 1", "has no Mine"),
        ("class Mine: pass", "does not derive from crosswind.policy.Policy"),
    ],
)
def test_a_file_without_the_class_is_found_before_anything_runs(tmp_path, content, words):
    if content is not None:
        (tmp_path / "mine.py").write_text(content)
    with pytest.raises(DescriptionError, match=words):
        grid.run(experiment(tmp_path, ["arrival", "python:mine.py:Mine"]), out=tmp_path / "runs.json")
    assert not (tmp_path / "runs.json").exists()


@pytest.mark.parametrize(
    "order", ["python:mine.py", "python::Mine", "python:mine.py:", "python:mine.py:a b", "mine.py:Mine"]
)
def test_a_name_that_is_none_is_refused_with_the_form(tmp_path, order):
    with pytest.raises(DescriptionError, match="python:FILE:CLASS"):
        experiment(tmp_path, [order])


def test_it_sees_arrivals_deadlines_and_users(tmp_path):
    rows = [(0.0, 9.0, "ann"), (0.0, 4.0, "bob"), (0.5, "", "ann"), (1.0, 2.0, "bob"), (1.0, 30.0, "ann")]
    lines = ["size_mb,work,release_s,deadline_s,user", *(f"1,8,{at},{by},{user}" for at, by, user in rows)]
    (tmp_path / "tasks.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "edf.py").write_text(
        """
from math import inf

from crosswind.policy import Policy


class Earliest(Policy):
    own_first = False

    def choose(self, node):
        with open({seen!r}, "a") as file:
            for task in node.tasks:
                print(task.number, task.release_s, task.deadline_s, task.user, file=file)
        task = min(node.tasks, key=lambda task: (inf if task.deadline_s is None else task.deadline_s, task.number))
        return (node, task) if node.idle else (node.open[0], task) if node.open else None
""".format(seen=str(tmp_path / "seen"))
    )
    own = "python:edf.py:Earliest"
    farm = {"kind": "farm", "tasks_file": "tasks.csv"}
    grid.run(experiment(tmp_path, [own], workload=farm, repetitions=1))
    seen = set((tmp_path / "seen").read_text().splitlines())
    known = {f"{number} {at} {by or None} {user}" for number, (at, by, user) in enumerate(rows)}
    assert seen <= known
    assert len(seen) >= 3


def test_agents_and_estimates_are_refused(tmp_path, guide):
    own = ["python:my_policy.py:BandwidthCentric"]
    with pytest.raises(DescriptionError, match="agents do not run a policy in Python"):
        grid.run(experiment(guide, own), on="local")
    with pytest.raises(DescriptionError, match=r"policy\.adapt"):
        experiment(guide, own, policy={"adapt": True})


def test_a_helper_beside_it_is_imported(tmp_path):
    (tmp_path / "helper_of_mine.py").write_text("def first(children):\n    return children[0] if children else None\n")
    body = "import helper_of_mine\n\n\nclass Mine(Policy):\n    def choose(self, node):\n"
    body += "        return helper_of_mine.first(node.open)\n"
    assert len(grid.run(written(tmp_path, body))) == 3


def test_json_names_the_policy(tmp_path, guide):
    runs = grid.run(experiment(guide, ["python:my_policy.py:BandwidthCentric"]))
    assert json.loads(json.dumps(runs.summary()))["runs"][0]["order"] == "python:my_policy.py:BandwidthCentric"
