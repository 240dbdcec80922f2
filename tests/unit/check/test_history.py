"""A node held against its own earlier checks."""

from checks import checked

from crosswind.check.history import LEAST_PAST, earlier, keep
from crosswind.check.result import Check


def past(count, **changed):
    return [checked(memory=100.0 + k % 3, at=f"2026-01-0{k + 1}T00:00:00Z", **changed) for k in range(count)]


def now(previous, **changed):
    return Check(checked(at="2026-02-01T00:00:00Z", **changed).document, None, previous)


def test_a_node_slower_than_it_was_is_sick():
    found = now(past(LEAST_PAST), memory=50.0)
    assert (found.outcome, found.exit_code) == ("sick", 1)
    assert found.sentence.startswith("sick: memory cpu 0 -50 % (")


def test_a_node_as_it_was_is_healthy():
    found = now(past(LEAST_PAST))
    assert (found.exit_code, found.sentence) == (
        0,
        "healthy: 2 measures within tolerance of the median of 5 earlier checks",
    )


def test_what_every_earlier_check_measured_and_this_one_did_not_is_unknown():
    earlier = past(LEAST_PAST)
    noise = {"noise": earlier[0].document["readings"]["noise"]}
    found = now(earlier, readings=noise)
    assert found.sentence == "unknown: memory cpu 0 not known (not measured)"


def test_with_too_few_nothing_is_judged():
    found = now(past(LEAST_PAST - 1), memory=50.0)
    assert (found.exit_code, found.judged) == (3, [])
    assert found.sentence == "No verdict: no baseline, and 4 of the 5 quiet-host checks needed so far"


def test_checks_of_a_busy_host_are_no_history():
    found = now(past(LEAST_PAST, others=0.5), memory=50.0)
    assert not found.judged
    assert found.sentence.endswith("0 of the 5 quiet-host checks needed so far")
    assert now([*past(LEAST_PAST), *past(2, others=0.5)]).sentence.endswith("of the median of 5 earlier checks")


def test_what_is_kept_is_found_again_by_node_and_in_order(tmp_path):
    checks = past(3)
    for one in [*reversed(checks), checked(node="other"), checked(node="node1-b")]:
        keep(tmp_path / "new", one)
    found, told = earlier(tmp_path / "new", "node1")
    assert [one.document["at"] for one in found] == [one.document["at"] for one in checks]
    assert told == []
    assert earlier(tmp_path / "none", "node1") == ([], [])


def test_a_file_there_that_is_no_check_is_named_and_ends_no_other_check(tmp_path):
    keep(tmp_path, past(1)[0])
    (tmp_path / "node1-x.json").write_text('{"kind": "plan"}')
    (tmp_path / "node1-y.json").write_text('{"kind": "check", "schema_version": 99}')
    found, told = earlier(tmp_path, "node1")
    assert len(found) == 1
    assert [each["code"] for each in told] == ["not-read", "not-read"]
    assert "node1-x.json" in told[0]["message"]


def test_a_verdict_stands_in_the_file(tmp_path):
    path = keep(tmp_path, now(past(LEAST_PAST), memory=50.0))
    assert Check.load(path).outcome == "sick"
