"""`crosswind reproduce all`: every paper, one study and one report each, and a table of the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.interruption import tells_what_is_kept
from crosswind.cli.outputs import writable, written
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import Advance, progress_bar

if TYPE_CHECKING:
    from crosswind.lab.papers.driver import Form
    from crosswind.lab.papers.studies import AnyStudy

DIRECTORY = Path("papers")
WEIGHTS = {"scheduling-and-communication": 12.0, "communication-interactions": 4.0}
"""Time that a paper takes, as parts of what one of the others takes; for the progress alone."""
VERDICTS = {
    "hold": "holds",
    "open": "not decidable from the text",
    "wrong": "paper wrong",
    "fail": "does not hold",
}
"""Column of the table -> the verdict that it counts."""


@dataclass(frozen=True)
class Reproduced:
    """A paper's study, and the files that it went into."""

    paper: str
    study: AnyStudy
    file: Path
    page: Path

    def count(self, verdict: str) -> int:
        """Return how many claims have a verdict."""
        return sum(claim.verdict == verdict for claim in self.study.claims)

    def summary(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        counts = {verdict: self.count(verdict) for verdict in VERDICTS.values()}
        files = {"study": str(self.file), "report": str(self.page)}
        return {"paper": self.paper, "claims": len(self.study.claims), "verdicts": counts, **files}


def reproduce_all(
    papers: Sequence[str],
    form: Form,
    out: Path | None,
    figures: Path | None,
    *,
    workers: int | None,
    force: bool,
    json: bool,
) -> None:
    """Run all papers again, the shortest first, and print a line for each."""
    directory = out or DIRECTORY
    writable_directory(out, "--out")
    writable_directory(figures, "--figures")
    for paper in papers:
        for name, kind in (("study.json", "study"), ("report.html", "report")):
            if (directory / paper).is_dir():
                of = {"paper": paper, "form": form} if kind == "study" else None
                writable(directory / paper / name, kind, "--out", force=force, of=of)
    found: list[Reproduced] = []
    whole = sum(WEIGHTS.get(paper, 1.0) for paper in papers)
    done = 0.0
    with progress_bar() as advance:
        for paper in sorted(papers, key=lambda one: WEIGHTS.get(one, 1.0)):
            weight = WEIGHTS.get(paper, 1.0)
            report_progress = _within(advance, paper, done / whole, weight / whole)
            found.append(_one(paper, directory / paper, form, figures, workers, force, report_progress))
            done += weight
    found.sort(key=lambda one: papers.index(one.paper))
    show(
        None if json else _answer(found, directory, form),
        wrote=[file for one in found for file in written(one.page)],
        document={"form": form, "papers": [one.summary() for one in found]} if json else None,
    )


def _one(
    paper: str,
    place: Path,
    form: Form,
    figures: Path | None,
    workers: int | None,
    force: bool,
    report_progress: Advance | None,
) -> Reproduced:
    from crosswind.lab.papers.studies import reproduce
    from crosswind.report import report

    page = place / "report.html"
    with tells_what_is_kept(place, "the same command continues with them"):
        study = reproduce(paper, place, form, workers=workers, force=force, progress=report_progress)
        report(study, page, figures / paper if figures else None, force=force)
    return Reproduced(paper, study, place / "study.json", page)


def _within(advance: Advance | None, paper: str, begin: float, part: float) -> Advance | None:
    """Return the progress of one paper within that of all."""
    if advance is None:
        return None
    return lambda fraction, message: advance(begin + part * fraction, f"{paper}: {message}")


def _answer(found: Sequence[Reproduced], directory: Path, form: str) -> Answer:
    claims = sum(len(one.study.claims) for one in found)
    held = sum(one.count("holds") for one in found)
    names = ("claims", *VERDICTS)
    rows = []
    for one in found:
        counts = (len(one.study.claims), *(one.count(verdict) for verdict in VERDICTS.values()))
        rows.append([one.paper, *(str(count) for count in counts), str(one.page)])
    columns = [("paper", "left"), *((name, "right") for name in names), ("report", "left")]
    return Answer(
        [f"{held} of {number_of(claims, 'claim')} of {number_of(len(found), 'paper')} hold here, {form} form."],
        [Section(columns, rows, first=("paper", *names))],
        [
            "open: not decidable from the text; wrong: the paper is; fail: does not hold here.",
            f"Each paper's claims, numbers and what would settle them: {directory}/PAPER/report.html",
        ],
    )
