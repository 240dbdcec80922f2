"""Which browser gets the page: anything on loopback by a loopback name, elsewhere only one that showed the token."""

import http.client
import json

import pytest

from crosswind.errors import DescriptionError
from crosswind.platform import Platform
from crosswind.watch import Watch

pytest.importorskip("tornado", reason="tornado is not installed")
TOKEN = "0123456789abcdef0123"
NODES = [{"name": "r", "compute_per_s": 1.0}]
ALONE = Platform.from_dict({"schema_version": 1, "name": "<script>alone", "node": NODES})
SETTINGS = {"policy": {"ports": "single"}, "mean_size_mb": 1.0, "mean_work": 1.0}


def asked(watch, path="/", method="GET", body=None, **headers):
    port = int(watch.address.rstrip("/").rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


def test_the_page_and_its_state_come_on_loopback_and_the_end_is_told():
    with Watch() as watch:
        assert watch.address.startswith("http://127.0.0.1:")
        page = asked(watch)
        assert page.status == 200
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Access-Control-Allow-Origin"] is None
        watch.begin(ALONE, SETTINGS, 10)
        watch.took(["r"] * 4)
        events = asked(watch, "/events")
        first = json.loads(events.readline().removeprefix(b"data: "))
        assert (first["name"], first["done"], first["bound_tasks_per_s"]) == ("<script>alone", 4, 1.0)
        watch.ended()
        watch._server._over.set()
        rest = events.read().decode()
        assert rest.rstrip().endswith("event: over\ndata: {}")
        assert '"state": "ended"' in rest


@pytest.mark.parametrize("path", ["/", "/events", "/token"])
def test_a_name_that_was_rebound_to_loopback_is_refused(path):
    with Watch() as watch:
        assert asked(watch, path, Host="attacker.example").status == 403
        assert asked(watch, path, Host="attacker.example:80").status == 403
        assert asked(watch, "/", Host="localhost:8080").status == 200


def test_off_loopback_nothing_is_shown_without_the_token():
    with Watch("0.0.0.0:0", TOKEN) as watch:
        watch.begin(ALONE, SETTINGS, 10)
        question = asked(watch)
        assert (question.status, b"alone" in (text := question.read()), b"token" in text) == (401, False, True)
        assert asked(watch, "/events").status == 401
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        assert asked(watch, "/token", "POST", "token=wrong", **form).status == 401
        let_in = asked(watch, "/token", "POST", f"token={TOKEN}", **form)
        cookie = let_in.headers["Set-Cookie"]
        assert (let_in.status, "HttpOnly" in cookie, "SameSite=Strict" in cookie) == (303, True, True)
        assert TOKEN not in cookie
        assert asked(watch, "/", Cookie=cookie.split(";")[0]).status == 200
        assert asked(watch, "/", Cookie="crosswind-watch=guessed").status == 401


@pytest.mark.parametrize(
    ("listen", "token", "told"),
    [
        ("0.0.0.0:0", None, "which is not loopback; a token is required"),
        ("0.0.0.0:0", "short", "the token has 5 bytes; it must have 16 or more"),
        ("127.0.0.1", None, "it must be HOST:PORT"),
        ("127.0.0.1:99999", None, "it must be HOST:PORT, with a port of 0 to 65535"),
        ("192.0.2.1:0", TOKEN, "the page's address is '192.0.2.1:0': "),
    ],
)
def test_an_address_that_cannot_be_served_is_refused(listen, token, told):
    with pytest.raises(DescriptionError, match=told):
        Watch(listen, token)


def test_a_page_that_cannot_be_served_is_an_error_and_not_a_wait_without_end(monkeypatch):
    from tornado.httpserver import HTTPServer

    def refuse(server, sockets):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(HTTPServer, "add_sockets", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        Watch()
