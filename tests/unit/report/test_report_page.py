"""The order of a page: the question, the answer, the figure that shows it, what limits it; then everything else."""

import html
import re
from dataclasses import replace

import costly
import pytest
import reported

from crosswind.report import report


def page_of(tmp_path, *items, **how):
    return report(list(items), tmp_path / "report.html", **how).read_text()


def body_of(text):
    return text[text.index("<main") : text.index("</main>")]


def test_the_title_asks_about_the_machine_and_the_answer_comes_before_its_figure_and_its_limits(tmp_path):
    text = page_of(tmp_path, reported.measured())
    assert "<h1>How much does traffic slow computation on " in text
    body = body_of(text)
    order = [body.index(part) for part in ('class="answer receive"', 'id="measured-1-losses"', 'class="limits"')]
    assert order == sorted(order)
    assert order[-1] < body.index('id="measured-1-receive-0-scatter"')
    assert len(re.findall('class="answer ', body)) == 2


def test_a_title_of_ones_own_leaves_the_question_above_the_answer(tmp_path):
    own = page_of(tmp_path, reported.measured(), title="August")
    assert "<h1>August</h1>" in own
    assert 'id="measured-1-title">How much' in own
    assert 'id="measured-1-title" class="unseen">How much' in page_of(tmp_path, reported.measured())


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_two_limits_are_shown_and_the_others_folded(tmp_path, count):
    measured = reported.measured()
    measured.header["warnings"] = [
        {"code": f"odd-{k}", "message": f"limit {k} of these", "hint": f"do {k}"} for k in range(count)
    ]
    body = body_of(page_of(tmp_path, measured))
    limits = re.findall(r'<aside class="limits".*?</aside>', body, re.DOTALL)
    assert len(limits) == (1 if count or "limits" in body else 0)
    found = "".join(limits)
    shown, _, folded = found.partition("<details>")
    assert shown.count("<li>") == min(found.count("<li>"), 2)
    assert folded.count("<li>") == max(found.count("<li>") - 2, 0)
    assert all(body.count(f"limit {k} of these") == 1 for k in range(count))


def test_what_two_sections_share_is_said_once(tmp_path):
    shared = {"code": "odd", "message": "said of both", "hint": ""}
    items = []
    for _ in range(2):
        measured = reported.measured()
        measured.header["warnings"] = [shared]
        items.append(measured)
    assert page_of(tmp_path, *items).count("said of both") == 1


@pytest.mark.parametrize("item", [reported.measured, reported.planned, lambda: costly.session((0.02,)), reported.ran])
def test_the_terms_are_those_that_the_page_uses(tmp_path, item):
    text = page_of(tmp_path, item())
    used, told = set(re.findall('href="#term-([^"]+)"', text)), set(re.findall('id="term-([^"]+)"', text))
    assert used == told


def test_a_command_in_a_hint_is_shown_as_code_and_stays_text(tmp_path):
    measured = reported.measured()
    hint = "type `crosswind doctor <img src=x>` first"
    measured.header["warnings"] = [{"code": "odd", "message": "odd", "hint": hint}]
    text = page_of(tmp_path, measured)
    assert "type <code>crosswind doctor &lt;img src=x&gt;</code> first" in text


def test_each_term_is_explained_once_below_the_text_that_uses_it_first(tmp_path):
    text = page_of(tmp_path, reported.measured(), reported.measured(), costly.session((0.02,)))
    explained = re.findall('id="term-([^"]+)"', text)
    assert len(explained) == len(set(explained)) > 5
    for term in explained:
        use, meaning = text.index(f'href="#term-{term}"'), text.index(f'id="term-{term}"')
        assert use < meaning
        assert "</section>" not in text[use:meaning]


def test_the_other_sections_are_listed_with_their_questions_and_answers(tmp_path):
    cost = costly.session((0.02,))
    text = page_of(tmp_path, reported.measured(), reported.planned(), cost)
    listed = re.findall(r'<dt><a href="#([^"]+)">([^<]+)</a></dt><dd>([^<]+)</dd>', text)
    assert [id_ for id_, _, _ in listed] == ["plan-1", "cost-1"]
    assert all(asked.endswith("?") for _, asked, _ in listed)
    assert html.escape(cost.sentence, quote=False).replace("'", "&#39;") in text
    assert 'href="#also">2 more answers on this page' in text
    assert 'id="also"' not in page_of(tmp_path, cost)


def test_a_process_is_called_by_its_name_in_the_title_and_by_its_number_below(tmp_path):
    cost = costly.session((0.02,))
    for target in cost.document["of"]:
        target["name"] = "agent.py (15471)"
    body = page_of(tmp_path, replace(cost))
    assert "<h1>What does agent.py cost " in body
    assert "15471" in body_of(body)
