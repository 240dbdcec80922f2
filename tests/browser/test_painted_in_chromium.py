"""Every mark of every figure is painted: on the screen, on paper, in the PDF, and in the files of figures."""

import re
import zlib

import accelerators
import checks
import costly
import disturbed
import interacting
import of_runtimes
import pytest
import recorded_ranks
import reported
import streamed

from crosswind.blame.command import CommandBlame
from crosswind.blame.interleaving import Turns
from crosswind.blame.recorded import blame_recorded
from crosswind.overlap import overlap
from crosswind.report import draw, report
from crosswind.report.page.inputs import gather
from crosswind.report.sections.order import KINDS

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from browser.chromium import BROWSER, DRIVER, chromium, show  # noqa: E402
from browser.painted import painted, unseen  # noqa: E402

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not both installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def command_blame():
    import numpy as np

    columns = [[1.0, 1.01, 0.99], [1.3, 1.32, 1.28], [1.05, 1.04, 1.06], [1.25, 1.27, 1.24]]
    names = ["undisturbed", "disturbed", "without agent", "without cron"]
    return CommandBlame("two", ["agent", "cron"], [], Turns(["./app"], names, np.array(columns).T, False, []))


def farms(directory):
    return [
        *of_runtimes.pair(),
        reported.swept(directory / "message-size"),
        reported.planned(),
        reported.platform(),
        reported.ran(),
        reported.ran("local", slower=1.02, works=(5,)),
        reported.traced(40),
        *[checks.checked(memory=100.0 - 2 * k, at=f"2026-01-0{k + 1}T00:00:00Z") for k in range(3)],
        checks.of_a_cluster(rates={"ca": 30.0}),
        accelerators.h100(),
    ]


def programs(directory):
    directory.mkdir(parents=True, exist_ok=True)
    recording = directory / "app.trace"
    recording.write_bytes(recorded_ranks.app_trace()[0])
    return [
        disturbed.program_runs(),
        disturbed.program_runs("local", slower=1.05, seeds=1),
        disturbed.blamed(),
        command_blame(),
        disturbed.injected("nothing", 0.0, 1.0),
        disturbed.injected("half"),
        disturbed.recorded(),
        overlap("sim", waits=["event", "poll"], cpus=2),
        streamed.streams_runs(),
        interacting.studied(),
        costly.session((0.02, 0.01), slower=0.005),
        costly.comparison(1.1),
        costly.several(0.1, 0.2, 0.3),
        blame_recorded([recording], timeline=True),
    ]


PAGES = {"farms": farms, "programs": programs}


@pytest.fixture(scope="module", params=PAGES)
def items(request, tmp_path_factory):
    return PAGES[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def page(items, tmp_path_factory):
    return report(items, tmp_path_factory.mktemp("page") / "report.html")


def figures_of(items):
    contents = gather(items).contents
    return [
        one for kind, of in contents.items() if of for section in kind.sections(of, contents) for one in section.figures
    ]


def test_every_kind_of_section_is_looked_at(tmp_path):
    shown = [gather(make(tmp_path / name)).contents for name, make in PAGES.items()]
    assert {kind.noun for kind in KINDS} == {kind.noun for contents in shown for kind, of in contents.items() if of}


def test_every_mark_of_every_figure_is_painted(browser, items, page):
    show(browser, page, 1280)
    found = painted(browser)
    assert {one["figure"] for one in found} == {f"spec-{figure.id}" for figure in figures_of(items)}
    assert unseen(found) == []


def test_every_mark_of_every_bar_chart_in_a_file_is_painted(browser, tmp_path):
    """PNG and PDF are drawn from the same SVG."""
    items = [reported.planned(), command_blame(), disturbed.recorded()]
    report(items, tmp_path / "report.html", tmp_path / "figures")
    boxes = [
        f'<div class="chart" id="{path.stem}">{path.read_text()}</div>'
        for path in sorted((tmp_path / "figures").glob("*.svg"))
    ]
    (tmp_path / "files.html").write_text(f"<!doctype html><body>{''.join(boxes)}</body>")
    show(browser, tmp_path / "files.html", 1280, drawn=False)
    found = painted(browser)
    assert {one["figure"] for one in found} == {figure.id for figure in figures_of(items)}
    assert unseen(found) == []


def test_every_mark_of_a_figure_for_a_paper_is_painted(browser, tmp_path):
    for x in ("workload.task_work", "policy.order"):
        where = {"workload.task_work": ["policy.order=planned"], "policy.order": ["workload.task_work=5"]}[x]
        draw(reported.ran(), tmp_path / "figure.svg", x=x, where=where)
        box = f'<div class="chart" id="figure">{(tmp_path / "figure.svg").read_text()}</div>'
        (tmp_path / "figure.html").write_text(f"<!doctype html><body>{box}</body>")
        show(browser, tmp_path / "figure.html", 1280, drawn=False)
        found = painted(browser)
        assert found
        assert unseen(found) == []


def colours_in(pdf):
    """Return the colours that a PDF fills or strokes with, as #rrggbb."""
    found = set()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf.read_bytes(), re.DOTALL):
        try:
            text = zlib.decompress(stream)
        except zlib.error:
            continue
        for triple in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) (?:rg|RG)\b", text):
            found.add("#" + "".join(f"{round(255 * float(one)):02x}" for one in triple))
    return found


def test_every_mark_of_every_bar_chart_is_painted_on_paper(browser, tmp_path):
    items = [reported.planned(), command_blame(), disturbed.recorded()]
    show(browser, report(items, tmp_path / "report.html"), 1280, media="print")
    found = painted(browser)
    assert {one["figure"] for one in found} == {f"spec-{figure.id}" for figure in figures_of(items)}
    assert unseen(found) == []


@pytest.mark.parametrize(
    ("item", "figure"),
    [(reported.planned(), "nodes"), (command_blame(), "causes"), (disturbed.recorded(), "causes")],
    ids=["nodes", "costs", "causes"],
)
def test_bars_are_in_the_pdf(browser, tmp_path, item, figure):
    """A renderer leaves out what it clips to nothing, so that its colour is missing."""
    page = report([item], tmp_path / "report.html")
    show(browser, page, 1280, media="print")
    fills = browser.execute_script(
        """return [...document.querySelectorAll(`figure[id$="-${arguments[0]}"] .mark-rect.role-mark path`)]
            .map((bar) => getComputedStyle(bar).fill)""",
        figure,
    )
    wanted = {"#" + "".join(f"{int(one):02x}" for one in re.findall(r"\d+", fill)[:3]) for fill in fills}
    assert wanted
    assert wanted <= colours_in(report([item], tmp_path / "report.pdf"))
