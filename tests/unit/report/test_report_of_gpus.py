"""The section of a GPU, from the recorded measurement of a real one."""

import html
import re
from dataclasses import replace

import accelerators
import pytest

from crosswind.errors import DescriptionError, warning
from crosswind.gpu.fit import fit_gpu
from crosswind.gpu.measurement import GpuMeasurement
from crosswind.report import report
from crosswind.report.sections.gpu import gpu_section


@pytest.fixture(scope="module")
def fit():
    return fit_gpu(accelerators.h100())


def test_the_section_says_what_the_fit_says(fit, tmp_path):
    page = report(fit, tmp_path / "report.html").read_text()
    main = page.split("<main>")[1].split("</main>")[0]
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", main)))
    assert "cost each other on NVIDIA H100 80GB HBM3?" in text
    assert "75.0 % ± 0.3 of its rate is what the chase kernel loses beside d2h-sm at 46.3 GB/s" in text
    triad = fit.pair("triad", "h2d")
    for value in (f"{100 * triad.unpaced.loss:.2f} ± ", f"{100 * triad.traffic_loss:.1f} ± "):
        assert value in text


def test_each_kernel_has_a_figure_of_its_losses_and_each_group_one_of_what_the_traffic_loses(fit):
    section = gpu_section(fit, 1)
    assert [figure.title for figure in section.losses] == [
        f"{kernel} beside copies {group}"
        for kernel in ("triad", "chase")
        for group in ("between host and device", "within the device")
    ]
    assert len(section.slowed) == 2
    assert len({figure.id for figure in section.figures}) == len(section.figures)
    (points,) = section.losses[0].spec["datasets"].values()
    # Each kind of traffic: nothing, four levels, and no limit.
    assert len(points) == 4 * 6
    assert {point["series"] for point in points} == {"h2d", "d2h", "both", "d2h-sm"}


def test_more_kinds_of_traffic_than_colours_get_more_figures(fit):
    base = fit.pair("triad", "h2d")
    pairs = tuple(replace(base, traffic=f"d2h-sm:{blocks}") for blocks in range(1, 11))
    described = [{"traffic": one.traffic, "path": "device-to-host"} for one in pairs]
    header = fit.measurement.header | {"pairs": described}
    section = gpu_section(replace(fit, pairs=pairs, measurement=GpuMeasurement(fit.measurement.blocks, header)), 1)
    assert [figure.title for figure in section.losses] == [
        "triad beside copies between host and device, part 1",
        "triad beside copies between host and device, part 2",
    ]


def test_warnings_of_the_measurement_stand_on_the_page(fit, tmp_path):
    held = replace(fit, warnings=[warning("gpu-throttled", "power or heat held the clocks down", "look")])
    page = html.unescape(report(held, tmp_path / "report.html").read_text())
    assert "power or heat held the clocks down" in page


def test_a_measurement_that_is_too_short_for_figures_is_named(tmp_path):
    whole = accelerators.h100()
    GpuMeasurement(whole.blocks.slice(0, 40), whole.header).save(tmp_path / "short.parquet")
    with pytest.raises(DescriptionError, match=r"short\.parquet: no pair has 8 cycles"):
        report(tmp_path / "short.parquet", tmp_path / "report.html")
