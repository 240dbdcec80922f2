"""The columns of a Parquet file, checked once where it is read: what uses them may rely on names, types and ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from crosswind.errors import DescriptionError

_WORD = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Column:
    """What a column must be.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        `number`, `whole`, `flag` or `word`.
    least, most : float
        Range of a number. NaN, which says that a value is not known, is permitted where `unknown` is.
    unknown : bool
        Whether a number may be NaN.
    optional : bool
        Whether the column may be missing.
    empty : bool
        Whether a field may be empty.
    """

    name: str
    kind: Literal["number", "whole", "flag", "word"] = "number"
    least: float = -1e15
    most: float = 1e15
    unknown: bool = True
    optional: bool = False
    empty: bool = False


_WORDS = {"number": "numbers", "whole": "whole numbers", "flag": "true or false", "word": "text"}


def checked(table: pa.Table, columns: Iterable[Column], path: str | Path, code: str, hint: str) -> pa.Table:
    """Return the columns of a table that are asked for: double, a type of whole numbers, bool, or text by dictionary.

    Parameters
    ----------
    table : pyarrow.Table
        As read.
    columns : iterable of Column
        What is needed of it; other columns are left out.
    path : path
        The file, for errors.
    code, hint : str
        Of errors.

    Returns
    -------
    pyarrow.Table
        With the metadata of `table`.

    Raises
    ------
    DescriptionError
        When a column is missing or there twice, has another type, an empty field, or a value out of its range.
    """
    found: dict[str, Any] = {}
    for column in columns:
        there = table.schema.get_all_field_indices(column.name)
        if not there and column.optional:
            continue
        if len(there) != 1:
            what = "there is no column" if not there else "there are two columns"
            raise DescriptionError(f"{path}: {what} {column.name!r}", code, hint)
        found[column.name] = _of_kind(table.column(there[0]), column, path, code, hint)
    ordered = {name: found[name] for name in table.column_names if name in found}
    return pa.table(ordered).replace_schema_metadata(table.schema.metadata)


def _of_kind(
    values: pa.ChunkedArray[Any], column: Column, path: str | Path, code: str, hint: str
) -> pa.ChunkedArray[Any]:
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    whole = pa.types.is_integer(kind)
    right = {
        "number": whole or pa.types.is_floating(kind),
        "whole": whole,
        "flag": pa.types.is_boolean(kind),
        "word": pa.types.is_string(kind) or pa.types.is_large_string(kind),
    }[column.kind]
    if not right:
        message = f"{path}: column {column.name!r} has the type {values.type}; it must hold {_WORDS[column.kind]}"
        raise DescriptionError(message, code, hint)
    if values.null_count and not column.empty:
        raise DescriptionError(f"{path}: column {column.name!r} has empty fields", code, hint)
    if column.kind == "word":
        return values if values.type == _WORD else values.cast(pa.string()).dictionary_encode().cast(_WORD)
    if column.kind == "flag":
        return values
    numbers = values.to_numpy()
    with np.errstate(invalid="ignore"):
        wrong = ~((numbers >= column.least) & (numbers <= column.most))
    if column.unknown and not whole:
        wrong &= ~np.isnan(numbers)
    if wrong.any():
        row = int(wrong.argmax())
        permitted = f"{column.least:g} to {column.most:g}"
        message = f"{path}: {column.name} is {numbers[row]:g} in row {row + 1}; it must be {permitted}"
        raise DescriptionError(message, code, hint)
    return values if column.kind == "whole" else values.cast(pa.float64())
