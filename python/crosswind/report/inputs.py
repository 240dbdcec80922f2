"""What a report is about: files and objects sorted into measurements, platforms, plans, sweeps, runs and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from crosswind.blame.result import Blame, is_blame
from crosswind.errors import DescriptionError
from crosswind.inject import Injected
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit, fit
from crosswind.overlap.result import Overlap, is_overlap
from crosswind.papers import studies
from crosswind.papers.scheduling_and_communication.study import Study
from crosswind.papers.studies import AnyStudy
from crosswind.papers.tabled_study import TabledStudy
from crosswind.plan import Plan
from crosswind.platform import Platform
from crosswind.reading import parse_json, read_bytes
from crosswind.run.results import ProgramRun, Run, Runs, StreamsRun
from crosswind.run.trace import Trace
from crosswind.sweep import Sweep

Item: TypeAlias = (
    Measurement | Fit | Plan | Platform | Sweep | Runs[Any] | Trace | Blame | AnyStudy | Injected | Overlap | str | Path
)
HINT = (
    "a report takes *.parquet (crosswind measure, run --trace), *.json (crosswind plan, run, blame, overlap, "
    "reproduce, inject --json), *.toml (platform), or a sweep's directory"
)


@dataclass(frozen=True)
class Unfitted:
    """A measurement that ended too early for a fit, and why."""

    measurement: Measurement
    reason: str


@dataclass
class Contents:
    """What was given, by kind, in the order given."""

    measured: list[Fit | Unfitted] = field(default_factory=list)
    platforms: list[Platform] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    runs: list[Runs[Run]] = field(default_factory=list)
    programs: list[Runs[ProgramRun]] = field(default_factory=list)
    streams: list[Runs[StreamsRun]] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    blames: list[Blame] = field(default_factory=list)
    studies: list[AnyStudy] = field(default_factory=list)
    injected: list[Injected] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, kind.name) for kind in fields(self))


def gather(items: Item | Sequence[Item]) -> Contents:
    """Load and sort what a report is to be about.

    Raises
    ------
    DescriptionError
        For nothing at all, and for anything that is none of the kinds, naming it and what would be taken.
    """
    contents = Contents()
    one = isinstance(items, (str, Runs)) or not isinstance(items, Sequence)
    several: Sequence[Item] = [items] if one else items  # type: ignore[list-item,assignment]
    for item in several:
        _add(contents, _loaded(item) if isinstance(item, (str, Path)) else item)
    if not contents:
        raise DescriptionError("there is nothing to report on", "no-input", HINT)
    return contents


def _loaded(path: str | Path) -> Item:
    path = Path(path)
    if path.is_dir():
        if not (path / "sweep.json").is_file():
            raise DescriptionError(f"{path}: is a directory without sweep.json", "no-sweep", HINT)
        return Sweep.load(path)
    if not path.exists():
        raise DescriptionError(f"{path}: no such file", "no-file", HINT)
    match path.suffix.lower():
        case ".parquet":
            return Trace.load(path) if Trace.is_one(path) else Measurement.load(path)
        case ".json":
            return _of_json(path)
        case ".toml":
            return Platform.load(path)
    raise DescriptionError(f"{path}: what it holds cannot be told from its name", "unknown-kind", HINT)


def _of_json(path: Path) -> Plan | Runs[Any] | Blame | AnyStudy | Injected | Overlap:
    """Tell what a JSON file holds from its content; whatever else it is, reading it as a plan says what is wrong."""
    try:
        content = parse_json(read_bytes(path))
    except DescriptionError:
        raise
    except ValueError:
        return Plan.load(path)
    if is_blame(content):
        return Blame.load(path)
    if is_overlap(content):
        return Overlap.load(path)
    if studies.is_study(content):
        return studies.load(path)
    if isinstance(content, dict) and {"elapsed_s", "command", "ranks", "disturbance"} <= set(content):
        return Injected(content, "")
    return Runs.load(path) if isinstance(content, dict) and "runs" in content else Plan.load(path)


def _add(contents: Contents, item: object) -> None:
    match item:
        case Measurement():
            try:
                contents.measured.append(fit(item))
            except DescriptionError as error:
                contents.measured.append(Unfitted(item, str(error)))
        case Runs() if item.kind == "program":
            contents.programs.append(item)
        case Runs() if item.kind == "streams":
            contents.streams.append(item)
        case Runs():
            contents.runs.append(item)
            contents.traces += [run.trace for run in item if run.trace is not None]
        case _:
            places: list[tuple[type, list[Any]]] = [
                (Fit, contents.measured),
                (Plan, contents.plans),
                (Platform, contents.platforms),
                (Sweep, contents.sweeps),
                (Trace, contents.traces),
                (Blame, contents.blames),
                (Study, contents.studies),
                (TabledStudy, contents.studies),
                (Injected, contents.injected),
                (Overlap, contents.overlaps),
            ]
            place = next((place for kind, place in places if isinstance(item, kind)), None)
            if place is not None:
                place.append(item)
                return
            raise DescriptionError(f"a {type(item).__name__} cannot be reported on", "unknown-kind", HINT)
