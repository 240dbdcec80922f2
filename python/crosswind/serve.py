"""The other end of a measurement: answers probes, moves their bytes, keeps their rates.

`python -m crosswind.serve` is what a measurement without a peer starts for itself; people use `crosswind serve`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crosswind import _core

DEFAULT_LISTEN = "127.0.0.1:7117"


def serve(
    listen: str = DEFAULT_LISTEN,
    on_listening: Callable[[str], None] = lambda address: None,
    *,
    should_stop: Callable[[], bool] | None = None,
    token: str | None = None,
    tls: str | Path | None = None,
) -> None:
    """Be the other end of measurements until ctrl-C, or until `should_stop()` is true.

    Parameters
    ----------
    listen : str
        HOST:PORT; port 0 takes a free one. Off loopback there must be a token or certificates.
    on_listening : callable
        Called once with the address in use.
    should_stop : callable, optional
        Asked ten times a second.
    token : str, optional
        What callers must know, 16 bytes or more.
    tls : path, optional
        This node's directory of certificates (`crosswind cert`): callers must have one of the same set, and what
        controls a measurement is sealed. The bytes that are measured are not.

    Raises
    ------
    DescriptionError
        When others reach the address and there is neither, or a certificate is none.
    MeasurementError
        When the address is not this host's, or in use.

    Examples
    --------
    >>> addresses = []
    >>> serve("127.0.0.1:0", addresses.append, should_stop=lambda: True)
    >>> addresses[0].startswith("127.0.0.1:")
    True
    """
    try:
        _core.serve(listen, on_listening, should_stop, token, str(tls) if tls else None)
    except KeyboardInterrupt:
        return


def greet(address: str, token: str | None = None, tls: str | Path | None = None) -> dict[str, Any]:
    """Shake hands with a `crosswind serve`, and leave again.

    Parameters
    ----------
    address : str
        HOST:PORT.
    token : str, optional
        What both ends share.
    tls : path, optional
        This node's directory of certificates.

    Returns
    -------
    dict
        `address`, `host` (its own name for itself), `loopback` (whether it runs on this same kernel), `rtt_s` (median
        round trip, s).

    Raises
    ------
    MeasurementError
        When the peer cannot be reached, or does not speak Crosswind's protocol, or another version of it.
    AgentLost
        When it goes away in between.

    Examples
    --------
    >>> from crosswind.measure.peer_process import peer_process
    >>> with peer_process([]) as address:
    ...     greet(address)["loopback"]
    True
    """
    peer: dict[str, Any] = json.loads(_core.greet(address, token, str(tls) if tls else None))
    return peer


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve with the options of the command line; the address in use is the first line of stdout."""
    parser = argparse.ArgumentParser(prog="python -m crosswind.serve", description=__doc__)
    parser.add_argument("--listen", default=DEFAULT_LISTEN, metavar="HOST:PORT")
    parser.add_argument("--cpus", default="", metavar="0,1", help="CPUs to run on")
    parser.add_argument("--end-with-parent", action="store_true", help="end when the process that started this ends")
    parser.add_argument(
        "--token-on-stdin", action="store_true", help="what callers must know is the first line of stdin"
    )
    options = parser.parse_args(arguments)
    token = sys.stdin.readline().strip() if options.token_on_stdin else None
    if options.end_with_parent:
        _core.end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is the parent's to handle: it needs us until it has ended
    if options.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in options.cpus.split(",")})
    serve(options.listen, _announce, token=token)


def _announce(address: str) -> None:
    try:
        print(address, flush=True)
    except BrokenPipeError:  # what started this was interrupted, and needs no peer any more
        os._exit(1)


if __name__ == "__main__":
    main()
