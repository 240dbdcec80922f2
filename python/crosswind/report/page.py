"""One HTML file about what was measured and planned: self-contained, offline, safe with whatever names files hold."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import altair as alt
import jinja2
import vl_convert

from crosswind._core import __version__
from crosswind.output import writable, writable_directory
from crosswind.printable import printable
from crosswind.report.blamed import blamed_section
from crosswind.report.disturbed import by_experiment, disturbed_section
from crosswind.report.export import write_figures
from crosswind.report.figure import Figure, script_json
from crosswind.report.figures.look import configuration
from crosswind.report.injected import by_command, injected_section
from crosswind.report.inputs import Contents, Item, gather
from crosswind.report.measured import MeasuredSection, measured_section
from crosswind.report.overlapped import overlapped_section
from crosswind.report.planned import plan_section, platform_section
from crosswind.report.ran import runs_section, trace_section
from crosswind.report.streamed import by_experiment as streams_by_experiment
from crosswind.report.streamed import streamed_section
from crosswind.report.studied import studied_section
from crosswind.report.swept import sweep_section
from crosswind.report.terms import Term, terms
from crosswind.run.results import Run, Runs
from crosswind.stored import write_text

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])

RAN = frozenset({"makespan", "order", "root-only", "bound", "throughput", "agreement", "compute", "busy"})
"""The terms that sections about runs and traces link to."""

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""Nothing is fetched, and no script runs but the two named by their digests: a name in a file cannot become one."""


class Section(Protocol):
    """What the page needs to know of every section; the rest is between a section and its template."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def warnings(self) -> list[dict[str, str]]: ...  # noqa: D102
    @property
    def figures(self) -> list[Figure]: ...  # noqa: D102


def report(
    items: Item | Sequence[Item],
    out: str | Path = "report.html",
    figures: str | Path | None = None,
    *,
    force: bool = False,
) -> Path:
    """Write one HTML file that needs no network.

    Parameters
    ----------
    items : Measurement, Fit, Plan, Platform, Sweep, Runs, Trace, Blame, Study, Overlap, or their files; one or several
        `*.parquet` is a measurement and is fitted, or a trace; `*.json` a plan, runs, blame, overlap, study, `*.toml` a
        platform, a directory with `sweep.json` a sweep. Runs of one experiment, predicted and real, stand beside each
        other.
    out : path
        The file to write; it is replaced only once the new one is complete.
    figures : path, optional
        A directory, made where it is missing: each figure also goes there as PNG and SVG, named by its place on the
        page.
    force : bool
        Replace a file that is no report; else it is refused.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    DescriptionError
        When there is nothing to report, an item is of no known kind, or `out` is no place for a report.

    Notes
    -----
    The same items give the same bytes. Figures as Altair charts: `crosswind.report.figures`.

    Examples
    --------
    >>> import tempfile
    >>> from crosswind.platform import Platform
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> alone = Platform.from_dict({"schema_version": 1, "name": "alone", "node": [root]})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     report(alone, Path(directory) / "report.html").name
    'report.html'
    """
    out = Path(out)
    writable(out, "report", inputs=_files(items), force=force)
    writable_directory(figures)
    page, drawn = _page(gather(items))
    write_text(page, out)
    if figures is not None:
        write_figures(drawn, Path(figures), VEGA_LITE)
    return out


def _files(items: Item | Sequence[Item]) -> list[str | Path]:
    several = items if isinstance(items, Sequence) and not isinstance(items, (str, Runs)) else [items]
    return [item for item in several if isinstance(item, (str, Path))]


def _page(contents: Contents) -> tuple[str, list[Figure]]:
    measured = [measured_section(item, k) for k, item in enumerate(contents.measured, 1)]
    sweeps = [sweep_section(item, k) for k, item in enumerate(contents.sweeps, 1)]
    plans = [plan_section(item, k) for k, item in enumerate(contents.plans, 1)]
    platforms = [platform_section(item, k) for k, item in enumerate(contents.platforms, 1)]
    runs = [runs_section(several, k) for k, several in enumerate(_by_experiment(contents), 1)]
    traces = [trace_section(item, k) for k, item in enumerate(contents.traces, 1)]
    programs = [disturbed_section(several, k) for k, several in enumerate(by_experiment(contents.programs), 1)]
    streams = [streamed_section(several, k) for k, several in enumerate(streams_by_experiment(contents.streams), 1)]
    blames = [blamed_section(item, k) for k, item in enumerate(contents.blames, 1)]
    injected = [
        injected_section(several, contents.programs, k) for k, several in enumerate(by_command(contents.injected), 1)
    ]
    overlaps = [overlapped_section(item, k) for k, item in enumerate(contents.overlaps, 1)]
    studies = [studied_section(item, k) for k, item in enumerate(contents.studies, 1)]
    sections: list[Section] = [
        *measured, *sweeps, *runs, *traces, *studies, *programs, *streams, *injected, *blames, *overlaps, *plans,
        *platforms,
    ]  # fmt: skip
    figures = [figure for section in sections for figure in section.figures]
    bundle, program = _bundle(), _asset("page.js")
    scripts = " ".join(_hash(script) for script in (bundle, program))
    page = _environment().get_template("page.html.j2").render(
        title="What communication costs the computation" if measured or sweeps else sections[0].title,
        contents=[(section.id, section.title) for section in sections],
        concerns=_concerns(sections),
        measured=measured,
        sweeps=sweeps,
        plans=plans,
        platforms=platforms,
        runs=runs,
        traces=traces,
        programs=programs,
        streams=streams,
        blames=blames,
        injected=injected,
        overlaps=overlaps,
        studies=studies,
        terms=[
            *_terms(measured, sweeps, plans, [*runs, *traces], [*programs, *studies], blames, injected),
            *(terms("streamed") if streams else ()),
            *(terms("overlapped") if overlaps else ()),
        ],
        figures=figures,
        sources=_sources(contents),
        version=__version__,
        style=_asset("style.css"),
        bundle=bundle,
        program=program,
        configuration=script_json(configuration()),
        policy=POLICY.format(scripts=scripts),
    )  # fmt: skip
    return page, figures


@dataclass(frozen=True)
class Concern:
    """The warnings of one section."""

    id: str
    where: str
    warnings: list[dict[str, str]]


def _concerns(sections: Sequence[Section]) -> list[Concern]:
    """Return the warnings of each section that has some, each text once."""
    found = []
    for section in sections:
        once = {warning["message"]: warning for warning in section.warnings}
        if once:
            found.append(Concern(section.id, section.title, list(once.values())))
    return found


def _by_experiment(contents: Contents) -> list[list[Runs[Run]]]:
    """Return the runs by experiment, so that what was predicted stands beside what was run."""
    gathered: dict[str, list[Runs[Run]]] = {}
    for runs in contents.runs:
        if len(runs):
            gathered.setdefault(runs.experiment, []).append(runs)
    return list(gathered.values())


def _terms(
    measured: Sequence[MeasuredSection],
    sweeps: Sequence[Any],
    plans: Sequence[Any],
    ran: Sequence[Any],
    disturbed: Sequence[Any],
    blames: Sequence[Any],
    injected: Sequence[Any],
) -> list[Term]:
    """Return the terms that the page's sections link to."""
    chosen = list(terms("measured")) if measured or sweeps else [terms("measured")[0]]
    if any(section.together_tables for section in measured):
        chosen += terms("together")
    if sweeps:
        chosen += terms("swept")
    if plans:
        chosen += terms("planned")
    chosen += terms("disturbed") if disturbed else ()
    chosen += terms("blamed") if blames else ()
    chosen += [one for one in terms("injected") if injected and not (disturbed and one.id == "dedicated")]
    chosen += terms("studied") if any(hasattr(section, "claims") for section in disturbed) else ()
    if ran:
        known = {one.id for one in chosen}
        chosen += [one for one in (*terms("ran"), *terms("planned")) if one.id not in known and one.id in RAN]
    return chosen


def _sources(contents: Contents) -> str:
    kinds = (
        (contents.measured, "measurement"),
        (contents.sweeps, "sweep"),
        (contents.runs, "file of runs"),
        (contents.traces, "trace"),
        (contents.programs, "file of program runs"),
        (contents.streams, "file of runs of streams"),
        (contents.injected, "injection"),
        (contents.blames, "blame"),
        (contents.overlaps, "overlap"),
        (contents.studies, "study"),
        (contents.plans, "plan"),
        (contents.platforms, "platform"),
    )
    parts = [f"{len(items)} {word if len(items) == 1 else _plural(word)}" for items, word in kinds if items]
    return ", ".join(parts)


def _plural(word: str) -> str:
    return word.replace("file ", "files ") if word.startswith("file ") else {"study": "studies"}.get(word, word + "s")


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("crosswind.report", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: object) -> object:
    """Return what a template prints; of text, no character that changes how the page around it is shown."""
    return printable(value, lines=True) if type(value) is str else value  # Markup is the page's own


def _asset(name: str) -> str:
    return (files("crosswind.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that may stand inside a script element."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
