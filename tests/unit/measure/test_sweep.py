import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic

from crosswind.cli.measure_sweep import told
from crosswind.errors import AgentLost, DescriptionError
from crosswind.host.description import describe
from crosswind.measure.sweep import KINDS, Sweep, measure_sweep, parse_values
from crosswind.measurement import Measurement
from crosswind.model.curve import loss_at

VALUES = [8, 16, 32, 64]
ONE_ROW = synthetic.measurement(cycles=1, together_cycles=0).samples.slice(0, 1)


def measurement(arguments, ended="settled"):
    """What a probe would give back, with a header that the schema accepts."""
    traffic = {"message_bytes": 10**6, "streams": 1, "wait": "event", "paced_by": "peer", "pacing_chunk_bytes": 65536}
    header = {
        "schema_version": 1,
        "name": "test",
        "started": "2026-01-01T00:00:00Z",
        "command": ["test"],
        "seed": arguments.get("seed", 1),
        "host": describe(interfaces=["lo"]),
        "kernel": {
            "name": "diagonals",
            "unit": "diagonals",
            "matrix": arguments.get("matrix"),
            "diagonals": 1,
            "task": None,
        },
        "placement": {
            "mode": "same-core",
            "compute_cpus": [0],
            "traffic_cpus": [0],
            "sampler_cpus": [1],
            "compute_nice": 0,
            "traffic_nice": 0,
        },
        "traffic": traffic | {"congestion_control": "cubic", "socket_buffer_bytes": None},
        "variation": "paced",
        "peers": [
            {
                "address": arguments.get("peer") or f"127.0.0.1:{arguments['matrix']}",
                "host": "h",
                "loopback": True,
                "rtt_s": 1e-4,
            }
        ],
        "channels": [{"peer": 0, "direction": "receive", "unpaced_mb_per_s": 900.0, "top_mb_per_s": 800.0}],
        "block_s": 0.1,
        "settle_s": 0.03,
        "interval_s": 0.01,
        "elapsed_s": 20.0,
        "ended": ended,
        "warnings": [],
    }
    return Measurement(ONE_ROW, header)


class Probe:
    """Stands in for `measure`: remembers what was asked, and misbehaves when told to."""

    def __init__(self, **misbehaviour):
        self.asked = []
        self.misbehaviour = misbehaviour

    def __call__(self, *, progress=None, **arguments):
        value = arguments["matrix"]
        self.asked.append(value)
        self.arguments = arguments
        progress(0.5, "sampling")
        what = self.misbehaviour.get(f"at_{value}")
        if isinstance(what, type):
            raise what
        return measurement(arguments, what or "settled")


def test_every_value_is_measured_once_into_a_file_of_its_own(tmp_path):
    probe = Probe()
    sweep = measure_sweep("footprint", tmp_path / "s", VALUES, measure=probe, target=0.1)
    assert sorted(probe.asked) == VALUES
    assert [value for value, _ in sweep.points] == VALUES
    assert sweep.complete
    assert sweep.unit == "rows"
    assert probe.arguments["target"] == 0.1
    files = {path.name for path in (tmp_path / "s").iterdir()}
    assert files == {"sweep.json"} | {f"matrix-{value:08d}.parquet" for value in VALUES}


def test_the_order_is_shuffled_by_the_seed_and_by_nothing_else(tmp_path):
    def order(name, seed):
        probe = Probe()
        measure_sweep("footprint", tmp_path / name, measure=probe, seed=seed)
        return probe.asked

    first, again, other = order("a", 3), order("b", 3), order("c", 4)
    assert first == again != other
    assert sorted(first) == sorted(other) == list(KINDS["footprint"].values)
    assert first != sorted(first)


def test_ctrl_c_keeps_what_is_complete_and_the_same_command_measures_the_rest(tmp_path):
    first = Probe(at_32=KeyboardInterrupt)
    sweep = measure_sweep("footprint", tmp_path, VALUES, measure=first)
    assert not sweep.complete
    assert first.asked[-1] == 32
    second = Probe()
    sweep = measure_sweep("footprint", tmp_path, VALUES, measure=second)
    assert sorted(first.asked[:-1] + second.asked) == VALUES
    assert sweep.complete


def test_an_interrupted_point_is_measured_again(tmp_path):
    first = Probe(at_16="interrupted")
    assert not measure_sweep("footprint", tmp_path, VALUES, measure=first).complete
    second = Probe()
    assert measure_sweep("footprint", tmp_path, VALUES, measure=second).complete
    assert second.asked[0] == 16


def test_a_damaged_point_is_measured_again(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
    (tmp_path / "matrix-00000016.parquet").write_bytes(b"rubbish")
    probe = Probe()
    measure_sweep("footprint", tmp_path, VALUES, measure=probe)
    assert probe.asked == [16]


def test_a_point_that_only_ran_out_of_time_is_kept(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe(at_16="time-limit"))
    probe = Probe()
    sweep = measure_sweep("footprint", tmp_path, VALUES, measure=probe)
    assert probe.asked == []
    assert sweep.complete


def test_a_lost_peer_ends_the_sweep_with_an_error_and_keeps_what_is_complete(tmp_path):
    probe = Probe(at_64="peer-lost")
    with pytest.raises(AgentLost, match="matrix 64") as error:
        measure_sweep("footprint", tmp_path, VALUES, measure=probe)
    assert "same command" in error.value.hint
    assert len(Sweep.load(tmp_path).points) == len(probe.asked) - 1


def test_other_arguments_are_refused_by_name_and_value(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), streams=1, peer="a:1")
    with pytest.raises(DescriptionError) as error:
        measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), streams=2, peer="a:1", seed=9)
    message = str(error.value)
    assert "streams is 1 there, 2 now" in message
    assert "seed is 1 there, 9 now" in message
    assert "peer" not in message
    assert "--no-resume" in error.value.hint


def test_arguments_with_which_nothing_could_be_measured_may_be_mended(tmp_path):
    def refuse(**arguments):
        raise DescriptionError("streams is 99; it must be in 1..64", "streams")

    with pytest.raises(DescriptionError, match="99"):
        measure_sweep("footprint", tmp_path, VALUES, measure=refuse, streams=99)
    assert measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), streams=9).complete


def test_points_of_another_host_are_refused(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
    index = json.loads((tmp_path / "sweep.json").read_text())
    index["host"]["cpu"] = "another CPU"
    (tmp_path / "sweep.json").write_text(json.dumps(index))
    with pytest.raises(DescriptionError, match='host cpu is "another CPU" there'):
        measure_sweep("footprint", tmp_path, VALUES, measure=Probe())


def test_without_resuming_everything_is_measured_again_and_old_points_go(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), streams=1)
    probe = Probe()
    sweep = measure_sweep("footprint", tmp_path, [8], resume=False, force=True, measure=probe, streams=2)
    assert probe.asked == [8]
    assert [value for value, _ in sweep.points] == [8]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["matrix-00000008.parquet", "sweep.json"]


def test_another_sweep_is_not_measured_over_unless_forced(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), streams=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    probe = Probe()
    with pytest.raises(DescriptionError, match="streams is 1 there, 2 now") as error:
        measure_sweep("footprint", tmp_path, VALUES, resume=False, measure=probe, streams=2)
    assert "--no-resume --force" in error.value.hint
    assert probe.asked == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert measure_sweep("footprint", tmp_path, VALUES, resume=False, measure=probe, streams=1).complete
    assert len(probe.asked) == len(VALUES)


def test_a_damaged_index_is_refused_unless_it_may_be_replaced(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(DescriptionError, match="is not JSON"):
        measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
    assert measure_sweep("footprint", tmp_path, VALUES, resume=False, force=True, measure=Probe()).complete


def test_more_values_extend_a_sweep(tmp_path):
    measure_sweep("footprint", tmp_path, [8, 64], measure=Probe())
    probe = Probe()
    sweep = measure_sweep("footprint", tmp_path, [32, 64], measure=probe)
    assert probe.asked == [32]
    assert [value for value, _ in sweep.points] == [8, 32, 64]
    probe = Probe()
    assert measure_sweep("footprint", tmp_path, measure=probe).complete
    assert probe.asked == []


def test_progress_rises_over_the_whole_sweep_and_tells_the_time_left(tmp_path):
    told = []
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), progress=lambda *at: told.append(at))
    fractions = [fraction for fraction, _ in told]
    assert fractions == [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]
    assert "left" not in told[1][1]
    assert all("left" in message for _, message in told[2:])
    assert told[-1][1].startswith("point 4 of 4, about ")


def test_two_sweeps_do_not_share_a_directory(tmp_path):
    def while_another(**arguments):
        with pytest.raises(DescriptionError, match="another sweep"):
            measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
        return measurement(arguments)

    assert measure_sweep("footprint", tmp_path, [8], measure=while_another).complete


def test_a_callable_task_is_written_by_its_name(tmp_path):
    measure_sweep("streams", tmp_path, [1], measure=lambda progress, **a: measurement(a), peer="a:1", task=json.dumps)
    assert json.loads((tmp_path / "sweep.json").read_text())["arguments"]["task"] == "json.dumps"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("footprint", [4]),
        ("footprint", ["big"]),
        ("message-size", [999]),
        ("wait", ["spin"]),
        ("streams", []),
        ("streams", [True]),
        ("colour", None),
    ],
)
def test_values_that_cannot_be_measured_are_refused_before_anything_runs(tmp_path, kind, values):
    with pytest.raises(DescriptionError):
        measure_sweep(kind, tmp_path / "s", values, measure=Probe())
    assert not (tmp_path / "s").exists()


def test_a_footprint_needs_the_kernel_that_has_one(tmp_path):
    with pytest.raises(DescriptionError, match="diagonals"):
        measure_sweep("footprint", tmp_path, measure=Probe(), kernel="burn")
    with pytest.raises(DescriptionError, match="task"):
        measure_sweep("footprint", tmp_path, measure=Probe(), task="gzip -c x")


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("message-size", "64KB, 1MB,1MiB", [64_000, 1_000_000, 1_048_576]),
        ("footprint", "8,2048", [8, 2048]),
        ("placement", "free,same-core", ["free", "same-core"]),
    ],
)
def test_values_are_read_as_people_write_them(kind, text, values):
    assert parse_values(kind, text) == values


def test_a_directory_without_a_sweep_is_an_error_of_the_caller(tmp_path):
    with pytest.raises(DescriptionError, match="holds no sweep"):
        Sweep.load(tmp_path)


def points(ir, top):
    x = np.array([0.0, 0.0, top / 2, top / 2, top, top])
    level = np.array([0, 0, 0.5, 0.5, 1, 1])
    return SimpleNamespace(x_mb_per_s=x, y_work_per_s=7 * (1 - ir * x), level=level)


def fitted(found):
    """A fit whose interference rate and top follow from the matrix."""
    matrix = found.header["kernel"]["matrix"]
    ir, top = 1e-4 * math.log2(matrix), 4000.0 / math.log2(matrix)
    channel = SimpleNamespace(
        channel=0,
        estimator="available",
        ir_s_per_mb=ir,
        ir_ci95=(ir * 0.9, ir * 1.1),
        upper_bound=None,
        intercept=1.0,
        transfer_max_mb_per_s=top,
        loss_at_top=ir * top,
        points={"available": points(ir, top)},
        settled=True,
    )
    return SimpleNamespace(channels=(channel,))


def test_losses_are_compared_at_the_highest_rate_that_all_points_reached(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
    table = Sweep.load(tmp_path, fit=fitted).to_arrow()
    assert table["value"].to_pylist() == VALUES
    top = 4000 / 6  # of the largest matrix
    assert table["matched_mb_per_s"].to_pylist() == pytest.approx([top] * 4)
    assert table["loss_at_matched"].to_pylist() == pytest.approx([1e-4 * bits * top for bits in (3, 4, 5, 6)])
    assert table["upper_bound_s_per_mb"].null_count == 4
    # A peer that is started for each point has another port each time, and is one peer all the same.
    assert table["peer"].to_pylist() == ["h"] * 4
    # At their own tops all four lose the same: that comparison would show nothing.
    assert np.ptp(table["loss_at_top"].to_numpy()) == pytest.approx(0)


def test_a_sweep_is_a_table_in_pandas_polars_and_html(tmp_path):
    measure_sweep("footprint", tmp_path, VALUES, measure=Probe(), peer="node7:7117")
    sweep = Sweep.load(tmp_path, fit=fitted)
    assert set(sweep.to_pandas()["peer"]) == {"node7:7117"}
    assert list(sweep.to_pandas()["value"]) == VALUES
    assert sweep.to_polars().height == 4
    assert sweep._repr_html_().count("<tr>") == 5
    assert "4 of 4 points, rows" in sweep._repr_html_()


def test_an_unfinished_sweep_without_any_point_is_an_empty_table(tmp_path):
    measure_sweep("footprint", tmp_path, [8], measure=Probe(at_8=KeyboardInterrupt))
    sweep = Sweep.load(tmp_path, fit=fitted)
    assert not sweep.complete
    assert sweep.to_arrow().num_rows == 0


def test_the_loss_is_unknown_where_nothing_idle_was_measured():
    without_idle = SimpleNamespace(x_mb_per_s=np.array([5.0]), y_work_per_s=np.array([1.0]), level=np.array([1.0]))
    assert math.isnan(loss_at(without_idle, 5.0))


def test_the_fits_of_a_sweep_find_the_law_behind_each_point(tmp_path):
    def measure(progress, **arguments):
        # Twice the connections, twice the interference; the curve is straight, so the loss at one rate doubles too.
        return synthetic.measurement(1e-4 * arguments["streams"], None, cycles=30, noise=0.01, drift=0.0)

    sweep = measure_sweep("streams", tmp_path, [1, 2], measure=measure)
    table = sweep.to_arrow()
    assert table["direction"].to_pylist() == ["receive", "receive"]
    # The estimator `available` counts per second of CPU left to us: the law itself, up to the noise.
    low, high = table["loss_at_matched"].to_pylist()
    assert high / low == pytest.approx(2, rel=0.1)
    assert all(row["ir_low"] < row["ir_s_per_mb"] < row["ir_high"] for row in table.to_pylist())


def test_a_point_with_too_few_samples_for_a_fit_is_shown_without_figures(tmp_path):
    def refuse_one(found):
        if found.header["kernel"]["matrix"] == 16:
            raise DescriptionError("too few samples for a fit", "no-fit")
        return fitted(found)

    measure_sweep("footprint", tmp_path, VALUES, measure=Probe())
    sweep = Sweep.load(tmp_path, fit=refuse_one)
    assert [value for value, _ in sweep.fits] == [8, 32, 64]
    rows = sweep.to_arrow().to_pylist()
    assert [row["value"] for row in rows] == VALUES
    assert [math.isnan(row["ir_s_per_mb"]) for row in rows] == [False, True, False, False]
    assert (rows[1]["direction"], rows[1]["settled"]) == ("receive", False)


@pytest.mark.parametrize(("second", "code"), [("settled", 0), ("one cycle", 3), ("nothing", 3)])
def test_the_command_line_trusts_a_sweep_only_when_every_point_settled(tmp_path, capfd, second, code):
    def measure(progress, **arguments):
        what = "settled" if arguments["streams"] == 1 else second
        made = {"cycles": 0 if what == "nothing" else 30, "together_cycles": 0, "noise": 0.01, "drift": 0.0}
        ended = "settled" if what == "settled" else "time-limit"
        found = synthetic.measurement(1e-4, None, ended=ended, loopback=False, **made)
        return synthetic.in_one_cycle(found) if what == "one cycle" else found

    sweep = measure_sweep("streams", tmp_path, [1, 2], measure=measure)
    assert told(sweep, tmp_path, json=False) == code
    table, said = capfd.readouterr()
    assert "inf" not in table + said
    assert "nan" not in table
    assert ("at 2: " in said) == bool(code)
