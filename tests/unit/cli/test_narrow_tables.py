"""A terminal of 80 columns shows the columns that answer; what is left out is the least useful, and is named."""

import disturbed
import pytest

from crosswind.cli import overlap as overlap_cli
from crosswind.cli.answer import show
from crosswind.cli.run_answers import answer_of
from crosswind.overlap import overlap


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr("crosswind.cli.console.narrow_width", lambda: 80)


def heads_of(text):
    return next(line for line in text.splitlines() if "  " in line)


def test_the_verdict_of_overlap_is_shown(narrow, capsys):
    show(overlap_cli._answer(overlap("sim", waits=["event"], nices=[0, 19], cpus=2)))
    said = capsys.readouterr()
    assert heads_of(said.out).rstrip().endswith("verdict")
    assert "verdict" not in said.err


def test_the_slowdown_of_a_program_is_shown_with_what_was_swept(narrow, capsys):
    show(answer_of(disturbed.program_runs(), 40))
    said = capsys.readouterr()
    assert "slowdown\n" in said.out
    shown = heads_of(said.out)
    assert "window_packets" in shown
    assert "quantum_s=" in shown
