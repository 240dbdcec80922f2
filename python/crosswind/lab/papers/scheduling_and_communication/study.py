"""The whole study in one directory, resumable and graded: `study.json`, and a file of runs per figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from crosswind import ProgramRun, Runs
from crosswind.documents import Document
from crosswind.files.atomic import write_json
from crosswind.files.tabular import Plotted
from crosswind.lab.papers.driver import Work
from crosswind.lab.papers.grading import HINT, Claim
from crosswind.lab.papers.scheduling_and_communication import daemons, figures, variants
from crosswind.lab.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration, of
from crosswind.lab.papers.scheduling_and_communication.claims import claims
from crosswind.lab.papers.scheduling_and_communication.figures import Figure, FigureGrid, Row, Rows

__all__ = ["PAPER", "TITLE", "Study", "expected", "of", "study"]

SCHEMA_VERSION = 1
PAPER = "scheduling-and-communication"
"""Name of the paper on the command line and in files."""
TITLE = "Re-examining Scheduling and Communication in Parallel Programs"


@dataclass(frozen=True)
class Study(Plotted):
    """The result of reproducing the paper.

    Attributes
    ----------
    form : str
        quick or full.
    calibration : list of (str, str, str)
        What stands in the place of what the text leaves open: name, value, whence.
    best_windows : dict
        The window that is best when dedicated, by program.
    claims : list of Claim
        Graded.
    figures : dict
        Id -> title and rows: what each sets, makespans in s, slowdown as in the figure's caption.
    daemons : list of dict
        Table 1.
    """

    form: str
    calibration: list[tuple[str, str, str]]
    best_windows: dict[str, int]
    claims: list[Claim]
    figures: dict[str, Document]
    daemons: list[Document] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Read a `study.json`.

        Raises
        ------
        DescriptionError
            When it is none, one of another version, or with the first field that is wrong.
        """
        from crosswind.documents.reading import read_document
        from crosswind.lab.papers.document import StudyDocument

        document = read_document(path, "study", SCHEMA_VERSION, HINT, StudyDocument)
        return cls(
            form=document["form"],
            calibration=[(one[0], one[1], one[2]) for one in document["calibration"]],
            best_windows=document["best_windows"],
            claims=[Claim.from_dict(entry) for entry in document["claims"]],
            figures=document["figures"],
            daemons=document["table_1"],
        )

    def summary(self) -> Document:
        """Return the content of `study.json`: what `crosswind reproduce --json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "study",
            "paper": PAPER,
            "form": self.form,
            "calibration": [list(one) for one in self.calibration],
            "best_windows": self.best_windows,
            "claims": [claim.summary() for claim in self.claims],
            "table_1": self.daemons,
            "figures": self.figures,
        }

    def save(self, path: str | Path) -> None:
        """Write a `study.json`; an existing file is replaced only once the new one is complete."""
        write_json(self.summary(), path)

    def __repr__(self) -> str:
        return f"Study({PAPER}, {self.form}, {len(self.claims)} claims)"


def study(chosen: Calibration, work: Work) -> Study:
    """Run every figure of the paper, and grade its claims; what later figures fix depends on the first."""

    def perform(figure: Figure, given: Runs[ProgramRun] | None = None, seeds: int | None = None) -> Runs[ProgramRun]:
        asked = chosen if seeds is None else replace(chosen, repetitions=seeds)
        return work.perform(figure.id, FigureGrid(figure, asked), given)

    perform(figures.windows(chosen))
    best = {program: Rows(work.runs).best_window(program) for program in PROGRAMS}
    perform(figures.fine_sample(chosen))
    perform(figures.fine_sample_filling(chosen))
    perform(figures.fine_sample_disturbed(chosen, Rows(work.runs)))
    perform(figures.connect_syncs(chosen, best))
    perform(figures.coscheduled(chosen, best))
    tried = perform(figures.local_windows(chosen, best), seeds=1)
    perform(figures.local(chosen, best, Rows(work.runs)), given=tried)
    for make in (figures.skew, figures.daemons, figures.staggered, figures.shared_node):
        perform(make(chosen, best))
    perform(figures.drawn_anew(chosen, best))
    perform(figures.more_jobs(chosen, best))
    perform(figures.one_sum(chosen))
    perform(figures.filling(chosen))
    perform(figures.filling_disturbed(chosen, Rows(work.runs)), seeds=1)
    perform(variants.not_built(chosen, best), seeds=chosen.variant_repetitions)
    for make in (figures.skewed_barriers, figures.barriers):
        perform(make(chosen, best))
    if True in chosen.polls:
        perform(figures.longer(chosen, best, Rows(work.runs)))
    return _study(Rows(work.runs), chosen, work.runs)


def expected(chosen: Calibration) -> dict[str, int]:
    """Return how many runs each figure has, about: some depend on which windows the first finds best."""
    best = dict.fromkeys(PROGRAMS, chosen.windows[0])
    tried = figures.local_windows(chosen, best)
    # Of the windows tried, the best when dedicated and the best so: two.
    local = 2 * len(PROGRAMS) * len(chosen.readings) * len(chosen.local_quanta_s) * chosen.repetitions
    after = (
        figures.coscheduled,
        figures.skew,
        figures.daemons,
        figures.staggered,
        figures.shared_node,
        figures.more_jobs,
        figures.connect_syncs,
        figures.drawn_anew,
        figures.skewed_barriers,
        figures.barriers,
    )
    count = {figure.id: len(FigureGrid(figure, chosen)) for figure in (make(chosen, best) for make in after)}
    named = variants.not_built(chosen, best)
    return {
        figures.WINDOWS: len(FigureGrid(figures.windows(chosen), chosen)),
        tried.id: len(tried.settings),
        "figure-2": local,
        **count,
        figures.ONE_SUM: len(chosen.filling_windows),
        figures.FINE: len(chosen.filling_windows),
        figures.FINE_FILLING: len(chosen.filling_windows) * len(chosen.fillings),
        figures.FINE_DISTURBED: 3 * (len(chosen.polls) + 3) * chosen.repetitions,
        figures.FILLING: len(FigureGrid(figures.filling(chosen), chosen)),
        figures.DISTURBED: 4 * len(chosen.filling_disturbed) * len(chosen.fillings),
        named.id: len(named.settings) * chosen.variant_repetitions,
        # Two windows of three programs and of SAMPLE's fine grain, one of the others.
        **(
            {figures.LONGER: (8 * len(chosen.longer_daemons_s) + 2 + len(chosen.gets_per_sync)) * chosen.repetitions}
            if True in chosen.polls
            else {}
        ),
    }


def _study(rows: Rows, chosen: Calibration, runs: Mapping[str, Runs[ProgramRun]]) -> Study:
    return Study(
        form=chosen.form,
        calibration=chosen.table(),
        best_windows={program: rows.best_window(program) for program in PROGRAMS},
        claims=claims(rows, chosen),
        figures={
            name: {
                "title": own.experiment.split(": ", 1)[1],
                "rows": [_entry(name, row, rows) for row in rows.of(name)],
            }
            for name, own in runs.items()
        },
        daemons=[asdict(one) for one in daemons.load()],
    )


def _entry(figure: str, row: Row, rows: Rows) -> Document:
    reference_s = rows.reference_s(figure, row)
    return {
        **row.params,
        "makespan_s": row.makespan_s,
        "slowdown": row.makespan_s / reference_s,
        "slowdown_low": row.low_s / reference_s,
        "slowdown_high": row.high_s / reference_s,
        "slowdown_ci95": [end / reference_s for end in row.interval_s],
        "stalled": row.stalled,
        "bounds": row.bounds,
    }
