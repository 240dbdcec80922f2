"""The report of programs under disturbances: simulated, real and injected runs, blame, the study."""

import html
import json
import re

import disturbed
import pytest
import reported

from crosswind.report import report


def page_of(tmp_path, *items):
    return report(list(items), tmp_path / "report.html").read_text()


def visible(page):
    body = page.split("<footer>")[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body.split("</style>")[1])))


def test_simulated_and_real_slowdowns_stand_beside_each_other(tmp_path):
    text = visible(page_of(tmp_path, disturbed.program_runs(), disturbed.program_runs("local", slower=1.05, seeds=1)))
    assert "1.54 to 15.2 times as long as with all nodes in step. Least: quantum 0.1 s, window 64." in text
    assert "Most: quantum 0.5 s, window 1." in text
    assert "Real slowdowns are +4.0 % above the simulated ones (8 points)." in text


def test_closed_forms_stand_beside_what_was_simulated(tmp_path):
    page = page_of(tmp_path, disturbed.program_runs())
    spec = json.loads(re.search(r'id="spec-program-1-beside">(.*?)</script>', page).group(1))
    rows = [row for values in spec["datasets"].values() for row in values]
    assert {row["which"] for row in rows} == {"simulated", "barrier"}
    assert "closed form" in visible(page)


def test_blame_says_which_cause_costs_most(tmp_path):
    text = visible(page_of(tmp_path, disturbed.blamed()))
    assert "10.58 % ± 0.07 of the undisturbed time is the cost of the disturbance. cron costs most, 57 % of it." in text
    assert "Aligned over the ranks, all causes would cost 1.0 %." in text


def test_the_study_says_how_many_claims_hold(tmp_path):
    text = visible(page_of(tmp_path, disturbed.studied()))
    assert "3 of 8 claims of the paper hold; 5 cannot be decided (D-4, D-5, D-6, D-7, D-8)." in text
    assert "all together 2.32 7.41" in text


def test_injected_slowdowns_stand_beside_what_is_expected_and_simulated(tmp_path):
    items = [
        disturbed.injected("nothing", 0.0, 1.0),
        disturbed.injected("half"),
        disturbed.injected("local", 0.25, 1.5),
    ]
    text = visible(page_of(tmp_path, *items, disturbed.program_runs()))
    assert "2.02 s with 50 % of the busiest rank's time taken away: 2.02 times undisturbed." in text
    assert "half 2.020 50 % 2.020 2.000 –" in text


def test_an_injection_without_an_undisturbed_run_has_no_slowdown_and_says_why(tmp_path):
    text = visible(page_of(tmp_path, disturbed.injected()))
    assert "Slowdowns need an undisturbed run" in text


def test_files_of_each_kind_are_read(tmp_path):
    files = [tmp_path / name for name in ("runs.json", "blame.json", "study.json", "injected.json")]
    disturbed.program_runs().save(files[0])
    disturbed.blamed().save(files[1])
    disturbed.studied().save(files[2])
    files[3].write_text(json.dumps(disturbed.injected().to_dict()))
    page = page_of(tmp_path, *files)
    for section in ("program-1", "blame-1", "study-1", "injected-1"):
        assert f'<section id="{section}"' in page


def test_every_link_leads_somewhere_and_every_id_is_one(tmp_path):
    page = page_of(tmp_path, disturbed.studied(), disturbed.program_runs(), disturbed.blamed(), disturbed.injected())
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


@pytest.mark.parametrize("make", [disturbed.injected, disturbed.blamed])
def test_the_terms_of_a_section_are_there_when_it_stands_alone(tmp_path, make):
    page = page_of(tmp_path, make())
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'\bid="([^"]+)"', page))


def test_hostile_names_stay_text(tmp_path):
    items = [disturbed.program_runs(hostile=True), disturbed.injected(hostile=True)]
    items.append(disturbed.blamed(causes=(reported.BREAKS_SCRIPT, reported.BREAKS_ATTRIBUTE)))
    page = page_of(tmp_path, *items)
    assert "<img src=x" not in page
    assert "<svg onload" not in page
