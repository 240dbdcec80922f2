"""Columns of Parquet files from outside: names, types and ranges are checked once, where the file is read."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reported
import synthetic

from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement
from crosswind.run.trace import Trace


def without(table, name):
    return table.drop_columns([name])


def twice(table, name):
    return table.append_column(name, table.column(name))


def words(table, name):
    return table.set_column(table.column_names.index(name), name, pa.array(["x"] * table.num_rows))


def empty(table, name):
    return table.set_column(table.column_names.index(name), name, pa.nulls(table.num_rows, table.column(name).type))


def huge(table, name):
    return table.set_column(table.column_names.index(name), name, pa.array([2**62] * table.num_rows))


@pytest.mark.parametrize("change", [without, twice, words, empty, huge])
@pytest.mark.parametrize(
    ("file", "name", "load"),
    [
        *(
            ("m.parquet", name, Measurement.load)
            for name in ("t_s", "work", "block", "cycle", "channel1_mb", "settling")
        ),
        *(("t.parquet", name, Trace.load) for name in ("task", "start_s", "mb")),
    ],
)
def test_a_column_that_is_not_what_it_must_be_is_refused_by_its_name(tmp_path, change, file, name, load):
    path = tmp_path / file
    synthetic.measurement(cycles=1).save(path) if file == "m.parquet" else reported.traced(9).save(path)
    table = pq.read_table(path)
    header = table.schema.metadata
    pq.write_table(change(table, name).replace_schema_metadata(header), path)
    if change is huge and name in ("task",):
        load(path)  # a number of a task
        return
    with pytest.raises(DescriptionError, match=rf"^{path}: .*\b{name}\b") as refused:
        load(path)
    assert refused.value.hint


def test_what_is_read_is_what_was_written(tmp_path):
    found = synthetic.measurement(cycles=1)
    found.save(tmp_path / "m.parquet")
    again = Measurement.load(tmp_path / "m.parquet").samples
    assert again.schema.equals(found.samples.schema)
    assert repr(again.to_pydict()) == repr(found.samples.to_pydict())  # NaN is not equal to itself
    trace = reported.traced(9)
    trace.save(tmp_path / "t.parquet")
    assert Trace.load(tmp_path / "t.parquet").activities.equals(trace.activities)


def test_columns_of_whole_numbers_may_hold_amounts(tmp_path):
    """As another program writes counts."""
    found = synthetic.measurement(cycles=1)
    place = found.samples.column_names.index("calls")
    counts = pa.array(np.round(found.samples.column("calls").to_numpy()).astype(np.int64))
    Measurement(found.samples.set_column(place, "calls", counts), found.header).save(tmp_path / "m.parquet")
    assert pa.types.is_float64(Measurement.load(tmp_path / "m.parquet").samples.schema.field("calls").type)


def test_a_channel_of_a_peer_that_the_header_does_not_name_is_refused(tmp_path):
    found = synthetic.measurement(cycles=1)
    found.header["channels"][1]["peer"] = 1
    with pytest.raises(DescriptionError, match=r"channels\[1\].peer is 1; the file names 1 peers, the first with"):
        found.save(tmp_path / "m.parquet")
