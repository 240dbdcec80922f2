"""What a report is written as: the suffix decides, and figures for papers."""

import re
import shutil

import pytest
import reported

import crosswind
from crosswind.errors import DescriptionError
from crosswind.report import draw, plot, report, written
from crosswind.report.figures import paper
from crosswind.report.figures.columns import bars, boxes
from crosswind.report.figures.curves import curves
from crosswind.report.figures.export import write_figure
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.paper import _only, _rows, points
from crosswind.report.sections.runs import runs_section


@pytest.mark.parametrize("name", ["r.txt", "r.svg", "r.pdf.gz"])
def test_a_suffix_that_no_report_has_is_refused_before_work(tmp_path, name):
    with pytest.raises(DescriptionError, match=r"a report is \.html or \.pdf"):
        report(reported.planned(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_pdf_without_a_browser_is_refused_before_work(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(DescriptionError, match="no browser to print the PDF"):
        report(reported.planned(), tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []
    assert report(reported.planned(), tmp_path / "r.html").is_file()


def test_the_title_is_the_one_that_was_given_and_stays_text(tmp_path):
    done = written(reported.planned(), tmp_path / "r.html", title="<b>Fork</b>")
    assert "<h1>&lt;b&gt;Fork&lt;/b&gt;</h1>" in done.out.read_text()
    document = done.to_dict()
    assert document["title"] == "<b>Fork</b>"
    assert [section["id"] for section in document["sections"]] == ["plan-1"]
    assert document["sections"][0]["figures"][0]["id"] == "plan-1-tree"


@pytest.mark.parametrize(("suffix", "head"), [(".pdf", b"%PDF-"), (".svg", b"<svg"), (".png", b"\x89PNG")])
def test_a_figure_for_a_paper_is_what_its_suffix_says(tmp_path, suffix, head):
    out = tmp_path / f"f{suffix}"
    for _ in range(2):  # a figure may take a figure's place
        draw(reported.ran(), out, x="workload.task_work", series="policy.order")
    assert out.read_bytes().startswith(head)


def test_a_figure_of_another_suffix_or_of_no_runs_is_refused(tmp_path):
    with pytest.raises(DescriptionError, match=r"a figure is \.pdf, \.png, \.svg"):
        draw(reported.ran(), tmp_path / "f.html", x="workload.task_work")
    with pytest.raises(DescriptionError, match="not of a plan"):
        draw(reported.planned(), tmp_path / "f.pdf", x="workload.task_work")
    (tmp_path / "thesis.pdf").write_text("no PDF")
    with pytest.raises(DescriptionError, match="would take its place"):
        draw(reported.ran(), tmp_path / "thesis.pdf", x="workload.task_work", series="policy.order")


def row(size, order, seed, makespan):
    return {"workload.size": size, "policy.order": order, "seed": seed, "makespan_s": makespan}


def test_points_are_means_over_seeds_with_students_interval():
    rows = [row(1, "a", seed, value) for seed, value in enumerate((9.0, 10.0, 11.0))] + [row(2, "a", 0, 20.0)]
    first, second = points(rows, "workload.size", ["policy.order"])
    assert (first["mean"], first["count"]) == (10.0, 3)
    assert first["high"] - first["mean"] == pytest.approx(4.302653 / 3**0.5)  # t of 2 degrees of freedom
    assert first["mean"] - first["low"] == pytest.approx(first["high"] - first["mean"])
    assert (second["low"], second["mean"], second["high"]) == (20.0, 20.0, 20.0)


def test_a_path_that_varies_and_is_not_told_is_refused():
    rows = [row(1, "a", 0, 1.0), row(1, "b", 0, 2.0)]
    with pytest.raises(DescriptionError, match=r"policy\.order varies, too \(a, b\)"):
        points(rows, "workload.size", swept=["workload.size", "policy.order"])
    with pytest.raises(DescriptionError, match=r"no column 'workload\.sise'"):
        points(rows, "workload.sise")


def test_results_that_differ_between_repetitions_are_no_other_experiment(tmp_path):
    experiment = {
        "schema_version": 1,
        "name": "arrivals and failures",
        "platform": {"schema_version": 1, "name": "one", "node": [{"name": "r", "compute_per_s": 10.0}]},
        "workload": {"kind": "farm", "tasks": 30, "task_size_mb": 1.0, "task_work": 1.0},
        "failure": [{"node": "r", "mtbf_s": 1.0, "mttr_s": 0.1, "compute_factor": 0.5}],
        "sweep": {"policy.order": ["arrival", "bandwidth"]},
        "repetitions": 3,
    }
    experiment["workload"]["arrival_gap_s"] = {"distribution": "exponential", "mean": 0.2}
    runs = crosswind.run(crosswind.Experiment.from_dict(experiment))
    assert len({run.row()["flow.mean_s"] for run in runs}) > 1
    assert len({run.row()["failures.count"] for run in runs}) > 1
    for y in ("makespan_s", "flow.mean_s"):
        draw(runs, tmp_path / "f.svg", x="policy.order", y=y)
    with pytest.raises(DescriptionError, match=r"policy\.order varies, too"):
        draw(runs, tmp_path / "f.svg", x="on")


def test_only_runs_that_are_asked_for_are_drawn(tmp_path):
    draw(reported.ran(), tmp_path / "f.svg", x="workload.task_work", where=["policy.order=planned"])
    with pytest.raises(DescriptionError, match="holds for no run"):
        draw(reported.ran(), tmp_path / "f.svg", x="workload.task_work", where=["policy.order=none"])


@pytest.mark.parametrize(
    ("where", "path", "value"),
    [
        ("order=planned", "policy.order", "planned"),
        ("policy.order=planned", "policy.order", "planned"),
        ("task_work=5", "workload.task_work", 5),
        ("workload.task_work=5.0", "workload.task_work", 5),
    ],
)
def test_runs_are_chosen_by_the_short_names_of_the_table_and_numbers_as_it_writes_them(tmp_path, where, path, value):
    rows = _rows([reported.ran()])
    kept = _only(rows, [where])
    assert kept == [row for row in rows if row[path] == value]
    assert 0 < len(kept) < len(rows)
    draw(reported.ran(), tmp_path / "f.svg", x="task_work", series=["order"], where=[where])


def test_a_condition_without_a_value_or_of_no_column_is_refused_by_name():
    rows = [row(1.0, "a", 0, 1.0) | {"other.order": "b", "polls": True}]
    for where, said in [
        ("policy.order", "without a value"),
        ("orders=a", "no column 'orders'"),
        ("order=a", "no column 'order'"),  # of two paths
        ("size=2", "of workload.size: 1"),
        ("polls=false", "of polls: true"),
    ]:
        with pytest.raises(DescriptionError, match=said):
            _only(rows, [where])
    assert _only(rows, ["polls=true", "size=1", "size=1.0", "policy.order=a"]) == rows


def test_every_result_plots_itself():
    for result in (reported.measured(), reported.planned(), reported.ran(), reported.traced()):
        assert result.plot().to_dict(validate=False)["layer"]
    assert crosswind.plot is plot
    assert reported.planned().plot("nodes").to_dict(validate=False)["width"] == 600
    with pytest.raises(DescriptionError, match="no figure 'unknown'"):
        reported.planned().plot("unknown")


@pytest.mark.parametrize(("width", "most"), [(320.0, 2), (720.0, 4), (40.0, 1)])
def test_the_names_of_all_series_stand_within_the_figure(width, most):
    """Of seven orders two were cut off at 120 mm."""
    orders = ("interference", "interference-rate", "bandwidth", "compute", "arrival", "root-only", "planned")
    rows = [{"x": 1.0, "series": order, "mean": 2.0, "low": 1.0, "high": 3.0} for order in orders]
    spec = curves(rows, "x", "y", width=width).to_dict()
    legends = [
        layer["encoding"][name]["legend"]
        for layer in spec["layer"]
        for name in ("color", "shape")
        if name in layer["encoding"]
    ]
    assert {legend["columns"] for legend in legends} == {most}


def test_a_figure_for_a_paper_has_the_size_and_the_scales_that_are_asked_for(tmp_path):
    out = tmp_path / "f.svg"
    draw(reported.ran(), out, x="task_work", series="order", log="xy", size_mm=(85, 60))
    head = re.search(r'<svg [^>]*width="([\d.]+)"[^>]*height="([\d.]+)"', out.read_text())
    assert [float(side) / 96 * 25.4 for side in head.groups()] == pytest.approx([85, 60], abs=0.3)
    for asked, message in (
        ({"log": "z"}, "log is 'z': it is x, y or xy"),
        ({"size_mm": (5, 60)}, "each is 30 to 400 mm"),
    ):
        with pytest.raises(DescriptionError, match=message):
            draw(reported.ran(), out, x="task_work", series="order", **asked)
    with pytest.raises(DescriptionError, match=r"policy.order has '.*': a logarithmic scale needs numbers above 0"):
        draw(reported.ran(), out, x="policy.order", series="task_work", log="x")


RUNS = [
    row(size, order, seed, 10.0 * size * factor + seed)
    for size in (4, 1)
    for order, factor in (("in-order-of-arrival", 1.0), ("planned", 0.5), ("by-bandwidth", 0.6))
    for seed in range(5)
]


def svg_of(chart, tmp_path, size_mm):
    write_figure(Figure("f", "", "a figure", chart), tmp_path / "f.svg", size_mm)
    return (tmp_path / "f.svg").read_text()


def spans(svg, layers):
    """Return the left and the right end of each rectangle in these layers, px."""
    found = []
    for marks in re.findall(rf'<g class="mark-rect role-mark {layers}_marks"[^>]*>(.*?)</g>', svg):
        shapes = re.findall(r'd="M([\d.-]+),[\d.-]+h([\d.-]+)', marks)
        found += [(float(left), float(left) + float(width)) for left, width in shapes]
    return found


@pytest.mark.parametrize("size_mm", [(30, 30), (85, 60), (190, 80)])
def test_bars_begin_at_zero_and_the_ends_of_intervals_stay_within_them(tmp_path, size_mm):
    found = points(RUNS, "workload.size", ["policy.order"])
    svg = svg_of(bars(found, "size", "s", size_mm[0] * 96 / 25.4), tmp_path, size_mm)
    drawn, ends = spans(svg, "layer_0"), spans(svg, r"layer_1_layer_\d")
    assert (len(drawn), len(ends)) == (6, 12)
    assert all(any(low < left < right < high for low, high in drawn) for left, right in ends)
    assert ">0</text>" in svg
    assert svg.index(">1</text>") < svg.index(">4</text>")  # numbers in their order, not in that of the runs


def test_no_word_of_a_narrow_axis_is_left_out(tmp_path):
    found = points([one for one in RUNS if one["workload.size"] == 4], "policy.order")
    for form in (bars, boxes, curves):
        svg = svg_of(form(found, "order", "s", width=113.0), tmp_path, (30, 60))
        for order in ("in-order-of-arrival", "planned", "by-bandwidth"):
            assert f">{order}</text>" in svg


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("points", "Points: means of 5 runs. Whiskers: 95 % confidence intervals."),
        ("bars", "Bars: means of 5 runs. Whiskers: 95 % confidence intervals."),
        ("boxes", "Boxes: quartiles and median of 5 runs. Whiskers: least and greatest."),
    ],
)
def test_a_figure_says_what_its_marks_are(tmp_path, monkeypatch, form, said):
    monkeypatch.setattr(paper, "_runs", lambda items: [])
    monkeypatch.setattr(paper, "_rows", lambda items: RUNS)
    for size_mm in (None, (30, 60)):
        draw("runs.json", tmp_path / "f.svg", x="size", series="order", form=form, size_mm=size_mm)
        svg = (tmp_path / "f.svg").read_text()
        assert said in " ".join(re.findall(r">([^<>]+)</t(?:ext|span)>", svg))


def test_a_form_that_runs_or_axes_cannot_have_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "_runs", lambda items: [])
    monkeypatch.setattr(paper, "_rows", lambda items: RUNS[:-1])
    for asked, message in (
        ({"form": "violins"}, "form is 'violins': it is points, bars, boxes"),
        ({"form": "bars", "log": "y"}, "bars begin at 0"),
        ({"form": "boxes", "log": "x"}, "boxes stand at equal steps along x"),
        ({"form": "boxes"}, r"boxes need 5 runs of each point; workload.size=1, by-bandwidth has 4"),
    ):
        with pytest.raises(DescriptionError, match=message):
            draw("runs.json", tmp_path / "f.svg", x="size", series="order", **asked)
    assert not (tmp_path / "f.svg").exists()


def test_where_tasks_arrive_the_report_answers_by_flow_time(tmp_path):
    nodes = [{"name": "r", "compute_per_s": 1.0}]
    for name, rate, link in (("slow", 4.0, 40.0), ("fast", 12.0, 2.0)):
        nodes.append({"name": name, "parent": "r", "compute_per_s": rate, "receive_limit_mb_per_s": link})
    experiment = {
        "schema_version": 1,
        "name": "arrivals",
        "platform": {"schema_version": 1, "name": "three", "node": nodes},
        "workload": {"kind": "farm", "tasks": 60, "task_size_mb": 1.0, "task_work": 2.0, "arrival_gap_s": 0.4},
        "policy": {"ports": "single"},
        "sweep": {"policy.order": ["compute", "bandwidth"], "workload.arrival_gap_s": [0.1, 0.2]},
    }
    runs = crosswind.run(crosswind.Experiment.from_dict(experiment))
    means = {
        order: sum(run.row()["flow.mean_s"] for run in runs if run.data["order"] == order)
        for order in ("compute", "bandwidth")
    }
    best = min(means, key=lambda order: means[order])
    section = runs_section([runs], 1)
    assert section.title == "Which order has the shortest flow times in arrivals?"
    (large,) = section.large
    assert (large.value, large.text.startswith("has the shortest mean flow time")) == (best, True)
    assert all(one.startswith("By makespan: ") for one in section.findings)
