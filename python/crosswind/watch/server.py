"""The page over HTTP: one document, its state as server-sent events, on a thread of its own.

A page of another site can neither read it (no CORS, the Host header is checked against rebinding) nor frame it. Off
loopback a browser shows a token once and keeps a cookie; HTTP itself is not encrypted, so a tunnel is better there.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.terminal.printable import printable_values
from crosswind.watch.page import live, question

if TYPE_CHECKING:
    from tornado.web import Application

_EVERY_S = 0.5
_CLOSE_S = 2.0
_COOKIE = "crosswind-watch"
_WRONG_TOKEN_S = 1.0  # delay of the answer to a wrong token
_LOCAL = ("localhost", "127.0.0.1", "::1")
_LEAST_TOKEN_BYTES = 16

Snapshot = Callable[[], Row]


class Server:
    """Serves a page about a run until it is closed. Parameters and errors as of `crosswind.watch.Watch`."""

    def __init__(self, snapshot: Snapshot, listen: str, token: str | None) -> None:
        try:
            import tornado.web  # noqa: F401 (whether it is there)
        except ImportError:
            message = "watching a run needs tornado, which is not installed"
            raise DescriptionError(message, "argument", "install it: pip install 'tornado>=6.5'") from None
        host, port = _address(listen)
        local = is_loopback(host)
        if not local and token is None:
            message = f"the page's address is {listen!r}, which is not loopback; a token is required"
            raise DescriptionError(message, "argument", "--token-file FILE, or watch through `ssh -L`")
        if token is not None and len(token.encode()) < _LEAST_TOKEN_BYTES:
            message = f"the token has {len(token.encode())} bytes; it must have {_LEAST_TOKEN_BYTES} or more"
            raise DescriptionError(message, "token", "head -c 32 /dev/urandom | base64 > token; chmod 600 token")
        self._sockets = _bound(host, port, listen)
        port = self._sockets[0].getsockname()[1]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        # On loopback the kernel keeps others out; a token that the agents share is not asked for there.
        self._over, self._closed = threading.Event(), threading.Event()
        self._open = 0
        application = _application(self, snapshot, None if local else token, local)
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(application,), name="crosswind-watch", daemon=True)
        self._thread.start()
        self._ready.result()

    @property
    def is_over(self) -> bool:
        """Whether the state is the last one."""
        return self._over.is_set()

    def opened(self, change: int) -> None:
        """Count the pages that are open."""
        self._open += change

    def _run(self, application: Application) -> None:
        try:
            asyncio.run(self._serve(application))
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self, application: Application) -> None:
        from tornado.httpserver import HTTPServer

        server = HTTPServer(application, max_body_size=4096, max_header_size=16_384, idle_connection_timeout=60)
        server.add_sockets(self._sockets)
        self._ready.set_result(None)
        while not self._closed.is_set():
            await asyncio.sleep(0.05)
        until = asyncio.get_running_loop().time() + _CLOSE_S
        while self._open and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.05)
        server.stop()
        await server.close_all_connections()

    def finish(self) -> None:
        """Send the last state to every page that is open, and to those that are opened until `close`."""
        self._over.set()

    def close(self) -> None:
        """Send the last state to every page that is open, and stop."""
        self.finish()
        self._closed.set()
        self._thread.join(2 * _CLOSE_S)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(listen: str) -> tuple[str, int]:
    parts = urlsplit(f"//{listen}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None or parts.path or parts.username:
        message = f"the page's address is {listen!r}; it must be HOST:PORT, with a port of 0 to 65535"
        raise DescriptionError(message, "argument", "such as 127.0.0.1:8080")
    return host, port


def _bound(host: str, port: int, listen: str) -> list[socket.socket]:
    from tornado.netutil import bind_sockets

    try:
        # One family: with port 0 each would get another port.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return bind_sockets(port, host, family=family)
    except OSError as error:
        message = f"the page's address is {listen!r}: {error.strerror or error}"
        raise DescriptionError(message, "argument", "port 0 takes a free one") from None


def _application(server: Server, snapshot: Snapshot, token: str | None, local: bool) -> Application:
    from tornado.iostream import StreamClosedError
    from tornado.web import Application, HTTPError, RequestHandler

    page, policy = live()
    cookie = secrets.token_urlsafe(32)

    class Guarded(RequestHandler):
        """Answers only browsers that may see the run."""

        def set_default_headers(self) -> None:
            self.set_header("Content-Security-Policy", policy)
            self.set_header("X-Content-Type-Options", "nosniff")
            self.set_header("Referrer-Policy", "no-referrer")
            self.set_header("Cache-Control", "no-store")
            self.set_header("Server", "crosswind")

        async def prepare(self) -> None:
            name = urlsplit(f"//{self.request.host}").hostname
            if local and name not in _LOCAL and not (name and is_loopback(name)):
                raise HTTPError(403, reason="not a loopback name")
            if token is not None and not hmac.compare_digest(self.get_cookie(_COOKIE) or "", cookie):
                self.locked()

        def locked(self) -> None:
            raise HTTPError(401)

        def write_error(self, status_code: int, **rest: Any) -> None:
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(f"{status_code} {self._reason}\n")

    class Page(Guarded):
        """The page, or the question for the token."""

        def locked(self) -> None:
            self.set_status(401)
            self.finish(question())

        def get(self) -> None:
            self.finish(page)

    class Token(Guarded):
        """Takes the token, and gives a cookie for it."""

        def locked(self) -> None:
            pass  # that is what it is for

        async def post(self) -> None:
            given = self.get_body_argument("token", "").strip().encode()
            if token is None or not hmac.compare_digest(given, token.encode()):
                await asyncio.sleep(_WRONG_TOKEN_S)
                raise HTTPError(401)
            self.set_cookie(_COOKIE, cookie, httponly=True, samesite="Strict", path="/")
            self.redirect("/", status=303)

    class Events(Guarded):
        """The state, twice a second, until the run is over."""

        async def get(self) -> None:
            self.set_header("Content-Type", "text/event-stream")
            server.opened(1)
            try:
                while True:
                    over = server.is_over
                    state = json.dumps(printable_values(snapshot()), allow_nan=False)
                    self.write(f"data: {state}\n\n" + ("event: over\ndata: {}\n\n" if over else ""))
                    await self.flush()
                    if over:
                        return
                    await asyncio.sleep(_EVERY_S)
            except StreamClosedError:
                pass  # the page was closed
            finally:
                server.opened(-1)

    routes: list[Any] = [("/", Page), ("/token", Token), ("/events", Events)]
    return Application(routes, log_function=lambda handler: None)
