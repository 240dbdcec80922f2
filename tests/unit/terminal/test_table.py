"""Tables fit a narrow terminal by leaving columns out, and never cut a cell."""

import pytest

from crosswind.terminal.table import Table, width

COLUMNS = [("peer", "left"), ("IR s/GB", "right"), ("95 %", "right"), ("loss there", "right")]
ROWS = [["127.0.0.1:43213", "0.5249", "0.5128 .. 0.5374", "52.6 %"]]


@pytest.mark.parametrize("room", range(1, 80))
def test_a_cell_is_shown_whole_or_not_at_all(room):
    shown, left_out = Table(COLUMNS, ROWS).narrowed(room)
    names = [name for name, _ in shown.columns]
    assert names + left_out == [name for name, _ in COLUMNS]
    assert names
    *_, line = shown.lines(room)
    assert line.split("  ") == [cell.rjust(len(cell)) for cell in line.split("  ")]
    assert all(cell in line for cell, name in zip(ROWS[0], [n for n, _ in COLUMNS], strict=True) if name in names)
    assert width(line) <= room or len(names) == 1


def test_the_columns_that_matter_first_stay_in_their_order():
    shown, left_out = Table(COLUMNS, ROWS).narrowed(40, ["loss there", "IR s/GB", "95 %"])
    assert ([name for name, _ in shown.columns], left_out) == (["IR s/GB", "95 %", "loss there"], ["peer"])


def test_text_in_the_last_column_is_broken_between_words():
    table = Table([("where", "left"), ("what to change", "left")], [["a", "poll instead of waiting for events " * 2]])
    shown, left_out = table.narrowed(40)
    assert left_out == []
    lines = list(shown.lines(40))
    assert len(lines) > 2
    assert all(width(line) <= 40 for line in lines)


def test_a_wide_character_takes_two_columns():
    lines = list(Table([("node", "left"), ("tasks", "right")], [["干渉", "7"], ["Lab0", "12"]]).lines())
    assert [width(line) for line in lines] == [11, 11, 11]
