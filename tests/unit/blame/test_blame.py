"""Blame: what is said of runs that are known, kept and read back; what is refused."""

import json

import disturbed
import pytest

from crosswind import Blame, DescriptionError
from crosswind.blame.result import Store


def test_causes_get_what_they_cost_and_half_of_what_two_cost_together():
    found = disturbed.blamed()
    by_name = {one.cause: one for one in found.by_cause}
    for cause, share, removed in (("cron", 0.6, 0.7), ("update", 0.4, 0.5), ("routed", 0.05, 0.05)):
        assert by_name[cause].shared.mean == pytest.approx(share, abs=0.02)
        assert by_name[cause].removed.mean == pytest.approx(removed, abs=0.02)
        assert by_name[cause].alone.mean == pytest.approx(disturbed.PRICES[cause], abs=0.02)
        assert by_name[cause].shared.low <= share <= by_name[cause].shared.high
    assert found.cost.mean == pytest.approx(1.05, abs=0.02)
    assert found.together.mean == pytest.approx(0.2, abs=0.03)
    assert found.aligned_cost.mean == pytest.approx(0.1, abs=0.02)
    assert sum(one.part for one in found.by_cause) == pytest.approx(1.0)
    assert found.warnings == []


def test_many_causes_are_removed_and_run_alone_but_not_shared_out():
    found = disturbed.blamed(causes=tuple("abcdefg"), together_s=0.0)
    assert all(one.shared is None for one in found.by_cause)
    assert found.by_cause[0].best.mean == pytest.approx(0.1, abs=0.02)
    assert [warning["code"] for warning in found.warnings] == ["blame-many-causes"]


def test_as_many_causes_as_can_be_shared_out_are():
    found = disturbed.blamed(causes=tuple("abcdef"), together_s=0.2)
    assert [one.shared.mean for one in found.by_cause] == pytest.approx([0.2, 0.2, 0.1, 0.1, 0.1, 0.1], abs=0.02)
    assert sum(one.shared.mean for one in found.by_cause) == pytest.approx(found.cost.mean)
    assert found.warnings == []


def test_one_seed_gives_no_interval_and_says_so():
    found = disturbed.blamed(seeds=1)
    assert [warning["code"] for warning in found.warnings] == ["blame-one-seed"]
    assert found.summary()["by_cause"][0]["shared_s"]["low"] is None


def test_a_cause_that_cannot_be_told_from_nothing_is_named(monkeypatch):
    monkeypatch.setitem(disturbed.PRICES, "routed", 0.0)
    (warning,) = disturbed.blamed().warnings
    assert (warning["code"], warning["message"]) == ("blame-not-told", "not distinguishable from 0: routed")


def test_several_causes_below_the_noise_are_told_by_their_sum(monkeypatch):
    for cause in ("update", "routed"):
        monkeypatch.setitem(disturbed.PRICES, cause, 0.0)
    found = disturbed.blamed(together_s=0.0)
    assert {one.cause for one in found.below_the_noise} == {"update", "routed"}
    parts = {one.cause: one.best.mean for one in found.by_cause}
    assert found.below_together.mean == pytest.approx(parts["update"] + parts["routed"])
    assert not found.below_together.excludes_zero


def test_a_blame_is_read_back_as_it_was_written_and_is_a_table(tmp_path):
    found = disturbed.blamed()
    found.save(tmp_path / "blame.json")
    again = Blame.load(tmp_path / "blame.json")
    assert again.summary() == found.summary()
    assert list(again.to_pandas()["cause"]) == ["cron", "update", "routed"]
    assert json.loads((tmp_path / "blame.json").read_text())["kind"] == "blame"


def test_runs_under_way_are_kept_and_a_seed_without_all_its_runs_does_not_count(tmp_path):
    found = disturbed.blamed(seeds=2)
    part = Blame(found.causes, type(found.runs)(found.experiment, "sim", found.runs[:12], "digest", "program"))
    assert part.seeds == [1]
    store, path = Store(found.causes), tmp_path / "blame.json"
    for count in (0, 3, 12):
        store.save(type(found.runs)(found.experiment, "sim", found.runs[:count], "digest", "program"), path)
        assert len(store.load(path)) == count
    store.save(type(found.runs)(found.experiment, "sim", found.runs[:3], "digest", "program"), path)
    with pytest.raises(DescriptionError, match="no seed has all its runs"):
        Blame.load(path)


@pytest.mark.parametrize("broken", ["", "[]", "{", '{"kind": "study"}', '{"kind": "blame", "schema_version": 2}'])
def test_a_file_that_is_no_blame_says_what_is_wrong(tmp_path, broken):
    path = tmp_path / "blame.json"
    path.write_text(broken)
    with pytest.raises(DescriptionError, match=r"blame\.json"):
        Blame.load(path)
