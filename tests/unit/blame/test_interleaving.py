"""A command in turns: what stays constant drops out, and what was interrupted keeps its complete blocks."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from crosswind import Disturbance
from crosswind.blame import interleaving
from crosswind.blame.command import blame_command
from crosswind.blame.interleaving import BARE, DISTURBED, compare_injected
from crosswind.errors import CrosswindError, DescriptionError

DAEMON = {"kind": "daemon", "interval_s": 1.0, "duration_s": 0.01}
TWO = Disturbance.from_dict(
    {"schema_version": 1, "name": "two", "source": [DAEMON | {"cause": "cron"}, DAEMON | {"cause": "update"}]}
)
COSTS = {"cron": 0.2, "update": 0.5}


class Injector:
    """Stands for `inject`: a command of 1 s, slowed by a known time per cause and by its block."""

    def __init__(self):
        self.outcome, self.seeds = {}, []

    def __call__(self, file, command, *, seed, **options):
        causes = Disturbance.load(file).causes
        self.seeds.append(seed)
        elapsed_s = (1.0 + 0.1 * (seed % 3)) + sum(COSTS[cause] for cause in causes)
        ended = {"ended": "exited", "exit_status": 0} | self.outcome.get(len(self.seeds), {})
        succeeded = (ended["ended"], ended["exit_status"]) == ("exited", 0)
        return SimpleNamespace(elapsed_s=elapsed_s, summary=ended, succeeded=succeeded, warnings=[])


def test_each_cause_costs_what_it_adds_whatever_the_block_adds(monkeypatch):
    injector = Injector()
    monkeypatch.setattr(interleaving, "inject", injector)
    found = blame_command(TWO, ["app"], blocks=4)
    assert {cause: round(found.removed_saves_s(cause).mean, 9) for cause in found.causes} == COSTS
    assert found.removed_saves_s("cron").high - found.removed_saves_s("cron").low < 1e-9
    assert found.turns.elapsed_s.shape == (4, 4)
    assert sorted(injector.seeds) == sorted([1, 2, 3, 4] * 4)
    json.dumps(found.to_dict())


def test_what_two_runs_leave_open_is_not_settled_and_ends_with_3():
    from crosswind.blame.interleaving import Turns
    from crosswind.cli.blame_answers import code_of, slowed

    def turns(*rows):
        return Turns(["app"], [BARE, DISTURBED], np.array(rows), False, [])

    said = {}
    for name, rows in {
        "open": [(1.0, 1.3), (1.2, 1.1), (1.1, 1.15)],
        "slower": [(1.0, 1.5), (1.0, 1.51), (1.0, 1.49)],
        "small": [(1.0, 1.001), (1.0, 0.999), (1.0, 1.0)],
    }.items():
        share = turns(*rows).longer(DISTURBED, BARE)
        said[name] = code_of(share), slowed(share, "the command", "the disturbance slows").split(" by ")[0]
    assert said == {
        "open": (3, "Not settled: the disturbance slows the command"),
        "slower": (0, "The disturbance slows the command"),
        "small": (0, "The disturbance slows the command"),
    }
    assert "less than 1 %: 0.0 % ± 0.2" in slowed(
        turns((1.0, 1.001), (1.0, 0.999), (1.0, 1.0)).longer(DISTURBED, BARE), "it"
    )
    assert turns((1.0, 1.3), (1.2, 1.1), (1.1, 1.15)).needed("--compare").startswith(("About ", "More than "))


def test_only_named_causes_are_removed(monkeypatch):
    monkeypatch.setattr(interleaving, "inject", Injector())
    found = blame_command(TWO, ["app"], blocks=2, causes=["update"])
    assert (found.causes, found.kept, found.turns.variants) == (
        ["update"],
        ["cron"],
        [BARE, DISTURBED, "without update"],
    )
    with pytest.raises(DescriptionError, match="cause is 'crn'"):
        blame_command(TWO, ["app"], causes=["crn"])


def test_a_comparison_is_of_ratios_within_pairs(monkeypatch):
    monkeypatch.setattr(interleaving, "inject", Injector())
    turns = compare_injected(TWO, ["app"], pairs=3)
    ratios = turns.of(DISTURBED) / turns.of(BARE)
    assert turns.longer(DISTURBED, BARE).mean == pytest.approx(np.exp(np.log(ratios).mean()) - 1)


def test_ctrl_c_keeps_complete_blocks(monkeypatch):
    injector = Injector()
    injector.outcome[6] = {"ended": "asked"}
    monkeypatch.setattr(interleaving, "inject", injector)
    turns = compare_injected(TWO, ["app"], pairs=5)
    assert (turns.interrupted, len(turns.elapsed_s)) == (True, 2)
    injector = Injector()
    injector.outcome[3] = {"ended": "asked"}
    monkeypatch.setattr(interleaving, "inject", injector)
    with pytest.raises(KeyboardInterrupt):
        compare_injected(TWO, ["app"], pairs=5)


@pytest.mark.parametrize(
    ("ended", "message"), [({"exit_status": 3}, "ended with status 3"), ({"ended": "limit"}, "the limit was reached")]
)
def test_times_of_a_command_that_fails_are_not_compared(monkeypatch, ended, message):
    injector = Injector()
    injector.outcome[2] = ended
    monkeypatch.setattr(interleaving, "inject", injector)
    with pytest.raises(CrosswindError, match=message):
        compare_injected(TWO, ["app"], pairs=2)


def test_one_pair_is_too_few():
    with pytest.raises(DescriptionError, match="at least 2"):
        compare_injected(TWO, ["true"], pairs=1)
