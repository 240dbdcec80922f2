"""Streams of messages, from the file to the tables: examples beside their closed forms, what is read back, refusals."""

import json
from pathlib import Path

import pytest

import crosswind
from crosswind import DescriptionError, Experiment, Runs
from crosswind.run.namespaces import beside

EXAMPLES = Path(__file__).parents[3] / "examples"
A = {"name": "A", "class": "parallel", "from": 0, "to": 1, "message_bytes": 64}
LOCAL = {"name": "local", "class": "local", "from": 0, "to": 2, "message_bytes": 16384, "arrivals": "backlogged"}
LENGTH = "workload.stream[1].message_bytes"
TEST_LENGTH = "workload.stream[0].message_bytes"


def described(*streams, hosts=4, policy=None, **other):
    workload = {"kind": "streams", "hosts": hosts, "stream": list(streams)}
    return Experiment.from_dict(
        {"schema_version": 1, "name": "e", "workload": workload, "policy": policy or {}, **other}
    )


def test_the_example_of_the_sending_side_is_the_closed_form_in_one_queue_and_flat_in_two():
    runs = crosswind.run(EXAMPLES / "streams_sending_side.toml")
    assert len(runs) == 8
    for run in runs:
        test = run.stream("test")
        assert 0.93 * run.bounds["fifo test"] < test["slowdown_fifo"] < run.bounds["fifo test"]
        assert test["slowdown_queued"] < 2.3
        # The small stream takes less of the local one than the medium one does (claim N-4).
        assert run.stream("local")["slowdown_queued"] < (2.0 if run.params[TEST_LENGTH] == 64 else 3.5)
    a, b = (
        {run.params[LENGTH]: run.stream("test") for run in runs if run.params[TEST_LENGTH] == length}
        for length in (64, 2048)
    )
    assert list(a) == [2048, 4096, 8192, 16384]
    assert a[16384]["slowdown_fifo"] > 1.5 * b[16384]["slowdown_fifo"]  # the small stream suffers more
    assert a[16384]["slowdown_fifo"] > 3 * a[16384]["slowdown_queued"]


def test_the_example_of_the_receiving_side_is_relieved_by_credits():
    for run in crosswind.run(EXAMPLES / "streams_receiving_side.toml"):
        test, bytes_ = run.stream("test"), run.params[LENGTH]
        assert test["slowdown_fifo"] <= 1.001 * run.bounds["fifo test"]
        if bytes_ == 16384:
            assert test["slowdown_queued"] < test["slowdown_fifo"] / 2


def test_the_example_of_one_to_all_and_all_to_one_is_relieved_on_both_sides():
    runs = crosswind.run(EXAMPLES / "streams_one_to_all.toml")
    short, long = ([run for run in runs if run.params[TEST_LENGTH] == length] for length in (64, 24576))
    for run in short:
        test = run.stream("test")
        assert test["bytes"] == 100 * 3 * (64 + 64)
        assert test["slowdown_queued"] < test["slowdown_fifo"] / 2
    # Of short messages three frames wait at most, so more than 4 gives nothing; long ones gain, the local class pays.
    times = [run.stream("test")["queued_s"] for run in short]
    assert times[0] > times[1] == times[2]
    small, local = ([run.stream(name)["slowdown_queued"] for run in long] for name in ("test", "local out"))
    assert [run.params["policy.threshold"] for run in long] == [1, 4, 16]
    assert small[0] > 1.2 * small[1] > 1.3 * small[2]
    assert local[0] < local[1] / 2 < local[2] / 4


def test_one_queue_in_place_of_two_is_the_same_run_again():
    (run,) = crosswind.run(described(A, LOCAL, policy={"queue": "fifo"}))
    for stream in run.streams:
        assert stream["fifo_s"] == stream["queued_s"]
        assert stream["latency_s"]["fifo"] == stream["latency_s"]["queued"]


def test_a_stream_by_itself_takes_as_long_in_every_queue():
    (run,) = crosswind.run(described(A))
    (alone,) = run.streams
    assert (alone["slowdown_fifo"], alone["slowdown_queued"], run.bounds["fifo A"]) == (1.0, 1.0, 1.0)


def test_the_result_is_the_same_whatever_the_number_of_workers_and_is_read_back(tmp_path):
    drawn = {**LOCAL, "message_bytes": {"distribution": "exponential", "mean": 4096}}
    experiment = described(A, drawn, repetitions=3, sweep={"policy.threshold": [1, 4], LENGTH + ".mean": [2048, 8192]})
    files = []
    for workers in (1, 2, 5):
        files.append(tmp_path / f"{workers}.json")
        crosswind.run(experiment, workers=workers, out=files[-1])
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()
    runs = Runs.load(files[0])
    assert (runs.kind, [len(alike) for alike in runs.by_point()]) == ("streams", [3, 3, 3, 3])
    assert runs.summary() == json.loads(files[0].read_text())
    again = crosswind.run(experiment, out=files[0], resume=True)
    assert again.summary() == runs.summary()


def test_a_table_has_a_row_for_each_stream_of_each_run():
    runs = crosswind.run(described(A, LOCAL, sweep={LENGTH: [2048, 16384]}))
    table = runs.to_arrow().to_pylist()
    assert [(row["name"], row[LENGTH]) for row in table] == [
        ("A", 2048),
        ("local", 2048),
        ("A", 16384),
        ("local", 16384),
    ]
    first = runs[0].stream("A")
    assert table[0]["slowdown_fifo"] == first["slowdown_fifo"] == first["fifo_s"] / first["alone_s"]
    assert table[0]["form_fifo"] == runs[0].bounds["fifo A"]
    assert table[0]["latency_queued_p99_s"] == first["latency_s"]["queued"]["p99"]


def test_a_stream_that_is_not_there_is_named_beside_those_that_are():
    (run,) = crosswind.run(described(A, LOCAL))
    with pytest.raises(KeyError, match="'B'; there are 'A', 'local'"):
        run.stream("B")


def test_a_trace_of_streams_is_refused():
    with pytest.raises(
        DescriptionError, match="trace is of the nodes of a farm; an experiment of kind streams has none"
    ):
        crosswind.run(described(A), trace=True)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"workload.stream[1].to": 0}, "names host 0, which sends"),
        ({"workload.stream[2].to": 1}, "place 2 of a list that has 2"),
        ({"policy.queue": "fifo2"}, 'the nearest is "fifo"'),
        ({"policy.literal": True}, 'only policy.queue = "threshold"'),
        ({"network.link_mb_per_s": 0}, "greater than 0 MB/s"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_the_reason(settings, says):
    with pytest.raises(DescriptionError, match=says):
        described(A, LOCAL).fixed(settings)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"queue": "threshold"}, "counts bytes"),
        ({"queue": "fifo"}, "counts bytes"),
        ({"credits": "receiver"}, "no credits"),
    ],
)
def test_the_kernel_counts_bytes_in_two_queues_and_gives_no_credits(policy, said):
    described(A, policy={"filter": "kernel", "queue": "strict"}, network="gigabit")
    with pytest.raises(DescriptionError, match=f'policy.filter is "kernel".*{said}'):
        described(A, policy={"filter": "kernel", **policy}, network="gigabit")


def test_what_the_simulator_predicts_stands_under_the_streams_names():
    told = {"streams": [{"name": "A", "slowdown_fifo": 3.0, "slowdown_queued": 1.5}]}
    assert beside(told) == {"simulated fifo A": 3.0, "simulated queued A": 1.5}
