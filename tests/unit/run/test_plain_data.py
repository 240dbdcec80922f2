"""Plain data survive the way there and back; whatever else is in the bytes is refused before it can do anything."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import fractions
import importlib
import io
import os
import pickle
import random
import uuid
from collections import OrderedDict, deque
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crosswind.run.calls import CallError, Performer, RemoteTraceback, called, outcome
from crosswind.run.pieces import joined
from crosswind.run.plain_data import _CLASSES, NotPlainError, dumps, loads

VALUES = [
    None,
    -(2**70),
    1.5,
    2 + 3j,
    "text",
    b"bytes",
    bytearray(b"more"),
    [1, [2, (3, {4}), frozenset([5])]],
    {"a": {"b": range(3)}},
    slice(1, 2),
    OrderedDict(a=1),
    deque([1, 2], maxlen=2),
    datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    datetime.date(2026, 1, 2),
    decimal.Decimal("1.10"),
    fractions.Fraction(1, 3),
    uuid.UUID(int=7),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_data_come_back_as_they_were(value):
    back = loads(dumps(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("dtype", ["f4", "i8", "?", "c16", "S3", "U4", "M8[s]", [("a", "f8"), ("b", "i2")]])
def test_arrays_come_back_as_they_were(dtype):
    value = np.zeros((2, 3), dtype=dtype)
    back = loads(dumps({"inside": [value, value[0, 0]]}))["inside"]
    assert back[0].dtype == value.dtype
    assert back[0].tolist() == value.tolist()
    assert type(back[1]) is type(value[0, 0])
    assert back[0].flags.writeable


def test_tables_come_back_as_they_were():
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", None]}, index=[5, 7])
    back = loads(dumps((frame, frame["x"], pd.Series([1.0, 2.0]), pl.DataFrame({"z": [1]}), pa.table({"w": [1]}))))
    pd.testing.assert_frame_equal(back[0], frame)
    pd.testing.assert_series_equal(back[1], frame["x"])
    pd.testing.assert_series_equal(back[2], pd.Series([1.0, 2.0]))
    assert back[3].equals(pl.DataFrame({"z": [1]}))
    assert back[4].equals(pa.table({"w": [1]}))


class Ours:
    pass


MADE = f"/tmp/crosswind-made-by-a-pickle-{os.getpid()}"


class Runs:
    def __reduce__(self):
        return os.mkdir, (MADE,)


@pytest.mark.parametrize(
    "value",
    [
        Ours(),
        [Ours()],
        len,
        Ours,
        lambda: 1,
        np.array([Ours()], dtype=object),
        np.ma.array([1]),
        ValueError("x"),
        Runs(),
    ],
    ids=["object", "list", "builtin", "class", "lambda", "objects", "masked", "error", "runs"],
)
def test_anything_else_is_refused_where_it_is_written(value):
    with pytest.raises(NotPlainError, match="plain data are numbers, text"):
        dumps(value)


@pytest.mark.parametrize(
    "value",
    [Runs(), [1, Runs()], {"a": (Runs(),)}, Ours(), os.system, np.array([1]), pd.DataFrame({"x": [1]})],
    ids=["runs", "in a list", "in a dict", "object", "function", "array", "table"],
)
def test_a_pickle_of_anything_else_is_refused_where_it_is_read_and_does_nothing(value):
    with pytest.raises(NotPlainError):
        loads(pickle.dumps(value))
    assert not Path(MADE).exists()


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in _CLASSES.items() for name in names])
def test_no_class_that_bytes_may_name_can_be_changed_by_them(module, name):
    """`BUILD` sets attributes of what is on the stack, a class included."""
    found = getattr(importlib.import_module(module), name)
    with pytest.raises(TypeError, match=r"immutable type|built-in"):
        found.attribute_of_a_test = 1
    state = pickle.dumps((None, {"attribute_of_a_test": 1}), 2)[2:-1]
    with pytest.raises(NotPlainError):
        loads(b"\x80\x02c" + f"{module}\n{name}\n".encode() + state + b"b.")


def test_an_archive_of_arrays_is_no_array():
    with io.BytesIO() as file:
        np.savez(file, a=np.arange(3))
        archive = file.getvalue()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("array", archive) if value == "here" else None

    with io.BytesIO() as file:
        Pickler(file).dump(["here"])
        with pytest.raises(NotPlainError):
            loads(file.getvalue())


@pytest.mark.parametrize("mutants", [200, 3000])
def test_damaged_bytes_are_refused_in_words(mutants):
    """Mutants of real bytes either are plain data or say why not: no other error, no code."""
    source = dumps({"a": [1, 2.0, "x", np.arange(3), datetime.date(2026, 1, 1)], "t": pa.table({"w": [1, 2]})})
    drawn = random.Random(7)
    for _ in range(mutants):
        data = bytearray(source)
        for _ in range(drawn.randint(1, 4)):
            data[drawn.randrange(len(data))] = drawn.randrange(256)
        data = data[: drawn.randint(0, len(data))] if drawn.random() < 0.2 else data
        with contextlib.suppress(NotPlainError):
            loads(bytes(data))


class OfTwo(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first}-{second}")
        self.first, self.second = first, second


class Unsendable(Exception):
    def __init__(self):
        super().__init__("with a lock")
        import threading

        self.lock = threading.Lock()


def raises(error):
    raise error


def outcome_of(function, *args, plain=False):
    call = (pickle.dumps(function), pickle.dumps((args, {})))
    done = Performer(plain=plain)(called(call))
    return outcome(done.data, not done.is_failure, "n1", plain=plain)


def raises_of_two():
    raise OfTwo(1, 2)


def raises_unsendable():
    raise Unsendable


@pytest.mark.parametrize("plain", [False, True])
def test_values_and_exceptions_of_calls_come_back(plain):
    assert outcome_of(divmod, 7, 2, plain=plain) == (3, 1)
    with pytest.raises(ValueError, match="invalid literal") as raised:
        outcome_of(int, "x", plain=plain)
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert "on node n1" in str(raised.value.__cause__)


def test_exceptions_keep_their_type_and_what_they_hold():
    with pytest.raises(OfTwo, match="1-2") as raised:
        outcome_of(raises_of_two)
    assert (raised.value.first, raised.value.second) == (1, 2)
    with pytest.raises(Unsendable, match="with a lock"):
        outcome_of(raises_unsendable)


def test_from_nodes_that_may_run_no_code_exceptions_come_by_name():
    with pytest.raises(CallError, match="OfTwo: 1-2"):
        outcome_of(raises_of_two, plain=True)
    with pytest.raises(CallError, match="NotPlainError"):
        outcome_of(Ours, plain=True)
    with pytest.raises(NotPlainError):
        outcome(pickle.dumps(Ours()), True, "n1", plain=True)


def large_array(*about):
    """Bytes that say of a large array what an untrusted node may say."""
    with io.BytesIO() as file:
        pickler = pickle.Pickler(file, protocol=5)
        pickler.persistent_id = lambda value: about if value is None else None
        pickler.dump(None)
        return joined(file.getvalue(), [memoryview(bytes(80_000))])


@pytest.mark.parametrize(
    "about",
    [
        ("large array", "|O", (10_000,), "C", 0),
        ("large array", [("a", "|O")], (10_000,), "C", 0),
        ("large array", "<f8", (10_001,), "C", 0),
        ("large array", "<f8", (10_000,), "K", 0),
        ("large array", "<f8", (10_000,), "C", 1),
        ("large array", "<f8", (10_000,), "C", -1),
        ("large array", "<f8", (10_000,), "C"),
        ("large array", "S0", (10_000,), "C", 0),
        ("large array", "no type", (10_000,), "C", 0),
        ("bytes", 1),
        ("bytes", 1 << 60),
        ("bytes",),
        (),
    ],
)
def test_what_a_node_says_of_large_data_is_checked(about):
    with pytest.raises(NotPlainError):
        loads(large_array(*about))


def test_large_data_that_are_cut_anywhere_or_longer_than_said_are_refused():
    data = dumps([np.zeros(10_000), b"x" * 70_000])
    assert loads(data)[1] == b"x" * 70_000
    draw = random.Random(1)
    for length in [*range(60), *(draw.randrange(len(data)) for _ in range(200))]:
        with pytest.raises(NotPlainError):
            loads(data[:length])
    with pytest.raises(NotPlainError):
        loads(data + b"x")
    for _ in range(300):  # whatever is changed: plain data, or an error
        at = draw.randrange(200)
        with contextlib.suppress(NotPlainError):
            loads(data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :])


def test_pickles_that_run_code_are_refused_with_large_data_after_them(tmp_path):
    evil = joined(pickle.dumps(_Runs(str(tmp_path / "ran"))), [memoryview(bytes(80_000))])
    for data in (evil, joined(b"", [memoryview(evil)])):
        with contextlib.suppress(NotPlainError):
            loads(data)
    assert not (tmp_path / "ran").exists()


class _Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)
