"""Iteration times of a command: read, without warm-up, and worth no more than their autocorrelation allows."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from crosswind import Disturbance
from crosswind.blame import interleaving
from crosswind.blame.command import CommandBlame, blame_command
from crosswind.blame.interleaving import BARE, DISTURBED, Turns
from crosswind.blame.iterations import independent, settled, source, warm_up
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.statistics.interval import mean_interval

CRON = {"kind": "daemon", "interval_s": 1.0, "duration_s": 0.01, "cause": "cron"}
ONE = Disturbance.from_dict({"schema_version": 1, "name": "one", "source": [CRON]})


def correlated(count: int, part: float, draw: np.random.Generator) -> np.ndarray:
    """Return a mean of 1 with noise of 0.1, of which `part` is carried from one to the next."""
    noise, steps = [0.0], draw.normal(0.0, 0.1 * np.sqrt(1 - part**2), count)
    for step in steps:
        noise.append(part * noise[-1] + step)
    return 1.0 + np.array(noise[1:])


@pytest.mark.parametrize(("part", "worth"), [(0.0, 1.0), (0.5, 1 / 3), (0.9, 1 / 19)])
def test_iterations_are_worth_what_their_autocorrelation_leaves(part, worth):
    draw = np.random.default_rng(5)
    found = np.mean([independent(correlated(4000, part, draw)) / 4000 for _ in range(20)])
    assert worth / 1.4 < found < worth * 1.4


def test_the_error_of_a_mean_holds_though_iterations_are_alike():
    """Of many runs of known mean, about 95 % are within two errors of it; by n alone it would be a third."""
    draw = np.random.default_rng(6)
    runs = {BARE: [correlated(400, 0.9, draw).tolist() for _ in range(300)]}
    found = settled(runs, BARE)
    within = np.abs(found.means - 1.0) < 2.0 * found.errors
    assert within.mean() > 0.9


def test_constant_iterations_are_all_alike():
    assert independent(np.ones(50)) == 50.0


def test_the_warm_up_is_found_in_undisturbed_runs_and_left_out_of_all():
    draw = np.random.default_rng(7)
    slow = np.concatenate([[5.0, 3.0, 2.0], np.zeros(57)])
    bare = [(1.0 + slow + draw.normal(0, 0.01, 60)).tolist() for _ in range(3)]
    burst = np.concatenate([np.zeros(5), np.full(10, 4.0), np.zeros(45)])
    disturbed = [(1.0 + slow + burst + draw.normal(0, 0.01, 60)).tolist() for _ in range(3)]
    found = settled({BARE: bare, DISTURBED: disturbed}, BARE)
    assert 3 <= found.warm_up < 6
    # The burst in the first quarter of the disturbed runs counts, though they would be steadier without it.
    assert (found.means[:, 1] - found.means[:, 0]).mean() == pytest.approx(40.0 / 57.0, rel=0.06)
    assert warm_up(np.array(disturbed[0])) > 10


def turns(spread: float, count: int = 5) -> Turns:
    """Runs of 50 iterations with noise of 10 %; runs differ by `spread`."""
    draw = np.random.default_rng(8)
    runs = {
        name: [(mean + draw.normal(0, spread) + draw.normal(0, 0.1, 50)).tolist() for _ in range(count)]
        for name, mean in ((BARE, 1.0), (DISTURBED, 1.2), ("without cron", 1.0))
    }
    return Turns(["app"], list(runs), np.ones((count, 3)), False, [], runs)


def test_an_interval_is_over_blocks_and_no_narrower_than_the_iterations_allow():
    found = turns(0.0)
    assert found.more_s(DISTURBED, BARE).low > 0.1
    least = mean_interval(np.zeros(5), 2 * 0.1**2 / 50)
    assert found.more_s(DISTURBED, BARE).high - found.more_s(DISTURBED, BARE).mean > 0.7 * least.high
    apart = turns(0.3)
    half = apart.more_s(DISTURBED, BARE).high - apart.more_s(DISTURBED, BARE).mean
    assert half > 3 * (found.more_s(DISTURBED, BARE).high - found.more_s(DISTURBED, BARE).mean)


def test_blocks_that_agree_by_chance_are_not_taken_at_their_word():
    values = np.array([1.0, 1.0, 1.0])
    assert mean_interval(values).high == 1.0
    assert mean_interval(values, 0.01).high > 1.2


def test_more_blocks_are_asked_for_where_runs_differ_more():
    quiet, loud = turns(0.0).blocks_to_show(), turns(0.05).blocks_to_show()
    assert quiet is not None
    assert loud is not None
    assert 10 < quiet < loud
    assert turns(0.0).blocks_to_show(0.2) <= 5
    assert turns(3.0).blocks_to_show() is None


class Injector:
    """Stands for `inject`: a command that writes iteration times, or prints them through its shell's file."""

    def __init__(self, file: Path | None, times: str) -> None:
        self.file, self.times, self.commands = file, times, []

    def __call__(self, file, command, *, seed, **options):
        self.commands.append(command)
        (self.file or Path(command[4])).write_text(self.times)
        ended = {"ended": "exited", "exit_status": 0}
        return SimpleNamespace(elapsed_s=9.0, summary=ended, succeeded=True, warnings=[])


def test_times_of_a_file_are_read_and_the_file_removed(monkeypatch, tmp_path):
    path = tmp_path / "iterations.txt"
    injector = Injector(path, "# s\n" + "0.5  # first\n\n" + "0.25\n" * 12)
    monkeypatch.setattr(interleaving, "inject", injector)
    found = blame_command(ONE, ["app"], blocks=2, iterations=str(path))
    assert not path.exists()
    assert injector.commands[0] == ["app"]
    assert (found.turns.settled.warm_up, found.undisturbed.mean) == (1, 0.25)
    assert found.turns.elapsed_s.tolist() == [[9.0] * 3] * 2
    assert found.notes[0].startswith("Times are of an iteration: 13 a run, without the first 1, the warm-up, worth")


def test_times_that_are_printed_are_read_in_their_unit(monkeypatch, capfd):
    printed = "starts\n" + "step took 250 ms\n" * 12 + "step took none\n"
    injector = Injector(None, printed)
    monkeypatch.setattr(interleaving, "inject", injector)
    found = blame_command(ONE, ["app", "a b"], blocks=2, iterations=r"re:^step took (?P<ms>[\d.]+) ms$")
    assert injector.commands[0][:2] == ["/bin/sh", "-c"]
    assert injector.commands[0][5:] == ["app", "a b"]
    assert found.undisturbed.mean == pytest.approx(0.25)
    assert capfd.readouterr().err.count("starts") == 6


def test_a_file_of_a_blame_with_iterations_says_the_same_again(monkeypatch, tmp_path):
    monkeypatch.setattr(interleaving, "inject", Injector(tmp_path / "i", "".join(f"{1 + k % 3}\n" for k in range(20))))
    found = blame_command(ONE, ["app"], blocks=3, iterations=str(tmp_path / "i"))
    found.save(tmp_path / "blame.json")
    again = CommandBlame.load(tmp_path / "blame.json")
    assert again.to_dict() == json.loads(json.dumps(found.to_dict()))
    document = json.loads((tmp_path / "blame.json").read_text())
    del document["iterations_s"][BARE]
    (tmp_path / "blame.json").write_text(json.dumps(document))
    with pytest.raises(DescriptionError, match="iterations_s has"):
        CommandBlame.load(tmp_path / "blame.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("re:(", "unterminated"),
        ("re:step", "must have one group"),
        ("re:(a)(b)", "must have one group"),
        ("re:(?P<minutes>.*)", "must have one group"),
        ("", "empty"),
        (str(Path(__file__)), "exists"),
    ],
)
def test_a_wrong_place_of_iterations_is_refused_before_anything_runs(text, said, tmp_path):
    with pytest.raises(DescriptionError, match=said):
        source(text, str(tmp_path))


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ("", "0 iterations in a run; at least 10"),
        ("1\n" * 9, "9 iterations"),
        ("1\n1\nx\n", "line 3 has 'x'"),
        ("-1\n", "line 1"),
    ],
)
def test_what_a_run_tells_wrongly_ends_it_with_the_place(monkeypatch, tmp_path, times, said):
    monkeypatch.setattr(interleaving, "inject", Injector(tmp_path / "i", times))
    with pytest.raises(CrosswindError, match=re.escape(said)):
        blame_command(ONE, ["app"], blocks=2, iterations=str(tmp_path / "i"))


def test_a_run_that_writes_no_file_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(interleaving, "inject", Injector(tmp_path / "other", "1\n"))
    with pytest.raises(CrosswindError, match="which the command did not write"):
        blame_command(ONE, ["app"], blocks=2, iterations=str(tmp_path / "i"))
