"""A recording is a short file and a table beside it; together they are the disturbance that was recorded."""

import pytest

from crosswind import Disturbance
from crosswind.errors import DescriptionError
from crosswind.files.intervals import save_recording, table_beside
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
