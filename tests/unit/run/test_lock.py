"""The lock on a directory of results, where it cannot be written."""

import errno
import os

import pytest

from crosswind.errors import CrosswindError
from crosswind.run.lock import locked


@pytest.mark.parametrize(
    ("number", "hint", "code"), [(errno.ENOSPC, "make room", 1), (errno.EIO, "you may write to", 2)]
)
def test_a_directory_where_the_lock_cannot_be_written_is_named_and_no_lock_is_left(
    tmp_path, monkeypatch, number, hint, code
):
    def refuse(descriptor, data, offset):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(CrosswindError, match=f"{tmp_path}: cannot be written") as raised, locked(tmp_path):
        pytest.fail("it is not locked")
    assert hint in raised.value.hint
    assert raised.value.exit_code == code
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    with locked(tmp_path):
        assert list(tmp_path.iterdir())
