"""How much a simulation does is printed before it begins, where that is much."""

from pathlib import Path

import pytest

from crosswind.cli.run import announcement
from crosswind.experiment import Experiment

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("example", "settings", "said"),
    [
        ("fork_graph", {}, None),
        ("fork_graph", {"workload.tasks": 100_000}, "runs of up to 100,000 tasks"),
        ("fork_graph", {"workload.tasks": 10**9}, "runs of up to 1,000,000,000 tasks"),
        (
            "em3d_under_daemons",
            {"workload.parameters.steps": 100_000, "workload.ranks": 100},
            "100 ranks and 100,000 steps",
        ),
        ("streams_sending_side", {}, None),
    ],
)
def test_a_large_experiment_says_its_size(example, settings, said):
    found = announcement(Experiment.load(EXAMPLES / f"{example}.toml").fixed(settings))
    assert found is None if said is None else said in found
