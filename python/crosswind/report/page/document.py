"""Write the report: one HTML file, or a PDF of it, about any measurements, plans and runs.

`report` reads the files (`inputs`), has the sections of their kinds rendered (`sections`, in the order of `order`),
and writes a page that needs no network. Its content security policy lets only the page's own two scripts run, so that
a name in a file cannot become code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup, escape

from crosswind._core import __version__
from crosswind.errors import CrosswindError, DescriptionError, Notice
from crosswind.files.atomic import is_standard_output, write_text
from crosswind.files.output import writable, writable_directory
from crosswind.files.pages import script_hash, script_json
from crosswind.report.figures.export import VEGA_LITE, write_figures
from crosswind.report.figures.look import configuration
from crosswind.report.page.inputs import UNSHOWN, Gathered, Item, Unread, gather, listed
from crosswind.report.page.pdf import browser, write_pdf
from crosswind.report.page.terms import Terms, heading_of
from crosswind.report.sections.measurement import TERMS as MEASURED
from crosswind.report.sections.section import Contents, Kind, Section
from crosswind.terminal.consequences import most_consequential
from crosswind.terminal.printable import printable

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""Nothing is fetched, and no script runs but the two named by their digests: a name in a file cannot become one."""


_CODE = re.compile("`([^`]+)`")


def report(
    items: Item | Sequence[Item],
    out: str | Path = "report.html",
    figures: str | Path | None = None,
    *,
    title: str | None = None,
    pdf: bool = False,
    force: bool = False,
) -> Path:
    """Write one HTML file that needs no network, or the same as PDF.

    Parameters
    ----------
    items : Measurement, Fit, Plan, Platform, Sweep, Runs, Trace, Blame, Study, Overlap, or their files; one or several
        `*.parquet` is a measurement and is fitted, or a trace; `*.json` a plan, runs, blame, overlap, study, `*.toml` a
        platform, a directory with `sweep.json` a sweep. Runs of one experiment, predicted and real, stand beside each
        other.
    out : path
        The file to write; it is replaced only once the new one is complete. Its suffix decides: `.html` or `.htm`,
        or `.pdf`, which Chromium prints.
    figures : path, optional
        A directory, made where it is missing: each figure also goes there as PNG and SVG, named by its place on the
        page.
    title : str, optional
        Of the page; default: what its first section is about.
    pdf : bool
        Write a PDF beside the HTML file, too.
    force : bool
        Replace a file that is no report; else it is refused.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    DescriptionError
        When there is nothing to report, an item is of no known kind, `out` is no place for a report, its suffix is
        another, or a PDF is asked for and no browser is installed.

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
    return written(items, out, figures, title=title, pdf=pdf, force=force).out


@dataclass(frozen=True)
class Written:
    """A report as written.

    Attributes
    ----------
    out : Path
        The file that was asked for.
    files : list of Path
        It, a PDF beside it, and the figures' files.
    title : str
        Of the page.
    sections : list of Section
        In the order of the page.
    unread : list of Unread
        Files that the page only names: they could not be read, or not be shown.
    """

    out: Path
    files: list[Path]
    title: str
    sections: list[Section]
    unread: list[Unread]

    @property
    def short(self) -> list[tuple[str, str, str]]:
        """The answers of the sections: id, name, and what was found, in a sentence each."""
        return list(_short(self.sections))

    def to_dict(self) -> dict[str, object]:
        """Return the JSON document of `crosswind report --json`."""
        sections = [
            {
                "id": section.id,
                "title": section.title,
                "figures": [{"id": one.id, "title": one.title, "text": one.alt} for one in section.figures],
                "warnings": section.warnings,
            }
            for section in self.sections
        ]
        return {
            "schema_version": 1,
            "out": str(self.out),
            "title": self.title,
            "files": [str(path) for path in self.files],
            "sections": sections,
            "unread": [{"file": one.name, "message": one.message, "hint": one.hint} for one in self.unread],
        }


def written(
    items: Item | Sequence[Item],
    out: str | Path,
    figures: str | Path | None = None,
    *,
    title: str | None = None,
    pdf: bool = False,
    force: bool = False,
    partial: bool = False,
) -> Written:
    """Write a report as `report` does, and return what it holds.

    With `partial`, a file that cannot be shown is named on the page and in `Written.unread`, and costs no other file.
    """
    out = Path(out)
    if not is_standard_output(out):
        writable(out, kind_of(out), inputs=_files(items), force=force)
    outputs = outputs_of(out, pdf)
    for path in outputs:
        writable(path, _KIND_OF[suffix_of(path)], inputs=_files(items), force=force)
    writable_directory(figures)
    gathered = gather(items, partial=partial)
    page, sections, title = _page(gathered, title, partial)
    files = []
    for path in outputs:
        if suffix_of(path) == ".pdf":
            write_pdf(page, path)
        else:
            write_text(page, path)
        files.append(path)
    if figures is not None:
        files += write_figures([one for section in sections for one in section.figures], Path(figures))
    return Written(out, files, title, sections, gathered.unread)


_KIND_OF = {".html": "report", ".htm": "report", ".pdf": "figure"}


def kind_of(out: Path) -> str:
    """Return the kind of file that a report of this name is, for what may be replaced."""
    return _KIND_OF.get(suffix_of(out), "report")


def suffix_of(path: Path) -> str:
    """Return the suffix that decides the form; standard output takes HTML, and so does a name without one."""
    return ".html" if is_standard_output(path) else path.suffix.lower() or ".html"


def outputs_of(out: Path, pdf: bool = False) -> list[Path]:
    """Return the files to write, before any work.

    Raises
    ------
    DescriptionError
        For a suffix that no report has, for a PDF beside standard output, and without a browser to print one.
    """
    suffix = suffix_of(out)
    if suffix not in _KIND_OF:
        message = f"out is {str(out)!r}: a report is .html or .pdf"
        hint = f"-o {out.stem or 'report'}.html; a figure as .svg or .png: --x PATH, or all of them: --figures DIR"
        raise DescriptionError(message, "suffix", hint)
    if pdf and is_standard_output(out):
        raise DescriptionError("--pdf writes beside the HTML file: out is standard output", "out", "name a file")
    outputs = [out, out.with_suffix(".pdf")] if pdf and suffix != ".pdf" else [out]
    if any(path.suffix.lower() == ".pdf" for path in outputs):
        browser()
    return outputs


def _files(items: Item | Sequence[Item]) -> list[str | Path]:
    return [item for item in listed(items) if isinstance(item, (str, Path))]


def _page(gathered: Gathered, title: str | None, partial: bool) -> tuple[str, list[Section], str]:
    contents = gathered.contents
    made = [(kind, section) for kind in contents for section in _sections(kind, gathered, partial)]
    several = [section for _, section in made]
    figures = [figure for section in several for figure in section.figures]
    bundle, program = _bundle(), _asset("page.js")
    scripts = " ".join(script_hash(script) for script in (bundle, program))
    title = title or several[0].title
    limits = _limits(several)
    terms = Terms()
    rendered = [
        _rendered(kind, section, limits[section.id], terms, title if at == 0 else "")
        for at, (kind, section) in enumerate(made)
    ]
    page = _environment().get_template("page.html.j2").render(
        title=title,
        first=several[0].id,
        also=_short(several)[1:],
        unread=gathered.unread,
        sections=rendered,
        figures=figures,
        sources=_sources(contents),
        version=__version__,
        style=_asset("style.css"),
        bundle=bundle,
        program=program,
        configuration=script_json(configuration()),
        policy=POLICY.format(scripts=scripts),
    )  # fmt: skip
    return page, several, title


def _sections(kind: Kind, gathered: Gathered, partial: bool) -> list[Section]:
    """Return the sections of a kind; with `partial`, without those items whose section cannot be made or rendered."""
    items, contents = gathered.contents[kind], gathered.contents
    while True:
        try:
            return _tried(kind, kind.sections(items, contents))
        except Exception as error:
            failing = _failing(kind, items, contents) or [(items[-1], error)]
            unshown = [(item, _unshown(kind, gathered.sources.get(id(item)), why)) for item, why in failing]
            if not partial or len(failing) == sum(map(len, contents.values())):
                raise unshown[0][1] from failing[0][1]
        for item, refused in unshown:
            items[:] = [one for one in items if one is not item]
            name = gathered.sources.get(id(item)) or type(item).__name__
            gathered.unread.append(Unread(name, str(refused), getattr(refused, "hint", None)))


def _unshown(kind: Kind, source: str | None, error: Exception) -> Exception:
    """Return the error of a file whose section cannot be made; that of an object stays as it is."""
    if not source or isinstance(error, CrosswindError):
        return error
    message = f"{source}: this {kind.noun} cannot be shown: {type(error).__name__}: {error}"
    return DescriptionError(message, "shape", UNSHOWN)


def _tried(kind: Kind, sections: list[Section]) -> list[Section]:
    """Return sections after all that the page takes was taken once: an error in it costs their own files only."""
    limits = _limits(sections)
    for section in sections:
        _ = [figure.json for figure in section.figures]
        _ = _short([section])
        _ = _rendered(kind, section, limits[section.id], Terms())
    return sections


def _rendered(kind: Kind, section: Section, limits: Sequence[Notice], terms: Terms, titled: str = "") -> Markup:
    """Return the HTML of a section. `titled`: the page's title, where the section stands below it."""
    terms.know([MEASURED[0], *section.terms])
    environment = _environment()
    template = environment.get_template(kind.template)
    text = template.render(section=section, limited=limits, terms=terms, titled=titled)
    # What stands behind the last figure, table and card of the section is explained at its end.
    parts = environment.get_template("parts.html.j2").make_module({"terms": terms})
    body, end, rest = text.rpartition("</section>")
    return Markup(f"{body}{parts.explained()}{end}{rest}")  # type: ignore[attr-defined]


def _failing(kind: Kind, items: Sequence[Any], contents: Contents) -> list[tuple[Any, Exception]]:
    """Return the items whose section cannot be made alone, or the first that cannot be beside those before it."""
    alone = [(item, why) for item in items if (why := _failure(kind, [item], {kind: [item]})) is not None]
    if alone:
        return alone
    for place, item in enumerate(items, 1):
        if (why := _failure(kind, items[:place], contents)) is not None:
            return [(item, why)]
    return []


def _failure(kind: Kind, items: Sequence[Any], contents: Contents) -> Exception | None:
    """Return why the sections of items cannot be made."""
    try:
        _tried(kind, kind.sections(items, contents))
    except Exception as error:
        return error
    return None


def _short(sections: Sequence[Section]) -> list[tuple[str, str, str]]:
    """Return the sentence to read first of each section that has one, plans and their caution included."""
    found = []
    for section in sections:
        said = getattr(section, "headline", None) or _first(section)
        caution = getattr(section, "caution", "")
        if said:
            found.append((section.id, section.title, f"{said} {caution}".strip()))
    return found


def _limits(sections: Sequence[Section]) -> dict[str, list[Notice]]:
    """Return the warnings of each section by its id, each text once on the page: a plan repeats its platform's."""
    found, told = {}, set[str]()
    for section in sections:
        once = {w["message"]: w for w in section.warnings if w["message"] not in told}
        told |= set(once)
        found[section.id] = most_consequential(list(once.values()))
    return found


def _sources(contents: Contents) -> str:
    parts = [
        f"{len(items)} {kind.noun if len(items) == 1 else kind.nouns}" for kind, items in contents.items() if items
    ]
    return ", ".join(parts)


def _first(section: Section) -> str:
    """Return the first answer or finding of a section without a headline."""
    for one in getattr(section, "large", ()):
        half = f" ± {one.half}" if one.half else ""
        return f"{one.value}{half} {one.text}"
    return next(iter(getattr(section, "findings", ())), "")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("crosswind.report.page", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"heading_of": heading_of, "typeset": _typeset}
    environment.filters["coded"] = _coded
    return environment


def _typeset(cell: str) -> str:
    """Return a number with minus signs, and a dash where it is not known."""
    return cell.replace("-", "−") if cell.strip("-") else "–"


def _shown(value: object) -> object:
    """Return what a template prints; of text, no character that changes how the page around it is shown."""
    return printable(value, lines=True) if type(value) is str else value  # Markup is the page's own


def _coded(text: str) -> Markup:
    """Return text with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(printable(text, lines=True)))))


def _asset(name: str) -> str:
    return (files("crosswind.report.page") / "templates" / name).read_text(encoding="utf-8")


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that may stand inside a script element."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script")
