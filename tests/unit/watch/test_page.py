"""The page that keeps a run's last state: one file, nothing loaded, names as data."""

import json
import re

import pytest

from crosswind.files.kinds import found_at
from crosswind.platform import Platform

pytest.importorskip("tornado", reason="tornado is not installed")
from crosswind.watch import Watch

HOSTILE = "</script><script>alert(1)</script>"
NODES = [{"name": HOSTILE, "compute_per_s": 1.0}]
ALONE = Platform.from_dict({"schema_version": 1, "name": "alone", "node": NODES})
SETTINGS = {"policy": {"ports": "single"}, "mean_size_mb": 1.0, "mean_work": 1.0}


def test_a_saved_page_has_the_last_state_and_needs_no_server(tmp_path):
    with Watch() as watch:
        assert not watch.has_begun
        watch.begin(ALONE, SETTINGS, 3)
        watch.took([HOSTILE] * 3)
    watch.save(tmp_path / "run.watch.html")
    page = (tmp_path / "run.watch.html").read_text()
    (kept,) = re.findall(r'<script type="application/json" id="kept">(.*?)</script>', page)
    state = json.loads(kept)
    assert (state["state"], state["done"], state["nodes"][0]["name"]) == ("ended", 3, HOSTILE)
    assert HOSTILE not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#x27;none&#x27;")
    assert "connect-src" not in policy
    assert found_at(tmp_path / "run.watch.html").kind == "watched-page"
