"""A recording is a short file and a table beside it; together they are the disturbance that was recorded."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswind import Disturbance
from crosswind.errors import DescriptionError
from crosswind.files.intervals import KEY, LARGEST_ROWS, save_recording, table_beside
from crosswind.files.kinds import found_at

TEXT = """schema_version = 1
name = "n"

[[source]]
kind = "recorded"
length_s = 1.0
causes = ["timer", "cron"]

[[source.cpu]]
cpu = 0
intervals = [[0.1, 0.001, 1], [0.2, 0.0005, 0]]

[[source.cpu]]
cpu = 3
intervals = []
"""


def test_what_is_read_from_both_files_is_what_was_recorded(tmp_path):
    file = tmp_path / "noise.toml"
    save_recording(TEXT, file)
    assert "intervals = " not in file.read_text()
    assert (found_at(file).kind, found_at(table_beside(file)).kind) == ("recording", "intervals")
    assert Disturbance.load(file).to_dict() == Disturbance.from_toml(TEXT).to_dict()


def test_a_recording_without_its_table_names_it(tmp_path):
    file = tmp_path / "noise.toml"
    save_recording(TEXT, file)
    table_beside(file).unlink()
    with pytest.raises(DescriptionError, match=r"intervals_file is 'noise.intervals.parquet': no such file") as error:
        Disturbance.load(file)
    assert "two files" in error.value.hint


def test_a_table_of_something_else_is_refused(tmp_path):
    file = tmp_path / "noise.toml"
    save_recording(TEXT, file)
    table_beside(file).write_bytes(b"not a table")
    with pytest.raises(DescriptionError, match="is not a Parquet file"):
        Disturbance.load(file)


def saved(directory):
    file = directory / "noise.toml"
    save_recording(TEXT, file)
    return file


def test_the_order_of_lines_and_the_layout_of_the_file_do_not_matter(tmp_path):
    file = saved(tmp_path)
    head, _, source = file.read_text().partition("[[source]]\n")
    lines = [line for line in source.splitlines() if line]
    daemon = '[[source]]\nkind = "daemon"\ncause = "d"\ninterval_s = 1\nduration_s = 0.001\n'
    expected = Disturbance.from_toml(TEXT + daemon).to_dict()
    for order in (lines, lines[::-1], [line.replace(" = ", "=  ") for line in lines]):
        file.write_text(head + "[[source]]\n" + "\n".join(order) + "\n" + daemon)
        assert Disturbance.load(file).to_dict() == expected
    inline = re.sub(" #.*", "", ", ".join(lines))
    file.write_text(head + f"source = [{{{inline}}}]\n")
    assert Disturbance.load(file).to_dict() == Disturbance.from_toml(TEXT).to_dict()


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("intervals_file", "intervals_file = 7", "source[0].intervals_file is 7; it must be the name of a file"),
        ("intervals_file", f'intervals_file = "{"a" * 70000}"', "it must be a file that can be read"),
        ("intervals_file", 'intervals_file = "a\\u0000b"', "it must be the name of a file"),
        ("intervals_file", 'intervals_file = "/dev/zero"', "no such file"),
        ("intervals_file", f"intervals_file = {'[' * 3000}{']' * 3000}", ""),
        (
            "causes",
            'causes = ["timer", ["cron"]]',
            "source[0].causes is ['timer', ['cron']]; it must be a list of names",
        ),
        ("causes", "causes = {a = 1}", "it must be a list of names"),
        ("causes", 'causes = ["timer"]', "the cause 'cron' is not among the causes"),
        ("causes", "", "source[0].causes is None"),
        ("kind", 'kind = "daemon"', "source[0].kind is 'daemon'; it must be \"recorded\""),
        ("kind", "kind = 1979-05-27", "source[0].kind is"),
        ("length_s", "length_s = inf", "length_s"),
        ("length_s", f"length_s = 1{'0' * 5000}", ""),
        ("length_s", "length_s = 1\ncpu = []", "source[0].cpu is []; it must be left out"),
        ("[[source]]", "[[other]]", "other"),
        ("[[source]]", "[source]", ""),
        ("schema_version", 'schema_version = 1\n"a b\\u007f" = [1, {c = 07:32:00}]', "a b"),
    ],
)
def test_a_wrong_field_of_a_recording_is_named(line, instead, message, tmp_path):
    file = saved(tmp_path)
    lines = file.read_text().splitlines()
    [place] = [at for at, text in enumerate(lines) if text.startswith(line)]
    file.write_text("\n".join([*lines[:place], instead, *lines[place + 1 :]]) + "\n")
    with pytest.raises(DescriptionError) as error:
        Disturbance.load(file)
    assert message in str(error.value)
    assert len(str(error.value)) < 5000


def without(name):
    return lambda table: table.drop_columns([name])


def with_column(name, column):
    return lambda table: table.set_column(table.column_names.index(name), name, [column])


def with_header(cpus):
    return lambda table: table.replace_schema_metadata({KEY: b"1"} | ({b"cpus": cpus} if cpus is not None else {}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        *((without(name), f"has no column {name}") for name in ("cpu", "start_s", "duration_s", "cause")),
        (with_column("cpu", pa.array(["x", "y"])), "column cpu holds string; it must hold whole numbers"),
        (with_column("cpu", pa.array([0, -1])), "column cpu has a negative number"),
        (with_column("cpu", pa.array([0.0, 1.0])), "column cpu holds double"),
        (with_column("start_s", pa.nulls(2, pa.float64())), "column start_s has 2 empty values"),
        (with_column("start_s", pa.array([0.1, float("nan")])), "column start_s has a value that is no finite number"),
        (with_column("duration_s", pa.array([1e308, 1.0])), "cpu[0].intervals"),
        (with_column("cause", pa.array([b"timer", b"\xff"])), "cause"),
        (with_column("cause", pa.array([1, 2])), "column cause holds int64; it must hold names"),
        (with_column("cause", pa.array(["timer", "x" * 70000])), "the cause 'xxx"),
        (lambda table: table.append_column("cpu", table.column("cpu")), "has 2 columns cpu"),
        (lambda table: table.replace_schema_metadata(None), "is not a table of recorded intervals"),
        (with_header(None), "cpus in its header is None; it must list"),
        *((with_header(text), "cpus in its header is b") for text in (b"a", b"\xff", b"0;1", b"1" * 5000, b"-1")),
        (with_header(b"99999999999"), "cpus in its header"),
    ],
)
def test_a_wrong_column_or_header_of_the_table_is_named(changed, message, tmp_path):
    file = saved(tmp_path)
    pq.write_table(changed(pq.read_table(table_beside(file))), table_beside(file))
    with pytest.raises(DescriptionError) as error:
        Disturbance.load(file)
    assert message in str(error.value)
    assert "is not a Parquet file" not in str(error.value)
    assert len(str(error.value)) < 500


def test_a_small_file_of_very_many_intervals_is_refused_before_it_is_read(tmp_path):
    file = saved(tmp_path)
    table = pq.read_table(table_beside(file))
    zeros = np.zeros(LARGEST_ROWS + 1)
    columns = [pa.array(zeros.astype("uint32")), pa.array(zeros), pa.array(zeros)]
    cause = pa.DictionaryArray.from_arrays(pa.array(zeros.astype("int32")), pa.array(["timer"]))
    many = pa.Table.from_arrays([*columns, cause], table.column_names).replace_schema_metadata(table.schema.metadata)
    pq.write_table(many, table_beside(file), compression="zstd")
    with pytest.raises(
        DescriptionError, match=f"has {LARGEST_ROWS + 1} intervals; at most {LARGEST_ROWS} are read"
    ) as error:
        Disturbance.load(file)
    assert error.value.hint == "record less at a time"
