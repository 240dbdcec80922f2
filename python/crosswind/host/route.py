"""Which way to a peer: asks the kernel's routing table (rtnetlink, no privilege), so it sends nothing."""

from __future__ import annotations

import ipaddress
import socket
import struct

from crosswind.errors import DescriptionError
from crosswind.host.tree import UNKNOWN

_RTM_NEWROUTE, _RTM_GETROUTE, _NLM_F_REQUEST = 24, 26, 1
_RTA_DST, _RTA_OIF = 1, 4
_HEADER, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=8BI"), struct.Struct("=HH")


def split_address(address: str, default_port: int | None = None) -> tuple[str, int | None]:
    """Host and port of HOST, HOST:PORT, [V6] or [V6]:PORT.

    Raises
    ------
    DescriptionError
        When the port is no number in 1..65535.

    Examples
    --------
    >>> split_address("node7:7117")
    ('node7', 7117)
    >>> split_address("[::1]:7117")
    ('::1', 7117)
    >>> split_address("fe80::1")
    ('fe80::1', None)
    """
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.removeprefix(":")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    else:
        host, port = address, ""
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise DescriptionError(
            f"peer is {address!r}; it must be HOST:PORT with a port in 1..65535", "peer", "for example node7:7117"
        )
    return host, int(port) if port else default_port


def resolve(host: str) -> list[str]:
    """Return the addresses of a host, in the order in which they would be tried.

    Raises
    ------
    DescriptionError
        When the name is not known.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise DescriptionError(
            f"peer host {host!r} cannot be resolved: {error}",
            "peer-unknown",
            "give an address, or mend /etc/hosts or DNS",
        ) from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_same_machine(address: str) -> bool:
    """Whether HOST or HOST:PORT is an address of this network namespace: then no byte leaves the machine.

    A peer behind a veth pair or in another container of this machine is not recognised by its address, but
    `interface_to` names the veth or the bridge, and `machine` of the two ends can be compared.

    Raises
    ------
    DescriptionError
        When the name is not known.
    """
    return any(_is_local(found) for found in resolve(split_address(address)[0]))


def _is_local(address: str) -> bool:
    numeric = ipaddress.ip_address(address.partition("%")[0])
    if numeric.is_loopback or numeric.is_unspecified:
        return True
    try:
        with _connected(address) as probe:
            # To an address of its own the kernel sends from that very address.
            return bool(ipaddress.ip_address(probe.getsockname()[0].partition("%")[0]) == numeric)
    except OSError:
        return False


def _connected(address: str) -> socket.socket:
    """Return a datagram socket with its route chosen; nothing is sent."""
    family, kind, protocol, _, place = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0]
    probe = socket.socket(family, kind, protocol)
    try:
        probe.connect(place)
    except OSError:
        probe.close()
        raise
    return probe


def interface_to(peer: str) -> str:
    """Name of the interface that packets to a peer leave by ("lo" for an address of this machine).

    Parameters
    ----------
    peer : str
        HOST or HOST:PORT.

    Returns
    -------
    str
        The interface, or "unknown" where there is no route or the kernel does not answer.

    Raises
    ------
    DescriptionError
        When the name is not known.
    """
    for address in resolve(split_address(peer)[0]):
        bare, _, zone = address.partition("%")
        if zone:
            return zone
        index = _route_index(bare)
        if index is not None:
            try:
                return socket.if_indextoname(index)
            except OSError:
                continue
    return UNKNOWN


def _route_index(address: str) -> int | None:
    """Index of the interface of the route to an address, or None."""
    numeric = ipaddress.ip_address(address)
    family = socket.AF_INET if numeric.version == 4 else socket.AF_INET6
    packed = numeric.packed
    route = _ROUTE.pack(family, 8 * len(packed), 0, 0, 0, 0, 0, 0, 0)
    body = route + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(packed), _RTA_DST) + packed
    header = _HEADER.pack(_HEADER.size + len(body), _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
            kernel.settimeout(1.0)
            kernel.send(header + body)
            answer = kernel.recv(8192)
    except OSError:
        return None
    if len(answer) < _HEADER.size + _ROUTE.size or _HEADER.unpack_from(answer)[1] != _RTM_NEWROUTE:
        return None
    at = _HEADER.size + _ROUTE.size
    while at + _ATTRIBUTE.size <= len(answer):
        length, attribute = _ATTRIBUTE.unpack_from(answer, at)
        if attribute == _RTA_OIF:
            return int(struct.unpack_from("=I", answer, at + _ATTRIBUTE.size)[0])
        at += max((length + 3) & ~3, _ATTRIBUTE.size)
    return None
