"""A report as a PDF: printed by the browser that is installed."""

import shutil

import pytest
import reported

from crosswind.report import written
from crosswind.report.page.pdf import BROWSERS, browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no browser"),
]


def test_a_pdf_is_a_pdf_and_is_replaced(tmp_path):
    assert browser()
    for _ in range(2):
        done = written(reported.planned(), tmp_path / "r.html", pdf=True)
    assert [path.name for path in done.files] == ["r.html", "r.pdf"]
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.pdf"]
