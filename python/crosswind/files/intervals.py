"""Recorded intervals as a table file beside a short `noise.toml`, and the whole disturbance from both."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.errors import DescriptionError
from crosswind.files.reading import read_parquet
from crosswind.files.stored import replaced, write_text

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"crosswind.intervals"
_COLUMNS = ("cpu", "start_s", "duration_s", "cause")
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
    """Return a disturbance with the intervals of the tables that it names in it.

    Raises
    ------
    DescriptionError
        When a table is missing, or is none of intervals.
    """
    if b"intervals_file" not in content:
        return content
    try:
        text = content.decode()
        sources: list[dict[str, Any]] = tomllib.loads(text)["source"]
    except (ValueError, KeyError):
        return content  # reading it as a disturbance says what is wrong with it
    named = iter([source for source in sources if "intervals_file" in source])

    def filled(_match: re.Match[str]) -> str:
        source = next(named)
        return "\n".join(_lines(source, Path(path).parent / str(source["intervals_file"]), path))

    return re.sub(r"^intervals_file[ \t]*=.*$", filled, text, flags=re.MULTILINE).encode()


def _table(source: dict[str, Any]) -> pa.Table:
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


def _lines(source: dict[str, Any], file: Path, path: str | Path) -> Iterator[str]:
    """Yield the CPUs of a recorded source as a disturbance.toml has them."""
    if not file.is_file():
        hint = f"`crosswind record` writes two files: {file.name} belongs beside {path}"
        raise DescriptionError(f"{path}: intervals_file is {file.name!r}: no such file", "no-file", hint)
    try:
        table = read_parquet(file)
    except (OSError, ValueError) as error:
        raise DescriptionError(
            f"{file}: is not a Parquet file ({str(error).splitlines()[0]})", "no-intervals"
        ) from None
    metadata = table.schema.metadata or {}
    if KEY not in metadata or set(_COLUMNS) - set(table.column_names):
        raise DescriptionError(f"{file}: is not a table of recorded intervals", "no-intervals")
    places = {cause: place for place, cause in enumerate(source.get("causes", []))}
    rows: dict[int, list[str]] = {int(cpu): [] for cpu in metadata[b"cpus"].decode().split(",") if cpu}
    columns: Any = (table.column(name).to_pylist() for name in _COLUMNS)
    for cpu, start, duration, cause in zip(*columns, strict=True):
        rows.setdefault(cpu, []).append(f"[{start!r}, {duration!r}, {places.get(cause, len(places))}]")
    for cpu, intervals in rows.items():
        yield f"[[source.cpu]]\ncpu = {cpu}\nintervals = [{', '.join(intervals)}]\n"
