"""The report of streams: one queue beside two, simulated beside real, closed forms, hostile names."""

import html
import json
import re

import streamed

from crosswind.report import report
from crosswind.run.results import Runs, StreamsRun


def page_of(tmp_path, *items):
    return report(list(items), tmp_path / "report.html").read_text()


def visible(page):
    body = page.split("<footer>")[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body.split("</style>")[1])))


def rows_of(page, figure):
    spec = json.loads(re.search(rf'id="spec-{figure}">(.*?)</script>', page).group(1))
    return [row for values in spec["datasets"].values() for row in values]


def test_the_finding_says_what_one_queue_costs_and_two_save(tmp_path):
    text = visible(page_of(tmp_path, streamed.streams_runs()))
    one_queue = "A takes 17.1 times as long as alone when it shares one queue (message length 16.38 kB)"
    assert f"{one_queue}, 2.00 times with two: 8.54 times less." in text
    assert (
        "local takes 1.10 times as long as alone when it shares one queue (message length 2.048 kB), 1.20 times" in text
    )


def test_curves_of_one_queue_and_two_stand_beside_the_closed_form(tmp_path):
    rows = rows_of(page_of(tmp_path, streamed.streams_runs()), "streams-1-slowdown-1")
    assert {(row["stream"], row["queue"]) for row in rows} == {
        ("A", "one queue"),
        ("A", "two queues"),
        ("A", "closed form, one queue"),
        ("local", "one queue"),
        ("local", "two queues"),
    }
    assert [row["value"] for row in rows[:3]] == ["2.048 kB"] * 3


def test_simulated_and_real_runs_stand_in_one_figure(tmp_path):
    page = page_of(tmp_path, streamed.streams_runs(), streamed.streams_runs("local", slower=1.2, seeds=1))
    assert {row["which"] for row in rows_of(page, "streams-1-slowdown-1")} == {"simulated", "run"}
    assert "8 runs in virtual time; 4 runs through the live filter on one machine" in visible(page)


def test_one_point_shows_latencies_and_a_job_its_times(tmp_path):
    run = StreamsRun(streamed.streams_run({}, jobs=[streamed.job(0.82, 0.1)]))
    page = page_of(tmp_path, Runs("MG", "sim", [run], None, "streams"))
    assert {row["how"] for row in rows_of(page, "streams-1-latency")} == {"alone", "one queue", "two queues"}
    text = visible(page)
    assert (
        "MG takes 1.82 times as long as alone when it shares one queue, 1.10 times with two: 1.65 times less." in text
    )
    assert "MG job 1 2.000 1.820 – – 1.100" in text


def test_another_varied_field_makes_another_figure(tmp_path):
    runs = [
        StreamsRun(streamed.streams_run({"policy.queue": queue, streamed.LENGTH: length}))
        for queue in ("drr", "strict")
        for length in (2048, 4096)
    ]
    text = visible(page_of(tmp_path, Runs("two", "sim", runs, None, "streams")))
    assert "against message length of local, with one queue and with two (queue drr)" in text
    assert "against message length of local, with one queue and with two (queue strict)" in text


def test_a_file_of_runs_of_streams_is_read(tmp_path):
    streamed.streams_runs().save(tmp_path / "runs.json")
    assert '<section id="streams-1"' in page_of(tmp_path, tmp_path / "runs.json")


def test_every_link_leads_somewhere_and_every_id_is_one(tmp_path):
    page = page_of(tmp_path, streamed.streams_runs())
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_hostile_names_stay_text(tmp_path):
    page = page_of(tmp_path, streamed.streams_runs(hostile=True))
    assert "<img src=x" not in page
    assert "<svg onload" not in page
