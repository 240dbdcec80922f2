"""GOAL schedules whose operations name processors and interfaces end when the rules say, to the nanosecond."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from goal_processors import Network, Op, Run, drawn, text_of

import crosswind
from crosswind import _core
from crosswind.blame.recorded import blame_recorded
from crosswind.cli import app
from crosswind.errors import CrosswindError, DescriptionError, InfeasibleError
from crosswind.experiment.goal_binary import goal_text

SCHEDULES = 400
RECORDED = Path(__file__).parents[2] / "recordings" / "loggopsim.json"
RENDEZVOUS = RECORDED.with_name("loggopsim-rendezvous.json")
LOGGOPSIM = Network(2500, 1500, 1000, 6)
BINARY = bytes.fromhex(
    "7f10000000000000020000000102260000000000000084000000000000008400000000000000e200000000000000020000000100000000"
    "000000000000000300000000e8030000000000000000000001000100000000000000000000000100000001000000010100000008000000"
    "0000000007000000010200000000010000000000000001000000010000000200000001000000000000000000000002ffffffff08000000"
    "00000000ffffffff0002000000000000000001000000000000000100000003000000000500000000000000000000000000000000000100"
    "0000000000000100000001000000"
)
"""What LogGOPSim's txt2bin makes of `BINARY_TEXT`."""
BINARY_TEXT = """num_ranks 2
rank 0 {
l0: calc 1000 cpu 1
l1: send 8b to 1 tag 7 cpu 1 nic 2
l1 requires l0
}
rank 1 {
l0: recv 8b from -1 tag -1 cpu 0 nic 2
l1: calc 5 cpu 0
l1 irequires l0
}
"""


def simulated(text, network, **settings):
    """Return a run of a schedule, or `None` where it does not end as it should."""
    parameters = {"file": "s.goal"}
    if network.rendezvous_above is not None:
        parameters["rendezvous_above_bytes"] = network.rendezvous_above
    seconds = {"latency_s": network.latency, "overhead_s": network.overhead, "gap_s": network.gap}
    experiment = {
        "schema_version": 1,
        "name": "goal",
        "network": {
            **{name: ns * 1e-9 for name, ns in seconds.items()},
            "gap_per_byte_s": network.per_byte * 1e-9,
            "packet_bytes": network.packet_bytes,
            **settings.pop("network", {}),
        },
        "workload": {"kind": "program", "program": "goal", "parameters": parameters},
        **settings,
    }
    return json.loads(_core.simulate_program(json.dumps(experiment), None, text, dedicated_s=1.0))


def ends(schedule, network):
    try:
        run = simulated(text_of(schedule), network)
    except InfeasibleError:
        return None
    except CrosswindError as error:
        if "no recv asked" not in str(error):
            raise
        return None
    return round(run["makespan_s"] * 1e9), [round(run["busy_s"][name] * 1e9) for name in ("min", "max")]


def by_rules(schedule, network):
    ranks = Run(schedule, network).run()
    busy = [rank.busy for rank in ranks or ()]
    return ranks and (max(rank.end for rank in ranks), [min(busy), max(busy)])


def test_drawn_schedules_end_when_the_rules_say():
    whole = 0
    for seed in range(SCHEDULES):
        schedule, network = drawn(seed)
        if all(op.cpu == op.nic == 0 for ops in schedule for op in ops):
            continue
        expected = by_rules(schedule, network)
        assert ends(schedule, network) == expected, f"{seed} {network}\n{text_of(schedule)}"
        whole += expected is not None
    assert whole > SCHEDULES / 4


def test_drawn_schedules_with_rendezvous_end_when_the_rules_say():
    whole = waited = 0
    for seed in range(SCHEDULES):
        schedule, eager = drawn(seed)
        network = replace(eager, rendezvous_above=(0, 4, 7)[seed % 3])
        expected = by_rules(schedule, network)
        assert ends(schedule, network) == expected, f"{seed} {network}\n{text_of(schedule)}"
        whole += expected is not None
        waited += expected is not None and expected != by_rules(schedule, eager)
    assert whole > SCHEDULES / 8
    assert waited > SCHEDULES / 40


@pytest.mark.parametrize(
    ("receiver", "above", "end"),
    [
        # It takes 1500 to send, 2500 + 99 * 6 under way; the sender then computes for 10,000.
        ([Op("recv", 100, 0)], 100, 1500 + 10_000),
        ([Op("recv", 100, 0)], 99, 1500 + 2500 + 594 + 10_000),
        # The receiver's processor computes first, or another one does and the message is handled before the recv.
        ([Op("calc", 20_000), Op("recv", 100, 0, requires=[0])], 99, 20_000 + 10_000),
        ([Op("calc", 20_000, cpu=1), Op("recv", 100, 0, requires=[0])], 99, 20_000 + 10_000),
        ([Op("calc", 20_000, cpu=1), Op("recv", 100, 0, requires=[0])], None, 20_000),
    ],
)
def test_a_rendezvous_send_ends_when_its_message_matches(receiver, above, end):
    sender = [Op("send", 100, 1), Op("calc", 10_000, requires=[0])]
    assert ends([sender, receiver], replace(LOGGOPSIM, rendezvous_above=above))[0] == end


def test_two_that_send_first_by_rendezvous_wait_for_each_other():
    def rank(other):
        return [Op("send", 100, other), Op("recv", 100, other, requires=[0])]

    text = text_of([rank(1), rank(0)])
    assert simulated(text, LOGGOPSIM)["makespan_s"] > 0
    with pytest.raises(InfeasibleError, match=r"rank 0: rank 1 to receive a message above rendezvous_above_bytes"):
        simulated(text, replace(LOGGOPSIM, rendezvous_above=99))


@pytest.mark.parametrize(
    ("ops", "end"),
    [
        # Two processors compute at a time; on one they take turns.
        ([Op("calc", 1000), Op("calc", 1000, cpu=1)], 1000),
        ([Op("calc", 1000, cpu=1), Op("calc", 1000, cpu=1)], 2000),
        # What another processor's operation requires has ended, or begun.
        ([Op("calc", 1000, cpu=1), Op("calc", 500, requires=[0])], 1500),
        ([Op("calc", 1000, cpu=1), Op("calc", 500, irequires=[0])], 1000),
        # 100 bytes occupy an interface for 1000 + 99 * 6 ns, a processor for 1500. Of two interfaces none waits.
        ([Op("send", 100, 1, 0, 0, 0), Op("send", 100, 1, 0, 1, 0)], 1594 + 1500 + 2500 + 594 + 1500),
        ([Op("send", 100, 1, 0, 0, 0), Op("send", 100, 1, 0, 1, 1)], 1500 + 2500 + 594 + 1500),
    ],
)
def test_costs_of_processors_and_interfaces(ops, end):
    receives = [Op("recv", 1, 0, 0, op.cpu) for op in ops if op.kind == "send"]
    assert ends([ops, receives or [Op("calc", 0)]], LOGGOPSIM)[0] == end


@pytest.mark.parametrize("recorded", json.loads(RECORDED.read_text()))
def test_schedules_end_when_loggopsim_says(recorded):
    """The ends are those of spcl/LogGOPSim 76451de, built from its source.

    Each processor does its operations one after the other and has its own interface: no documented difference applies.
    """
    run = simulated(recorded["schedule"], Network(*recorded["network"]))
    assert round(run["makespan_s"] * 1e9) == max(recorded["ends_ns"])


@pytest.mark.parametrize("recorded", json.loads(RENDEZVOUS.read_text()))
def test_rendezvous_sends_end_when_loggopsim_says(recorded):
    """As above, with LogGOPSim's -S: schedules that end at another time if all messages are eager.

    A processor receives one message at most.
    """
    network = Network(*recorded["network"], rendezvous_above=recorded["rendezvous_above"])
    run = simulated(recorded["schedule"], network)
    assert round(run["makespan_s"] * 1e9) == max(recorded["ends_ns"])
    eager = simulated(recorded["schedule"], replace(network, rendezvous_above=None))
    assert eager["makespan_s"] < run["makespan_s"]


def test_live_ranks_refuse_rendezvous_and_say_what_to_do(tmp_path):
    (tmp_path / "s.goal").write_text(
        "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\n}\nrank 1 {\nrecv 8b from 0 tag 1\n}\n"
    )
    parameters = {"file": "s.goal", "rendezvous_above_bytes": 4}
    workload = {"kind": "program", "program": "goal", "parameters": parameters}
    described = {"schema_version": 1, "name": "g", "network": "cluster", "workload": workload}
    with pytest.raises(CrosswindError, match=r"rendezvous_above_bytes is given, and live ranks send .* --on sim"):
        crosswind.run(crosswind.Experiment.from_dict(described, tmp_path), on="local")


def test_a_message_is_handled_by_the_processor_of_its_receive():
    calc, receive = Op("calc", 100_000), Op("recv", 1, 0, 0, cpu=1)
    after = Op("calc", 1, cpu=1, requires=[1])
    late = [calc, Op("recv", 1, 0, 0), Op("calc", 1, requires=[1])]
    assert ends([[Op("send", 1, 1)], [calc, receive, after]], LOGGOPSIM)[0] == 100_000
    assert ends([[Op("send", 1, 1, cpu=1)], late], LOGGOPSIM)[0] == 100_000 + 1500 + 1


def test_settings_that_need_one_processor_per_rank_are_refused():
    text = text_of([[Op("calc", 5, cpu=1)], [Op("calc", 5)]])
    with pytest.raises(CrosswindError, match=r"policy\.window_packets cannot be simulated .* several processors"):
        simulated(text, LOGGOPSIM, policy={"window_packets": 4})


def test_blame_refuses_several_processors_and_says_what_to_do(tmp_path):
    file = tmp_path / "several.goal"
    file.write_text(text_of([[Op("calc", 5)], [Op("calc", 5, cpu=1)]]))
    with pytest.raises(DescriptionError, match=r"operations of rank 1 name a cpu or nic other than 0.*crosswind run"):
        blame_recorded([file])


def test_a_binary_schedule_is_read_like_its_text():
    assert goal_text(BINARY, "s.bin") == BINARY_TEXT


@pytest.mark.parametrize("length", range(8, len(BINARY), 5))
def test_a_binary_schedule_that_is_cut_off_is_refused(length):
    with pytest.raises(DescriptionError, match=r"s\.bin is a binary GOAL schedule, damaged in rank"):
        goal_text(BINARY[:length], "s.bin")


def test_a_binary_schedule_runs_from_the_command_line(tmp_path, capsys):
    (tmp_path / "s.bin").write_bytes(BINARY)
    text = tmp_path / "s.goal"
    text.write_text(BINARY_TEXT)
    printed = []
    for file in (text, tmp_path / "s.bin"):
        app(["run", str(file)], prog_name="crosswind", standalone_mode=False)
        printed.append(capsys.readouterr().out)
    assert printed[0].replace("s.goal", "s.bin") == printed[1]
