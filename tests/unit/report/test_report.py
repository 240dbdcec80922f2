"""The report's page: complete, self-contained, the same every time, and only about what was given."""

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import reported

from crosswind.errors import DescriptionError
from crosswind.measure.sweep import Sweep
from crosswind.measurement import Measurement
from crosswind.model.fit import fit
from crosswind.plan import Plan
from crosswind.report import report
from crosswind.report.findings import finding, trust
from crosswind.run.results import Run, Runs


class Page(HTMLParser):
    """Collects elements, and the text outside and inside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside = [tag]
            if tag == "script":
                self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        if tag in self._inside:
            self._inside = []

    def handle_data(self, data):
        if self._inside == ["script"]:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._inside == ["style"]:
            self.styles.append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    items = [
        reported.measured(),
        reported.swept(directory / "sweep"),
        reported.planned(),
        reported.platform(),
        reported.ran(),
        reported.ran("local", slower=1.02, works=(5,)),
        reported.traced(),
    ]
    out = report(items, directory / "report.html")
    return Page(out.read_text(encoding="utf-8"))


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attributes in page.elements:
        for name in ("src", "href", "data", "poster", "srcset", "action"):
            if name in attributes and attributes[name] is not None:
                assert attributes[name].startswith(("#", "data:,")), (tag, attributes)
    assert not any(tag in ("img", "iframe", "object", "embed", "base") for tag, _ in page.elements)
    assert not re.search(r"url\(|@import", "".join(page.styles))


def test_the_policy_forbids_all_scripts_but_the_two_of_the_page(page):
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    programs = [text for attributes, text in page.scripts if attributes.get("type") != "application/json"]
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    assert [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in programs] == allowed


def test_every_figure_has_its_specification_and_words_for_readers_who_cannot_see_it(page):
    charts = [a for tag, a in page.elements if a.get("class") == "chart"]
    specifications = {a["id"] for a, _ in page.scripts if "id" in a}
    # Losses, per channel 2, both directions, 3 time lines, 2 each of sweep, plan and runs, trace, platform.
    assert len(charts) == 1 + 2 * 2 + 1 + 3 + 2 + 2 + 2 + 1 + 1
    assert {chart["data-spec"] for chart in charts} <= specifications
    assert all(len(chart["aria-label"]) > 20 and chart["role"] == "img" for chart in charts)


def test_every_link_leads_somewhere_and_every_id_is_one(page):
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = [href[1:] for href in page.values("href") if href.startswith("#")]
    assert set(links) <= set(ids)
    assert {link for link in links if link.startswith("term-")} >= {
        "term-ir",
        "term-hull",
        "term-matched-rate",
        "term-gain",
        "term-makespan",
        "term-agreement",
    }


def test_headings_never_skip_a_level(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_numbers_of_the_fit_and_the_plan_stand_in_the_text(page):
    fitted = fit(reported.measured())
    for channel in fitted.channels:
        assert finding(channel, several_peers=False).headline in page.text
        assert f"{channel.intercept:.3f}" in page.text
        assert f"{channel.max_error:.4f}" in page.text
    plan = reported.planned()
    assert f"{plan.throughput_tasks_per_s:.2f} tasks/s" in page.text
    assert "No schedule along this tree is faster" in page.text
    for word in ("Lab3", "never sent to", "seed", "cubic", "peer0.example:7117", "started 2026-01-02"):
        assert word in page.text


def test_the_same_items_give_the_same_bytes(tmp_path):
    items = [reported.measured(), reported.planned()]
    first, second = (report(items, tmp_path / f"{k}.html").read_bytes() for k in range(2))
    assert first == second


def test_sections_exist_only_where_there_is_content(tmp_path):
    only_plan = Page(report(reported.planned(), tmp_path / "plan.html").read_text())
    ids = set(only_plan.values("id"))
    assert "plan-1" in ids
    assert not [one for one in ids if one.startswith(("measured", "sweep", "platform", "warnings"))]
    assert "term-theil-sen" not in ids
    receive_only = Page(report(reported.measured(ir_send=None), tmp_path / "receive.html").read_text())
    assert "Several at once" not in receive_only.text
    assert "Sending" not in receive_only.text


def test_hostile_names_stay_text(tmp_path):
    items = [reported.measured(hostile=True), reported.planned(reported.HOSTILE), reported.platform(reported.HOSTILE)]
    items += [reported.ran(hostile=True), reported.traced(40, hostile=True)]
    found = Page(report(items, tmp_path / "report.html").read_text())
    assert not any(tag in ("img", "svg") for tag, _ in found.elements)
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    for name in (*reported.HOSTILE[:3], reported.LONG):
        assert " ".join(name.split()) in found.text
    assert "49" not in [word.strip() for word in found.words]


def test_a_file_of_each_kind_is_read(tmp_path):
    reported.measured().save(tmp_path / "one.parquet")
    reported.planned().save(tmp_path / "plan.json")
    reported.platform().save(tmp_path / "platform.toml")
    reported.swept(tmp_path / "sweep")
    reported.ran().save(tmp_path / "runs.json")
    reported.traced().save(tmp_path / "trace.parquet")
    names = ("one.parquet", "plan.json", "platform.toml", "sweep", "runs.json", "trace.parquet")
    found = Page(report([tmp_path / name for name in names], tmp_path / "report.html").read_text())
    assert {"measured-1", "plan-1", "platform-1", "sweep-1", "runs-1", "trace-1"} <= set(found.values("id"))


def test_runs_stand_beside_the_bound_and_beside_their_prediction(tmp_path):
    both = [reported.ran(), reported.ran("local", slower=1.02, works=(5,))]
    found = Page(report(both, tmp_path / "report.html").read_text())
    assert "interference Simulated: was fastest at 4 of 4 points; interference reaches" in found.text
    assert "Real runs took +2.0 % longer than predicted (7 pairs)." in found.text
    assert "upper bound" in found.text
    assert [one for one in found.values("id") if one.startswith("runs-")].count("runs-1") == 1
    for order in reported.ORDERS:
        assert order in found.text


def one(on, *, params=None, **entry):
    """A file of one run; `params` are what was swept."""
    compute = {"compute": "simulated" if on == "sim" else "emulated"}
    return Runs("one", on, [Run(reported.one_run(params=params or {}, **(compute | entry)))])


def sections(tmp_path, *items):
    """The text of a report below its headline without the meanings of terms, and the words of its figures."""
    text = re.sub(
        '(?s)<details class="explained">.*?</details>', "", report(items, tmp_path / "report.html").read_text()
    )
    body = text[text.index("<main") : text.index("<footer")]
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", body)), re.findall('class="chart"[^>]+aria-label="([^"]+)"', body)


@pytest.mark.parametrize("swept", [{}, {"policy.order": "planned"}])
def test_a_run_that_was_set_stands_beside_its_prediction_that_was_swept(tmp_path, swept):
    others = [reported.one_run(order=order, params={"policy.order": order}) for order in ("arrival", "root-only")]
    predicted = Runs("one", "sim", [*one("sim", params=swept).runs, *map(Run, others)])
    text, figures = sections(tmp_path, predicted, one("local", slower=1.1))
    assert "Real runs took +10.0 % longer than predicted (1 pair)" in text
    assert any("the predicted and the real makespan" in words for words in figures)


def test_a_run_that_nothing_predicted_has_a_headline_a_figure_and_a_table_of_its_own(tmp_path):
    for other in ({"order": "arrival"}, {"ports": "multi"}, {"tasks": 500}, {"bound_tasks_per_s": 1.0}):
        text, figures = sections(tmp_path, one("sim"), one("local", slower=1.1, **other))
        assert "longer than predicted" not in text, other
        assert "(On this machine)." in text, other
        assert text.count("Makespan of each order, local") == 2, other  # above the figure, and above the table
        assert len(figures) == 2, other


def test_every_place_where_a_point_ran_stands_beside_its_prediction(tmp_path):
    text, _ = sections(tmp_path, one("sim"), one("local", slower=1.1), one("dask", slower=1.2))
    assert "+10.0 to +20.0 % is how much longer real runs took than predicted (2 pairs)" in text


def test_one_run_is_told_in_a_sentence_with_its_nodes_and_what_happened(tmp_path):
    event = {"t_s": 12.5, "code": "agent-lost", "node": "Lab3", "tasks": 4, "message": "Lab3 went away"}
    runs = Runs("alone", "local", [Run(reported.one_run(events=[event], compute="command", params={}))])
    found = Page(report(runs, tmp_path / "report.html").read_text())
    said = (
        "6.25 tasks/s 1,000 tasks in 160 s: 95 % of the upper bound (single port). Order planned, single port, command."
    )
    assert said in found.text
    assert "agent-lost 12.5 Lab3 4 Lab3 went away" in found.text
    assert "What each node did" in found.text


def test_runs_of_unknown_work_are_compared_in_seconds(tmp_path):
    unknown = {"bound_tasks_per_s": None, "root_only_tasks_per_s": None, "compute": "command"}
    runs = [Run({**run.data, **unknown}) for run in reported.ran()]
    found = Page(report(Runs("mine", "local", runs), tmp_path / "report.html").read_text())
    assert "of root alone" not in found.text
    assert "of the bound" not in found.text


def test_a_hundred_comparisons_are_not_all_drawn(tmp_path):
    runs = [
        Run({**run.data, "params": {"platform": f"{k}.toml", **run.params}})
        for k in range(100)
        for run in reported.ran()
    ]
    out = report(Runs("many", "sim", runs), tmp_path / "report.html")
    found = Page(out.read_text())
    assert "8 of 100 comparisons are drawn" in found.text
    assert out.stat().st_size < 3_000_000


@pytest.mark.parametrize("name", ["notes.txt", "nothing.parquet", "directory"])
def test_what_cannot_be_reported_on_is_named_with_a_hint(tmp_path, name):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "directory").mkdir()
    with pytest.raises(DescriptionError, match=name) as caught:
        report(tmp_path / name, tmp_path / "report.html")
    assert "crosswind plan" in caught.value.hint
    assert not (tmp_path / "report.html").exists()


def test_nothing_and_strangers_are_refused(tmp_path):
    with pytest.raises(DescriptionError, match="nothing to report"):
        report([], tmp_path / "report.html")
    with pytest.raises(DescriptionError, match="dict"):
        report([{}], tmp_path / "report.html")
    with pytest.raises(DescriptionError, match="in a directory that does not exist"):
        report(reported.planned(), tmp_path / "missing" / "report.html")


@pytest.mark.parametrize("rows", [0, 3, 60, 150])
def test_a_measurement_cut_short_is_shown_as_far_as_it_goes(tmp_path, rows):
    whole = reported.measured(ended="interrupted")
    cut = Measurement(whole.samples.slice(0, rows), whole.header)
    found = Page(report(cut, tmp_path / "report.html").read_text())
    assert "Partial: it was interrupted" in found.text
    assert "no fit was possible" in found.text


def test_an_hour_of_samples_stays_below_five_megabytes(tmp_path):
    out = report(reported.hour_of(reported.measured()), tmp_path / "report.html")
    assert out.stat().st_size < 5_000_000
    assert "are drawn, all are fitted" in Page(out.read_text()).text


def test_a_plan_of_many_nodes_is_cut_and_says_so(tmp_path):
    data = {**reported.planned().to_dict(), "nodes": reported.tree_of(1500)}
    out = report(Plan(data), tmp_path / "report.html")
    text = Page(out.read_text()).text
    assert "50 of 1,500 nodes are shown" in text
    assert "The 20 nodes that receive most are drawn" in text
    assert out.stat().st_size < 2_000_000


def test_figures_are_written_as_png_and_svg_under_stable_names(tmp_path):
    report(
        [reported.measured(ir_send=None), reported.planned()], tmp_path / "report.html", figures=tmp_path / "figures"
    )
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    stems = [
        "losses",
        "receive-0-residuals",
        "receive-0-scatter",
        "compute-timeline",
        "cpu-timeline",
        "transfer-timeline",
    ]
    expected = [f"measured-1-{stem}" for stem in stems] + ["plan-1-nodes", "plan-1-tree"]
    assert names == sorted(f"{stem}.{kind}" for stem in expected for kind in ("png", "svg"))
    for path in (tmp_path / "figures").iterdir():
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG" if path.suffix == ".png" else b"<svg"), path
        assert len(content) > 3000, path
    assert "Lab3" in (tmp_path / "figures" / "plan-1-tree.svg").read_text()


def test_trust_says_what_is_missing():
    header = {"ended": "settled"}
    assert trust(header, settled=True, trustworthy=True, warnings=0)[0] == "good"
    assert trust(header, settled=True, trustworthy=True, warnings=1)[0] == "fair"
    level, words = trust(header, settled=False, trustworthy=False, warnings=2)
    assert level == "poor"
    assert words.startswith("Not settled")
    assert trust({"ended": "peer-lost"}, settled=True, trustworthy=True, warnings=0)[0] == "poor"


def test_an_interference_of_about_nothing_is_told_as_a_bound():
    fitted = fit(reported.measured(ir_receive=1e-7, ir_send=None, noise=0.05))
    (channel,) = fitted.channels
    assert channel.upper_bound is not None
    assert "less than" in finding(channel, several_peers=False).headline


def test_a_sweep_without_points_and_one_with_a_point_that_has_no_fit_are_shown(tmp_path):
    whole = reported.swept(tmp_path / "sweep")
    next((tmp_path / "sweep").glob("*64000.parquet")).unlink()
    half = Sweep.load(tmp_path / "sweep")
    assert len(half.points) == 1
    found = Page(report(half, tmp_path / "half.html").read_text())
    assert "1 of 2 points are missing" in found.text
    nothing = Page(report(replace(whole, points=[]), tmp_path / "nothing.html").read_text())
    assert "No point is complete yet" in nothing.text
    value, measurement = whole.points[0]
    short = Measurement(measurement.samples.slice(0, 60), measurement.header)
    unfitted = replace(whole, points=[(value, short), whole.points[1]])
    assert "– – – – – – no" in Page(report(unfitted, tmp_path / "short.html").read_text()).text


def test_a_sweep_says_where_interference_is_least_only_when_intervals_are_apart(tmp_path):
    apart = Page(report(reported.swept(tmp_path / "apart"), tmp_path / "apart.html").read_text())
    assert re.search(
        r"0\.0\d+ to 0\.\d+ s/GB is the interference rate of receiving: least at 64 kB, most at 1 MB; at 2\.\d+ GB/s",
        apart.text,
    )
    assert "No difference is shown for sending" in apart.text
