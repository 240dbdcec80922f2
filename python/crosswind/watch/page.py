"""The page of a watched run: as the server sends it, and as a file that keeps the last state."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from crosswind.documents import Row
from crosswind.files.pages import script_hash, script_json
from crosswind.terminal.printable import printable_values

_STATE = '<script type="application/json" id="kept">{}</script>'


def live() -> tuple[str, str]:
    """Return the page that follows a run, and the policy that lets only its own program run."""
    return _page(), f"{_policy()}; connect-src 'self'; form-action 'self'; frame-ancestors 'none'"


def still(state: Row) -> str:
    """Return the page with a state in it: a file that needs no server.

    Parameters
    ----------
    state : dict
        Of `crosswind.watch.Watch.snapshot`.
    """
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy())}">'
    kept = script_json(printable_values(state))
    page = _page().replace("<style>", f"{policy}\n<style>", 1)
    return page.replace(_STATE.format(""), _STATE.format(kept), 1)


def question() -> str:
    """Return the page that asks for the token."""
    return _styled("token.html")


def _page() -> str:
    return _styled("watch.html").replace("<script></script>", f"<script>{_asset('watch.js')}</script>")


def _policy() -> str:
    program = script_hash(_asset("watch.js"))
    return f"default-src 'none'; script-src {program}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def _styled(name: str) -> str:
    return _asset(name).replace("<style></style>", f"<style>{_asset('watch.css')}</style>")


def _asset(name: str) -> str:
    return (files("crosswind.watch") / "templates" / name).read_text(encoding="utf-8")
