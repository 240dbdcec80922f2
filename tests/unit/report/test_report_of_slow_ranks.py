"""The section of a verdict on recorded ranks: which one is slow, when, and what of it a page can hold."""

import itertools
import json

import pytest
import recorded_ranks
from typer.testing import CliRunner

from crosswind.blame.recorded import RecordedBlame, blame_recorded
from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.report import report
from crosswind.report.sections.slow_rank import slow_rank_section


def judged(tmp_path, **how):
    path = tmp_path / "app.trace"
    path.write_bytes(recorded_ranks.app_trace(**how)[0])
    return blame_recorded([path], timeline=True)


def values(figure, name):
    return [
        row[name]
        for layer in figure.spec["layer"]
        for row in layer.get("data", {}).get("values", []) or figure.spec["datasets"][layer["data"]["name"]]
        if name in row
    ]


def test_waits_have_the_colour_of_the_rank_that_causes_them(tmp_path):
    found = judged(tmp_path)
    spans = found.timeline["spans"]
    waits = [at for at, doing in enumerate(spans["doing"]) if doing == "wait"]
    length = {at: spans["end_s"][at] - spans["start_s"][at] for at in waits}
    # Ranks 1 and 3 wait for rank 2 in the exchange; rank 0 waits in the reduction for whichever comes last.
    long = [at for at in waits if length[at] > 1e-3]
    assert long
    assert {spans["caused_by"][at] for at in long} == {2}
    assert {spans["rank"][at] for at in long} == {0, 1, 3}
    section = slow_rank_section(found, 1)
    assert "waits for rank 2" in values(section.lanes, "what")
    assert section.title == "Which rank of app.trace is slow?"
    assert section.headline.startswith("Rank 2 costs ")
    assert section.shown == "All 10 steps."


def test_the_time_line_is_that_of_the_replay(tmp_path):
    found = judged(tmp_path)
    spans = found.timeline["spans"]
    assert max(spans["end_s"]) == pytest.approx(found.data["replayed_s"], abs=1e-9)
    for rank in range(4):
        own = [at for at, of in enumerate(spans["rank"]) if of == rank]
        waited = sum(spans["end_s"][at] - spans["start_s"][at] for at in own if spans["doing"][at] == "wait")
        assert waited == pytest.approx(found.data["waits"][str(rank)], rel=0.01)
    strip = found.timeline["steps"]
    assert sum(strip["length_s"]) == pytest.approx(found.data["replayed_s"], abs=1e-9)
    whole = sum(sum(of) for of in strip["waited_s"].values())
    assert 4 * whole == pytest.approx(sum(found.data["waits"].values()), rel=0.01)
    assert sum(found.timeline["caused_s"].values()) == pytest.approx(4 * whole)


def test_of_a_long_recording_the_steps_that_matter_are_shown_and_named(tmp_path):
    found = judged(tmp_path, ranks=6, steps=400)
    assert found.timeline["last_step"] - found.timeline["first_step"] == 9
    section = slow_rank_section(found, 1)
    first, last = found.timeline["first_step"], found.timeline["last_step"]
    assert section.shown == (
        f"Steps {first} to {last} of 400, in which the ranks wait longest for the ranks that stand out."
    )
    found.save(tmp_path / "blame.json")
    assert (tmp_path / "blame.json").stat().st_size < 400_000
    alone = report(tmp_path / "blame.json", tmp_path / "report.html").stat().st_size
    judged(tmp_path, ranks=6, steps=40).save(tmp_path / "short.json")
    assert alone - report(tmp_path / "short.json", tmp_path / "short.html").stat().st_size < 200_000


def test_a_verdict_is_read_as_it_was_written(tmp_path):
    found = judged(tmp_path)
    found.save(tmp_path / "blame.json")
    assert RecordedBlame.load(tmp_path / "blame.json") == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["timeline"]["spans"]["rank"].pop(), "step has .* values and rank"),
        (lambda d: d["timeline"]["spans"].update(doing=["sleep"]), r"timeline.spans.doing\[0\] is 'sleep'"),
        (lambda d: d.update(culprits=[]), "verdict is straggler with 0 culprits"),
        (lambda d: d.update(recorded_s=-1.0), "recorded_s is -1.0"),
    ],
)
def test_a_file_that_was_changed_is_refused_with_its_field(tmp_path, change, message):
    judged(tmp_path).save(tmp_path / "blame.json")
    document = json.loads((tmp_path / "blame.json").read_text())
    change(document)
    (tmp_path / "blame.json").write_text(json.dumps(document))
    with pytest.raises(DescriptionError, match=message):
        RecordedBlame.load(tmp_path / "blame.json")


@pytest.mark.parametrize(("how", "verdict"), [({"extra_ns": 0}, "none"), ({"drop": 1}, "unidentifiable")])
def test_a_verdict_that_names_nobody_has_a_page(tmp_path, how, verdict):
    found = judged(tmp_path, **how)
    assert found.verdict == verdict
    section = slow_rank_section(found, 1)
    assert ("Not identifiable" in section.headline) == (verdict == "unidentifiable")
    assert (section.lanes is None) == (found.timeline is None)
    assert "<h2" in report(found, tmp_path / "report.html").read_text()


def test_the_verb_writes_the_verdict_and_a_time_line_for_perfetto(tmp_path):
    (tmp_path / "app.trace").write_bytes(recorded_ranks.app_trace()[0])
    out, timeline = tmp_path / "blame.json", tmp_path / "timeline.json"
    line = ["blame", str(tmp_path / "app.trace"), "-o", str(out), "--perfetto", str(timeline)]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 4, done.output
    events = json.loads(timeline.read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert sorted(lanes.values()) == [f"rank {rank}" for rank in range(4)]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["cat"] for event in spans} == {"compute", "call", "wait"}
    waits = [event for event in spans if event["cat"] == "wait" and event["dur"] > 1000]
    assert {event["args"]["caused_by"] for event in waits} == {2}
    assert all(event["name"] == f"wait for rank {event['args']['waits_for']}" for event in waits)
    for lane in lanes:
        own = [event for event in spans if event["tid"] == lane]
        for one, other in itertools.pairwise(own):
            assert one["ts"] + one["dur"] == pytest.approx(other["ts"], abs=0.01)
    assert CliRunner().invoke(app, line).exit_code == 4  # its own files are replaced
    same = CliRunner().invoke(app, [*line[:3], str(out), "--perfetto", str(out)])
    assert "--out and --perfetto are both" in str(same.exception)


def test_a_time_line_is_only_of_traces():
    done = CliRunner().invoke(app, ["blame", "examples/barriers_under_daemons.toml", "--perfetto", "t.json"])
    assert "--perfetto does not apply to an experiment" in str(done.exception)
