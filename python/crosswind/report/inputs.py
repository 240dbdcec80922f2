"""What a report is about: files and objects, sorted into the kinds of sections that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from crosswind.blame.result import Blame
from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
from crosswind.files.kinds import WORDS, found_at
from crosswind.inject import Injected
from crosswind.measure.sweep import Sweep
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit
from crosswind.overlap.result import Overlap
from crosswind.papers.studies import AnyStudy
from crosswind.plan import Plan
from crosswind.platform import Platform
from crosswind.report.section import Kind
from crosswind.report.sections import KINDS
from crosswind.run.results import Runs
from crosswind.run.trace import Trace

Item: TypeAlias = (
    Measurement
    | Fit
    | Plan
    | Platform
    | Sweep
    | Runs[Any]
    | Trace
    | Blame
    | AnyStudy
    | Disturbance
    | Injected
    | Overlap
    | str
    | Path
)
HINT = (
    "a report takes *.parquet (crosswind measure, run --trace), *.json (crosswind plan, run, blame, overlap, "
    "reproduce, inject --json), *.toml (platform, crosswind record), or a sweep's directory"
)

_LOADERS = {file: load for kind in KINDS for file, load in kind.files.items()}
# Of a file of no kind: reading it as this says what is wrong with it.
_BY_SUFFIX = {".parquet": "measurement", ".json": "plan", ".toml": "platform"}


def gather(items: Item | Sequence[Item]) -> dict[Kind, list[Any]]:
    """Load what a report is to be about, and sort it by kind of section, in the order of the page.

    Raises
    ------
    DescriptionError
        For nothing at all, and for anything that no section shows, naming it and what would be taken.
    """
    contents: dict[Kind, list[Any]] = {kind: [] for kind in KINDS}
    one = isinstance(items, (str, Runs)) or not isinstance(items, Sequence)
    several: Sequence[Item] = [items] if one else items  # type: ignore[list-item,assignment]
    for item in several:
        _add(contents, _loaded(Path(item)) if isinstance(item, (str, Path)) else item)
    if not any(contents.values()):
        raise DescriptionError("there is nothing to report on", "no-input", HINT)
    return contents


def _loaded(path: Path) -> object:
    if path.is_dir():
        if not (path / "sweep.json").is_file():
            raise DescriptionError(f"{path}: is a directory without sweep.json", "no-sweep", HINT)
        return _LOADERS["sweep"](path / "sweep.json")
    if not path.exists():
        raise DescriptionError(f"{path}: no such file", "no-file", HINT)
    kind = found_at(path).kind
    if kind in WORDS and kind not in _LOADERS:
        raise DescriptionError(f"{path} is {WORDS[kind]}, which a report does not show", "unknown-kind", HINT)
    load = _LOADERS.get(kind) or _LOADERS.get(_BY_SUFFIX.get(path.suffix.lower(), ""))
    if load is None:
        raise DescriptionError(f"{path}: what it holds cannot be told from its name", "unknown-kind", HINT)
    return load(path)


def _add(contents: dict[Kind, list[Any]], item: object) -> None:
    kind = next((kind for kind in KINDS if kind.takes(item)), None)
    if kind is None:
        raise DescriptionError(f"a {type(item).__name__} cannot be reported on", "unknown-kind", HINT)
    contents[kind].append(kind.made(item))
    for part in kind.holds(item):
        _add(contents, part)
