"""Plain data as bytes: all that a process takes from another that must not run code in it.

Numbers, text, bytes, dates, lists, tuples, dicts, sets, arrays of NumPy, and tables of pandas, Polars and Arrow, as a
pickle that names no class but those of a short list. Arrays and tables are in it as npy and Arrow files; the data of
large arrays, and large bytes, follow it (`crosswind.run.pieces`).
"""

from __future__ import annotations

import io
import pickle
from fractions import Fraction
from typing import Any, Final, Literal
from uuid import UUID

from crosswind.errors import CrosswindError
from crosswind.run import pieces

_CLASSES: Final = {
    "builtins": ("complex", "set", "frozenset", "bytearray", "slice", "range"),
    "collections": ("OrderedDict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
}
"""Classes written in C, which a pickle cannot change: of one written in Python it could replace a method."""
_AS_TEXT: Final = {"Fraction": Fraction, "UUID": UUID}
KINDS: Final = "numbers, text, bytes, dates, lists, tuples, dicts, sets, arrays and tables"


class NotPlainError(CrosswindError):
    """A value that is no plain data, or bytes that hold another."""


def dumps(value: Any) -> bytes:
    """Return plain data as bytes.

    Raises
    ------
    NotPlainError
        When there is anything else in it.

    Examples
    --------
    >>> loads(dumps({"figures": [1, 2.5, None], "of": ("a", b"b")}))
    {'figures': [1, 2.5, None], 'of': ('a', b'b')}
    """
    if type(value) is bytes and len(value) >= pieces.LARGE:
        return pieces.joined(b"", [memoryview(value)])
    with io.BytesIO() as file:
        pickler = _Pickler(file)
        try:
            pickler.dump(value)
            head = file.getvalue()
            _Check(head, []).load()
        except NotPlainError:
            raise
        except Exception as error:  # whatever a class of the user's raises as it is pickled
            raise _refused(f"{type(value).__name__} ({error})") from None
        return pieces.joined(head, pickler.large) if pickler.large else head


def loads(data: pieces.Data) -> Any:
    """Return plain data from bytes that an untrusted process may have written.

    Raises
    ------
    NotPlainError
        When they hold anything else, or are damaged.
    """
    try:
        head, large = pieces.parts_of(data) if data[:1] == pieces.MARK else (data, [])
        return _Unpickler(head, large).load() if head else bytes(large[0])
    except NotPlainError:
        raise
    except Exception as error:  # an opcode that makes no sense raises almost anything
        raise NotPlainError(f"the bytes of a result are damaged: {error}", "not-plain") from None


def _refused(what: str) -> NotPlainError:
    return NotPlainError(f"there is a {what} in it; plain data are {KINDS}", "not-plain")


class _Pickler(pickle.Pickler):
    """Keeps the data of large arrays, and large bytes, out of the pickle: in `large`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.large: list[memoryview] = []

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        if type(value) is bytes and len(value) >= pieces.LARGE:
            return "bytes", self._number(memoryview(value))
        module = type(value).__module__.partition(".")[0]
        if type(value) in _AS_TEXT.values():
            return type(value).__name__, str(value).encode()
        if module == "numpy":
            return self._large_array(value) or _array(value)
        if module in {"pandas", "polars", "pyarrow"}:
            return _table(value, module)
        return None

    def _number(self, data: memoryview) -> int:
        self.large.append(data)
        return len(self.large) - 1

    def _large_array(self, value: Any) -> tuple[Any, ...] | None:
        import numpy as np
        from numpy.lib import format as npy

        if type(value) is not np.ndarray or value.nbytes < pieces.LARGE or value.dtype.hasobject:
            return None
        if not (value.flags.c_contiguous or value.flags.f_contiguous):
            return None
        order: Literal["C", "F"] = "C" if value.flags.c_contiguous else "F"
        data = memoryview(value.reshape(-1, order=order).view("u1").data)
        return "large array", npy.dtype_to_descr(value.dtype), value.shape, order, self._number(data)


class _Unpickler(pickle.Unpickler):
    def __init__(self, head: pieces.Data, large: list[memoryview]) -> None:
        super().__init__(io.BytesIO(head))
        self._large = large

    def find_class(self, module: str, name: str) -> Any:
        if name not in _CLASSES.get(module, ()):
            raise _refused(f"{module}.{name}")
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == "bytes":
            return bytes(pieces.together(pid[1], self._large))
        if pid[0] == "large array":
            return self._large_array(*pid[1:])
        kind, content = pid
        if kind in _AS_TEXT:
            return _AS_TEXT[kind](content.decode())
        if kind in {"array", "number"}:
            from numpy.lib import format as npy

            array = npy.read_array(io.BytesIO(content), allow_pickle=False)
            return array[()] if kind == "number" else array
        return _from_arrow(kind, content)

    def _large_array(self, description: Any, shape: Any, order: Any, number: Any) -> Any:
        import numpy as np
        from numpy.lib import format as npy

        dtype = npy.descr_to_dtype(description)
        if dtype.hasobject:
            raise _refused("array of objects")
        data = pieces.own(pieces.together(number, self._large))
        return np.frombuffer(data, dtype).reshape(shape, order=order)


class _Check(_Unpickler):
    """Reads a pickle without the data that follow it."""

    def persistent_load(self, pid: Any) -> Any:
        is_apart = pid[0] in {"bytes", "large array"} or pid[1] is None
        return None if is_apart else super().persistent_load(pid)


def _array(value: Any) -> tuple[str, bytes] | None:
    import numpy as np

    if type(value) is not np.ndarray and not isinstance(value, np.generic):
        raise _refused(type(value).__name__)
    with io.BytesIO() as file:
        try:
            np.save(file, value, allow_pickle=False)
        except ValueError:
            raise _refused("array of objects") from None
        return "array" if isinstance(value, np.ndarray) else "number", file.getvalue()


def _table(value: Any, module: str) -> tuple[str, bytes]:
    import pyarrow as pa

    kind = f"{module}.{type(value).__name__}"
    if kind == "pandas.DataFrame":
        table = pa.Table.from_pandas(value)
    elif kind == "pandas.Series":
        table = pa.Table.from_pandas(value.to_frame("value" if value.name is None else value.name))
        kind = "pandas.Series" if value.name is not None else "pandas.Series without name"
    elif kind == "polars.DataFrame":
        table = value.to_arrow()
    elif kind == "pyarrow.Table":
        table = value
    else:
        raise _refused(type(value).__name__)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return kind, sink.getvalue().to_pybytes()


def _from_arrow(kind: str, content: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(content) as stream:
        table = stream.read_all()
    table.validate(full=True)
    if kind == "polars.DataFrame":
        import polars

        return polars.from_arrow(table)
    if kind == "pandas.DataFrame":
        return table.to_pandas()
    if kind.startswith("pandas.Series"):
        series = table.to_pandas().iloc[:, 0]
        return series if kind == "pandas.Series" else series.rename(None)
    if kind == "pyarrow.Table":
        return table
    raise _refused(str(kind))
