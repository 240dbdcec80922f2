"""Recorded intervals as a table file beside a short `noise.toml`, and the whole disturbance from both."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.documents import Document
from crosswind.errors import DescriptionError
from crosswind.files.atomic import replaced, write_text
from crosswind.files.reading import damaged_tables

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"crosswind.intervals"
_COLUMNS = ("cpu", "start_s", "duration_s", "cause")
LARGEST_ROWS = 2_500_000
"""Intervals of a table; the recorder ends at 2 million."""
LARGEST_TABLE_BYTES = 200_000_000
"""What a table takes in memory, by its own account."""
_ROWS_AT_ONCE = 100_000
_EMPTY = len("{}")
_MOST_CPUS = 65_536
_CPU_DIGITS = 10
_SHOWN = 60
_CPU = re.compile(r"^\[\[source\.cpu\]\]\n(?:.+\n)*\n?", re.MULTILINE)


def table_beside(path: str | Path) -> Path:
    """Return where the intervals of a recording go.

    Examples
    --------
    >>> str(table_beside("here/noise.toml"))
    'here/noise.intervals.parquet'
    """
    return Path(path).with_suffix(".intervals.parquet")


def save_recording(text: str, path: str | Path) -> None:
    """Write a disturbance of one recorded source as a short file, and its intervals as a table beside it."""
    import pyarrow.parquet as pq

    beside = table_beside(path)
    table = _table(tomllib.loads(text)["source"][0])
    with replaced(beside) as file:
        pq.write_table(table, file, compression="zstd")
    short = _CPU.sub("", text).rstrip("\n")
    write_text(f'{short}\nintervals_file = "{beside.name}" # cpu, start_s, duration_s, cause\n', path)


def whole(content: bytes, path: str | Path) -> bytes:
    """Return a disturbance with the intervals of the tables that it names in it, then as JSON: that may be larger.

    Raises
    ------
    DescriptionError
        When a field that belongs to a table is wrong, or a table is missing, too large, or none of intervals.
    """
    if b"intervals_file" not in content:
        return content
    try:
        document: Document = tomllib.loads(content.decode(), parse_float=_number)
        sources = document.get("source")
        if not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
            return content
        parts = [_json(source, f"{path}: source[{place}]", Path(path).parent) for place, source in enumerate(sources)]
        head = json.dumps({name: value for name, value in document.items() if name != "source"}, default=str)
    except DescriptionError:
        raise
    except (ValueError, RecursionError):
        return content  # reading it as a disturbance says what is wrong with it
    return f'{head[:-1]}{", " if len(head) > _EMPTY else ""}"source": [{", ".join(parts)}]}}'.encode()


def _number(text: str) -> float | str:
    """Return a number, or the text of one that is none in JSON, which is refused where it stands."""
    number = float(text)
    return number if math.isfinite(number) else text


def _json(source: Document, place: str, directory: Path) -> str:
    if "intervals_file" not in source:
        return json.dumps(source, default=str)
    head = json.dumps({name: value for name, value in source.items() if name != "intervals_file"}, default=str)
    return f'{head[:-1]}, "cpu": [{", ".join(_cpus(source, place, directory))}]}}'


def _table(source: Document) -> pa.Table:
    import pyarrow as pa

    rows = [(cpu["cpu"], *interval) for cpu in source["cpu"] for interval in cpu["intervals"]]
    cpus, starts, durations, causes = zip(*rows, strict=True) if rows else ((), (), (), ())
    names = pa.array(source["causes"], pa.string())
    cause = pa.DictionaryArray.from_arrays(pa.array(causes, pa.int32()), names)
    columns: list[pa.Array[Any]] = [
        pa.array(cpus, pa.uint32()),
        pa.array(starts, pa.float64()),
        pa.array(durations, pa.float64()),
        cause,
    ]
    empty = ",".join(str(cpu["cpu"]) for cpu in source["cpu"])
    return pa.Table.from_arrays(columns, list(_COLUMNS)).replace_schema_metadata({KEY: b"1", b"cpus": empty.encode()})


def _cpus(source: Document, place: str, directory: Path) -> list[str]:
    """Return the CPUs of a recorded source as JSON."""

    def wrong(field: str, expected: str) -> DescriptionError:
        shown = repr(source.get(field))
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        return DescriptionError(f"{place}.{field} is {shown}; it must be {expected}", "no-intervals")

    name, causes = source["intervals_file"], source.get("causes")
    if source.get("kind") != "recorded":
        raise wrong("kind", '"recorded" where there is an intervals_file')
    if not isinstance(name, str) or not name or "\0" in name:
        raise wrong("intervals_file", "the name of a file beside this one")
    if "cpu" in source:
        raise wrong("cpu", "left out where there is an intervals_file")
    if not isinstance(causes, list) or not causes or not all(isinstance(cause, str) for cause in causes):
        raise wrong("causes", "a list of names")
    file = directory / name
    try:
        is_there = file.is_file()
    except OSError as error:
        raise wrong("intervals_file", f"a file that can be read ({(error.strerror or str(error)).lower()})") from None
    if not is_there:
        hint = f"`crosswind record` writes two files: {file.name} belongs beside the other"
        raise DescriptionError(f"{place}.intervals_file is {name!r}: no such file", "no-file", hint)
    return _tables(file, causes)


def _tables(file: Path, causes: list[str]) -> list[str]:
    """Return the CPUs of a table of intervals; no interval becomes an object of Python."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    table, cpus = _checked(file)
    columns: dict[str, Any] = {name: table.column(name).combine_chunks() for name in _COLUMNS}
    cause: Any = columns["cause"]
    places: Any = pc.index_in(cause.dictionary, pa.array(causes)).take(cause.indices)
    if places.null_count:
        shown = pc.filter(cause.cast(pa.string()), pc.is_null(places))[0].as_py()[:_SHOWN]
        message = f"{file}: the cause {shown!r} is not among the causes of the file beside it"
        raise DescriptionError(message, "no-intervals")
    numbers = columns["cpu"].to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    present, first = np.unique(numbers[order], return_index=True)
    ranges = dict(
        zip(present.tolist(), zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True), strict=True)
    )
    join: Any = pc.binary_join_element_wise

    def rows(begin: int, end: int) -> str:
        here = pa.array(order[begin:end])
        times = (columns[name].take(here).cast(pa.float64()).cast(pa.string()) for name in ("start_s", "duration_s"))
        start, duration = times
        each: Any = join("[", start, ", ", duration, ", ", places.take(here).cast(pa.string()), "]", "")
        joined: Any = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, end - begin], pa.int32()), each), ", ")
        return str(joined[0].as_py())

    parts = []
    for cpu in dict.fromkeys([*cpus, *ranges]):
        begin, end = ranges.get(cpu, (0, 0))
        texts = [rows(at, min(at + _ROWS_AT_ONCE, end)) for at in range(begin, end, _ROWS_AT_ONCE)]
        parts.append(f'{{"cpu": {cpu}, "intervals": [{", ".join(texts)}]}}')
    return parts


def _checked(file: Path) -> tuple[pa.Table, list[int]]:
    """Return a table whose columns are those of intervals, and the CPUs that were recorded."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def wrong(what: str, hint: str | None = None) -> DescriptionError:
        return DescriptionError(f"{file}: {what}", "no-intervals", hint)

    try:
        with damaged_tables():
            with pq.ParquetFile(file) as parquet:
                schema, about = parquet.schema_arrow, parquet.metadata
            if KEY not in (schema.metadata or {}):
                raise wrong("is not a table of recorded intervals")
            _check_columns(schema, wrong)
            if about.num_rows > LARGEST_ROWS:
                raise wrong(f"has {about.num_rows} intervals; at most {LARGEST_ROWS} are read", "record less at a time")
            size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
            if size > LARGEST_TABLE_BYTES:
                raise wrong(f"takes {size / 1e6:.0f} MB; at most {LARGEST_TABLE_BYTES / 1e6:.0f} MB are read")
            with pq.ParquetFile(file, read_dictionary=["cause"]) as parquet:
                table = parquet.read(columns=list(_COLUMNS))
            table.validate(full=True)
    except OSError as error:
        raise wrong(f"is not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
    for name in _COLUMNS:
        if nulls := table.column(name).null_count:
            raise wrong(f"column {name} has {nulls} empty values; it must have none")
    for name in ("start_s", "duration_s"):
        if table.num_rows and not pc.all(pc.is_finite(table.column(name))).as_py():
            raise wrong(f"column {name} has a value that is no finite number")
    if table.num_rows and pc.min(table.column("cpu")).as_py() < 0:
        raise wrong("column cpu has a negative number; it must be 0 or more")
    return table, _recorded_cpus(schema.metadata.get(b"cpus"), wrong)


def _check_columns(schema: pa.Schema, wrong: Callable[[str], DescriptionError]) -> None:
    import pyarrow as pa

    def is_text(kind: pa.DataType) -> bool:
        return pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)

    expected: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
        "cpu": ("whole numbers", pa.types.is_integer),
        "start_s": ("numbers", pa.types.is_floating),
        "duration_s": ("numbers", pa.types.is_floating),
        "cause": ("names", is_text),
    }
    for name, (what, fits) in expected.items():
        if (count := schema.names.count(name)) != 1:
            raise wrong(f"has {count or 'no'} column{'s' if count else ''} {name}; it must have one, of {what}")
        if not fits(kind := schema.field(name).type):
            raise wrong(f"column {name} holds {kind}; it must hold {what}")


def _recorded_cpus(header: bytes | None, wrong: Callable[[str], DescriptionError]) -> list[int]:
    words = [] if header is None else header.decode(errors="replace").split(",")
    cpus = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < _CPU_DIGITS]
    if header is None or len(cpus) != len([word for word in words if word]) or len(cpus) > _MOST_CPUS:
        raise wrong(f"cpus in its header is {header!r:.{_SHOWN}}; it must list the numbers of CPUs, such as 0,1")
    return cpus
