"""What tasks print is shown line by line, with its node, and no more than a person can read."""

from __future__ import annotations

from crosswind.run.echo import Echo


def test_lines_are_shown_once_and_when_they_are_complete(tmp_path, capsys):
    log = tmp_path / "a.log"
    echo = Echo({"a": log, "b": tmp_path / "b.log"})
    echo.look()
    log.write_bytes(b"one\ntw")
    echo.look()
    assert capsys.readouterr().err == "[a] one\n"
    with log.open("ab") as file:
        file.write(b"o\nthree \xff")
    (tmp_path / "b.log").write_bytes(b"other\n")
    echo.look()
    assert capsys.readouterr().err == "[a] two\n[b] other\n"
    echo.end()
    assert capsys.readouterr().err == "[a] three \ufffd\n"


def test_of_very_much_only_the_end_is_shown_and_where_the_rest_is(tmp_path, capsys):
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 100 + b"\n" + b"y" * (1 << 20) + b"\nlast\n")
    Echo({"a": log}).look()
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith(f"bytes are only in {log}")
    assert last == "[a] last"
