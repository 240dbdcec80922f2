"""What a report is about: files and objects, sorted into the kinds of sections that show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from crosswind.blame.command import CommandBlame
from crosswind.blame.recorded import RecordedBlame
from crosswind.blame.result import Blame
from crosswind.check.result import Check
from crosswind.compare.result import Comparison
from crosswind.compare.several import Several
from crosswind.cost.result import Cost
from crosswind.disturbance import Disturbance
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.files.kinds import WORDS, found_at
from crosswind.files.wrong_kind import REPORT_TAKES, taken_by
from crosswind.gpu.fit import GpuFit
from crosswind.gpu.measurement import GpuMeasurement
from crosswind.inject import Injected
from crosswind.lab.papers.studies import AnyStudy
from crosswind.measure.sweep import Sweep
from crosswind.measurement import Measurement
from crosswind.model.fit import Fit
from crosswind.overlap.result import Overlap
from crosswind.plan import Plan
from crosswind.platform import Platform
from crosswind.report.sections.order import KINDS
from crosswind.report.sections.section import Kind
from crosswind.run.results import Runs
from crosswind.run.trace import Trace

Item: TypeAlias = (
    Measurement
    | Fit
    | GpuMeasurement
    | GpuFit
    | Plan
    | Platform
    | Sweep
    | Runs[Any]
    | Trace
    | Blame
    | CommandBlame
    | RecordedBlame
    | Cost
    | Comparison
    | Several
    | Check
    | AnyStudy
    | Disturbance
    | Injected
    | Overlap
    | str
    | Path
)
UNSHOWN = "a field is missing or wrong; if a verb wrote the file, this is a fault of Crosswind: report it with the file"

_LOADERS = {file: load for kind in KINDS for file, load in kind.files.items()}
# Of a file of no kind: reading it as this says what is wrong with it.
_BY_SUFFIX = {".parquet": "measurement", ".json": "plan", ".toml": "platform"}


@dataclass(frozen=True)
class Unread:
    """A file that a report cannot show.

    Attributes
    ----------
    name : str
        Its path.
    message : str
        Why.
    hint : str or None
        What to do.
    """

    name: str
    message: str
    hint: str | None


@dataclass(frozen=True)
class Gathered:
    """What a report is about.

    Attributes
    ----------
    contents : dict of Kind to list
        In the order of the page.
    sources : dict of int to str
        The path of the file that an item was read from, by the item's `id`.
    unread : list of Unread
        Files that were left out.
    """

    contents: dict[Kind, list[Any]]
    sources: dict[int, str] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)


def gather(items: Item | Sequence[Item], *, partial: bool = False) -> Gathered:
    """Load what a report is to be about, and sort it by kind of section.

    With `partial`, a file that cannot be shown is left out, as long as another can be.

    Raises
    ------
    DescriptionError
        For nothing at all, and for anything that no section shows, naming it and what would be taken.
    """
    found = Gathered({kind: [] for kind in KINDS})
    first: CrosswindError | None = None
    for item in listed(items):
        if not isinstance(item, (str, Path)):
            _add(found, item, "")
            continue
        try:
            _add(found, _loaded(Path(item)), str(item))
        except CrosswindError as error:
            if not partial:
                raise
            first = first or error
            found.unread.append(Unread(str(item), str(error), error.hint))
    if not any(found.contents.values()):
        raise first or DescriptionError("there is nothing to report on", "no-input", REPORT_TAKES)
    return found


def listed(items: Item | Sequence[Item]) -> Sequence[Item]:
    """Return one item or several as several."""
    one = isinstance(items, (str, Runs, Check)) or not isinstance(items, Sequence)
    several: Sequence[Item] = [items] if one else items  # type: ignore[list-item,assignment]
    return several


def _loaded(path: Path) -> object:
    if path.is_dir():
        if not (path / "sweep.json").is_file():
            raise DescriptionError(f"{path}: is a directory without sweep.json", "no-sweep", REPORT_TAKES)
        return _LOADERS["sweep"](path / "sweep.json")
    if not path.exists():
        raise DescriptionError(f"{path}: no such file", "no-file", REPORT_TAKES)
    kind = found_at(path).kind
    if kind in WORDS and kind not in _LOADERS:
        hint = taken_by(path, kind) or REPORT_TAKES
        raise DescriptionError(f"{path} is {WORDS[kind]}, which a report does not show", "unknown-kind", hint)
    load = _LOADERS.get(kind) or _LOADERS.get(_BY_SUFFIX.get(path.suffix.lower(), ""))
    if load is None:
        raise DescriptionError(f"{path}: its name does not say what it holds", "unknown-kind", REPORT_TAKES)
    try:
        item = load(path)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        if isinstance(error, CrosswindError):
            raise
        message = f"{path}: cannot be read as {WORDS.get(kind, 'a result')}: {type(error).__name__}: {error}"
        raise DescriptionError(message, "shape", UNSHOWN) from error
    if isinstance(item, Runs) and not len(item):
        message = f"{path}: holds no run; its experiment failed, or was interrupted, before the first run ended"
        raise DescriptionError(message, "no-runs", "`crosswind run EXPERIMENT.toml -o FILE --resume` continues it")
    return item


def _add(found: Gathered, item: object, source: str) -> None:
    kind = next((kind for kind in KINDS if kind.takes(item)), None)
    if kind is None:
        raise DescriptionError(f"a {type(item).__name__} cannot be reported on", "unknown-kind", REPORT_TAKES)
    made = kind.made(item)
    found.contents[kind].append(made)
    found.sources[id(made)] = source
    for part in kind.holds(item):
        _add(found, part, source)
