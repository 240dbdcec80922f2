"""The contention model from Python, and fits of it to measured flows."""

import json
import math
import tracemalloc

import numpy as np
import pytest
from typer.testing import CliRunner

import crosswind
from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment
from crosswind.model import flows
from crosswind.model.contention import delay_ratio, effective_ratio, message_rate
from crosswind.model.flows import Contention, Samples, fit_contention

# Table 2 of communication-interactions, and the two flows of type A of section 4.2: slowdowns of delta.
MEASURED = {
    2: [("A", 0.91), ("A", 0.92), ("B", 0.90)],
    3: [("A", 0.83), ("B", 0.85), ("A", 0.81), ("B", 0.85)],
    4: [("A", 0.75), ("B", 0.74)],
}
LINEAR = {"form": "linear-latency", "per_flow": 0.1}


def table(path, rows, columns="flows,latency_s,kind"):
    path.write_text(columns + "\n" + "".join(",".join(str(cell) for cell in row) + "\n" for row in rows))
    return path


@pytest.fixture
def of_the_paper(tmp_path):
    alone = {"A": 500e-6, "B": 60e-6}
    rows = [(1, latency, kind) for kind, latency in alone.items()]
    rows += [(n, alone[kind] / part, kind) for n, parts in MEASURED.items() for kind, part in parts]
    return table(tmp_path / "flows.csv", rows)


def test_flows_of_the_paper_fit_both_forms_within_its_6_percent_and_not_the_printed_one(of_the_paper):
    found = fit_contention([of_the_paper])
    forms = {form["form"]: form for form in found.forms}
    assert forms["linear-latency"]["value"] == pytest.approx(0.107, abs=0.005)
    assert forms["reconstructed"]["value"] > 256
    assert max(forms[form]["max_error"] for form in ("linear-latency", "reconstructed")) < 0.06
    assert forms["literal"]["max_error"] > 3 * forms["linear-latency"]["max_error"]
    assert found.ratio(1) == 1.0
    assert found.ratio(2) == pytest.approx((np.sqrt(0.91 * 0.92) * 0.90) ** 0.5)
    assert found.ratio(6) == pytest.approx(1 / (1 + 5 * forms["linear-latency"]["value"]))


@pytest.mark.parametrize(
    ("form", "parameter", "value"), [("linear-latency", "per_flow", 0.3), ("reconstructed", "window_messages", 256.0)]
)
def test_the_form_that_made_the_flows_is_found_and_its_interval_holds_the_truth(tmp_path, form, parameter, value):
    noise = np.random.default_rng(3)
    truth = {"form": form, parameter: value}
    rows = [
        (n, 1e-3 / effective_ratio(truth, n) * np.exp(noise.normal(0, 0.01)))
        for n in (1, 2, 3, 5, 8)
        for _ in range(20)
    ]
    found = fit_contention([table(tmp_path / "flows.csv", rows, "flows,latency_s")])
    chosen = found.effective["elsewhere"]
    assert chosen["form"] == form
    (fitted,) = [one for one in found.forms if one["form"] == form]
    low, high = fitted["value_ci95"]
    assert low < value < high
    for point in found.points:
        assert point["ratio_ci95"][0] - 0.01 < effective_ratio(truth, point["flows"]) < point["ratio_ci95"][1] + 0.01


def test_throughput_is_over_the_link_or_over_one_flow(tmp_path):
    rows = [(1, 8.0), (2, 14.0), (4, 12.0)]
    file = table(tmp_path / "flows.csv", rows, "flows,mb_per_s")
    over_link = fit_contention([file], link_mb_per_s=16.0)
    assert [over_link.ratio(n) for n in (2, 4)] == pytest.approx([14 / 16, 12 / 16])
    assert over_link.warnings == []
    over_one = fit_contention([file])
    assert over_one.ratio(2) == pytest.approx(14 / 8)
    assert [told["code"] for told in over_one.warnings] == ["effective-above-1"]


def test_one_number_of_flows_is_said_to_be_too_few_to_tell_forms_apart(tmp_path):
    found = fit_contention([table(tmp_path / "flows.csv", [(1, 5e-4), (2, 5.5e-4)], "flows,latency_s")])
    assert [told["code"] for told in found.warnings] == ["one-number-of-flows"]
    assert found.points[0]["ratio_ci95"] is None


def test_a_fit_is_read_back_and_goes_into_the_model(of_the_paper, tmp_path):
    found = fit_contention([of_the_paper])
    found.save(tmp_path / "contention.json")
    again = Contention.load(tmp_path / "contention.json")
    assert again.to_dict() == json.loads((tmp_path / "contention.json").read_text()) == found.to_dict()
    assert again.to_arrow().num_rows == len(found.points) == 6
    rates = {"link": 2365.0, "parallel": 813.0, "local": [500.0] * 4}
    fitted = delay_ratio("all-to-all", **rates, effective=again)
    assert fitted.over_managed == pytest.approx(1.13, abs=0.05)
    assert fitted.over_managed > fitted.over_unmanaged > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its columns are none"),
        ("flows,latency\n", "its columns are flows, latency"),
        ("flows,latency_s,mb_per_s\n", "its columns are"),
        ("flows,latency_s,colour\n", "there is no column 'colour'"),
        ("flows,latency_s\n1,0.5\n2.5,1\n", "flows.csv:3: flows is 2.5; it must be a whole number"),
        ("flows,latency_s\n0,0.5\n", "flows.csv:2: flows is 0"),
        ("flows,latency_s\n1,-2\n", "latency_s is -2; it must be 1e-12 to 1e+12"),
        ("flows,latency_s\n1,inf\n", "latency_s is inf"),
        ("flows,latency_s\n1\n", "latency_s is None, which is no number"),
        ("flows,latency_s\n2,1\n", "nothing was measured with 1 flow"),
        ("flows,latency_s,kind\n1,1,A\n2,1,B\n", "nothing was measured with 1 flow of kind 'B'"),
        ("flows,latency_s\n1,1\n", "nothing was measured with 2 flows or more"),
        ("flows,latency_s\n1,\xff", "is no table"),
    ],
)
def test_a_wrong_table_is_named_with_its_line(tmp_path, text, said):
    file = tmp_path / "flows.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(DescriptionError) as refused:
        fit_contention([file])
    assert said in str(refused.value)


def test_runs_of_other_kinds_and_other_files_are_refused(tmp_path):
    file = tmp_path / "runs.json"
    file.write_text(json.dumps({"schema_version": 1, "experiment": "e", "on": "sim", "runs": []}))
    with pytest.raises(DescriptionError, match="runs of another kind"):
        fit_contention([file])
    with pytest.raises(DescriptionError, match="is no contention"):
        Contention.load(file)


def test_latencies_and_throughput_are_not_mixed(tmp_path):
    one = table(tmp_path / "a.csv", [(1, 1), (2, 1)], "flows,latency_s")
    other = table(tmp_path / "b.csv", [(1, 1), (2, 1)], "flows,mb_per_s")
    with pytest.raises(DescriptionError, match="the files mix latencies"):
        fit_contention([one, other])
    with pytest.raises(DescriptionError, match="link_mb_per_s is -1"):
        fit_contention([other], link_mb_per_s=-1)


def test_beyond_saturation_the_answer_says_what_to_ask():
    rates = {"link": message_rate(19.375, 8192), "parallel": 500.0, "effective": LINEAR}
    assert delay_ratio("one-to-many", **rates, local=[500.0]).warnings == []
    (told,) = delay_ratio("one-to-many", **rates, local=[2000.0]).warnings
    assert told["code"] == "beyond-saturation"
    assert "flows want 2500 of the 2365.11 that it carries" in told["message"]
    assert "simulate" in told["hint"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pattern": "all-to-none"}, 'pattern is "all-to-none"; it must be one of: many-to-one'),
        ({"formula": "guessed"}, 'formula is "guessed"'),
        ({"local_target": "there"}, 'local_target is "there"'),
        ({"effective": {"form": "magic"}}, "effective: unknown variant `magic`"),
        ({"effective": {"form": "table", "ratios": [1.0]}}, "flows is 2; the table ends at 1"),
        ({"effective": {**LINEAR, "window": 3}}, "effective: unknown field `window`"),
        ({"parallel": 0.0}, "parallel is 0"),
        ({"pattern": "each-to-many"}, "at_targets has 0 senders; it must have 1"),
    ],
)
def test_a_wrong_question_is_named(wrong, said):
    question = {"pattern": "one-to-many", "link": 1.0, "parallel": 1.0, "local": [1.0], "effective": LINEAR}
    with pytest.raises(DescriptionError) as refused:
        delay_ratio(**{**question, **wrong})
    assert said in str(refused.value)


def test_runs_of_streams_tell_latency_and_throughput(tmp_path):
    """Two flows to one host, each of which fills the link: twice as late, and as much together."""
    flow = {"class": "parallel", "to": 2, "message_bytes": 8192, "arrivals": "backlogged", "outstanding": 4}
    several = [{"name": f"A{host}", "from": host, **flow} for host in (0, 1)]
    workload = {"kind": "streams", "hosts": 3, "stream": several}
    runs = crosswind.run(Experiment.from_dict({"schema_version": 1, "name": "flows", "workload": workload}))
    runs.save(tmp_path / "runs.json")
    late = fit_contention([tmp_path / "runs.json"])
    assert late.data["by"] == "latency"
    assert late.ratio(2) == pytest.approx(0.5, abs=0.03)
    moved = fit_contention([tmp_path / "runs.json"], by="throughput")
    assert moved.ratio(2) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("form", "parameter", "value"), [("linear-latency", "per_flow", 0.1), ("reconstructed", "window_messages", 256.0)]
)
@pytest.mark.parametrize("samples", [4, 10, 30])
def test_the_interval_of_a_parameter_holds_the_truth_as_often_as_it_says(monkeypatch, form, parameter, value, samples):
    """All ratios share the samples of one flow. Of 60 drawn measurements 57 are expected to hold the truth."""
    monkeypatch.setattr(flows, "RESAMPLES", 300)
    random = np.random.default_rng(samples)
    numbers = [2, 3, 4, 5]
    truth = {n: math.log(effective_ratio({"form": form, parameter: value}, n)) for n in (1, *numbers)}
    holds = 0
    for _ in range(60):
        logs = {n: mean + random.normal(0.0, 0.05, samples) for n, mean in truth.items()}
        errors = flows._Errors.of([Samples(n, "", logs[n], logs[1], str(n), "1") for n in numbers], random)
        ratios = np.exp([logs[n].mean() - logs[1].mean() for n in numbers])
        low, high = flows._form(form, numbers, ratios, errors)["value_ci95"]
        holds += low <= value <= (math.inf if high is None else high)
    assert holds >= 53


def test_streams_of_one_run_have_errors_in_common():
    random = np.random.default_rng(1)
    run, own = random.normal(0.0, 0.1, 40), random.normal(0.0, 0.001, 40)
    together, apart = (
        flows._Errors.of(
            [Samples(2, "a", run, run[:0], "r", ""), Samples(2, "b", run + own, run[:0], other, "")], random
        )
        for other in ("r", "s")
    )
    correlated = [np.corrcoef(errors.total.T)[0, 1] for errors in (together, apart)]
    assert correlated[0] > 0.99 > 0.2 > abs(correlated[1])


@pytest.mark.parametrize("value", ["1e308", "5e-324", "1e13", "nan", "-1", "9" * 400])
@pytest.mark.parametrize("column", ["latency_s", "mb_per_s"])
def test_amounts_whose_ratios_are_no_numbers_are_refused_with_their_line(tmp_path, column, value):
    file = tmp_path / "flows.csv"
    file.write_text(f"flows,{column}\n1,1\n2,{value}\n")
    with pytest.raises(DescriptionError, match=rf"flows.csv:3: {column} is .*; it must be 1e-12 to 1e\+12") as refused:
        fit_contention([file])
    assert len(str(refused.value)) < 250


def test_amounts_at_the_ends_of_their_range_are_fitted(tmp_path):
    file = tmp_path / "flows.csv"
    file.write_text("flows,latency_s\n1,1e12\n1,1e-12\n2,1e12\n2,1e-12\n3,1e-12\n3,1e12\n")
    assert all(math.isfinite(form["value"]) for form in fit_contention([file]).forms)


@pytest.mark.parametrize(
    ("latencies", "form", "ends"),
    [
        ({1: 1.0, 2: 1.0, 3: 1.0}, "linear-latency", [0.0, None]),  # nothing is lost: 0 is the least that there is
        ({1: 1.0, 2: 1.0, 3: 1.0}, "reconstructed", [None, math.inf]),
        ({1: 1.0, 2: 1e5, 3: 1e5}, "linear-latency", [None, math.inf]),
        ({1: 1.0, 2: 1.1, 3: 1.2}, "linear-latency", [None, None]),
    ],
)
@pytest.mark.parametrize("spread", [0.0, 1e-7, 0.01])
def test_an_interval_holds_its_value_and_has_no_end_where_the_search_ends(tmp_path, latencies, form, ends, spread):
    rows = [(n, latency * (1.0 + spread * sign)) for n, latency in latencies.items() for sign in (-1, 1, 0.5)]
    found = fit_contention([table(tmp_path / "flows.csv", rows, "flows,latency_s")])
    (fitted,) = [one for one in found.forms if one["form"] == form]
    low, high = fitted["value_ci95"]
    assert low <= fitted["value"] <= (math.inf if high is None else high)
    if ends[0] is not None:
        assert low == ends[0]
    assert (high is None) == (ends[1] == math.inf)
    shown = CliRunner().invoke(app, ["fit", "contention", "--wide", str(tmp_path / "flows.csv")]).stdout
    assert high is not None or f"{low:.4g} or more" in shown


def test_memory_grows_with_the_ratios_and_not_with_their_square_or_the_samples():
    random = np.random.default_rng(1)
    base = random.normal(size=20_000)
    samples = [Samples(n, "", random.normal(size=3), base, str(n), "1") for n in range(2, 202)]
    tracemalloc.start()
    try:
        errors = flows._Errors.of(samples, random)
        assert errors.total.shape == (flows.RESAMPLES, 200)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 10 * errors.total.nbytes


def test_more_points_than_are_fitted_together_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(flows, "MOST_POINTS", 3)
    rows = [(n, 1.0 + n) for n in range(1, 6)]
    with pytest.raises(DescriptionError, match="4 numbers of flows were measured") as refused:
        fit_contention([table(tmp_path / "flows.csv", rows, "flows,latency_s")])
    assert refused.value.code == "too-many-points"


def test_the_printed_form_is_tried_at_rates_that_it_permits_however_many_flows_there_are(tmp_path):
    rows = [(1, 1.0), (60_000, 2.0), (90_000, 3.0)]
    found = fit_contention([table(tmp_path / "flows.csv", rows, "flows,latency_s")])
    (printed,) = [one for one in found.forms if one["form"] == "literal"]
    assert printed["value"] >= 2 * 90_000
    assert math.isfinite(printed["rms"])
