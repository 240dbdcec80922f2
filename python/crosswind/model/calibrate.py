"""Fits -> a calibrated platform: measured rates in the place of guesses, and a warning where one is still a guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.documents import Document
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.model.channel import ChannelFit
from crosswind.model.curve import table
from crosswind.model.fit import Fit
from crosswind.model.trust import mend_of_missing
from crosswind.platform import Platform

_ABOUT_COSTS = frozenset({"costs-not-separable", "cost-model"})
"""Codes of warnings about figures that a platform does not have: CPU time per call, byte and wake-up."""


@dataclass(frozen=True)
class Calibration:
    """A platform, and what in it was not measured.

    Attributes
    ----------
    platform : Platform
        The calibrated platform.
    warnings : list of dict
        code, message, hint. The platform has these as its own, beside those of the fits.
    """

    platform: Platform
    warnings: list[Notice]


def platform_of(fit: Fit, name: str | None = None) -> Calibration:
    """Return the platform that one measurement describes: the measured host, and one child per peer.

    The host's compute rate, send limit and the price of sending to each peer are measured. What a peer computes and
    what receiving costs it is measured only on the peer itself; until then it is taken to be like this host, which the
    warnings say. (For a peer on this same machine that is what it is.)

    Parameters
    ----------
    fit : Fit
    name : str, optional
        The platform's name; by default the measurement's.

    Returns
    -------
    Calibration

    Raises
    ------
    DescriptionError
        When no channel could be fitted alone.
    """
    return calibrate([fit], None, name)


def calibrate(
    fits: Sequence[Fit], platform: Platform | str | Path | None = None, name: str | None = None
) -> Calibration:
    """Put measured values in their place.

    Without `platform`, the first fit's host becomes the root and the peers of all fits its descendants: a peer that was
    itself measured (another fit has its name) brings its own compute rate and its own price of receiving. With
    `platform`, nodes named like a measured host or peer get the measured values, and the rest stays as it is.

    Parameters
    ----------
    fits : sequence of Fit
        At least one; one per measured host.
    platform : Platform or path, optional
        What to calibrate.
    name : str, optional
        Name of a new platform.

    Returns
    -------
    Calibration

    Raises
    ------
    DescriptionError
        Without a fit, or when no node of `platform` has the name of anything measured.
    """
    if not fits or not any(fit.channels for fit in fits):
        hint = mend_of_missing(fits[0].measurement) if fits else "give at least one fit"
        raise DescriptionError("nothing to calibrate with: no channel was fitted alone", "no-fit", hint)
    if platform is None:
        return _described(fits, name)
    return _recalibrated(fits, platform if isinstance(platform, Platform) else Platform.load(platform))


def host_of(fit: Fit) -> str:
    """Return the name of the measured host."""
    name: str = fit.measurement.header["host"]["name"]
    return name


def peer_names(fit: Fit) -> dict[str, str]:
    """Return the node name of each peer by address: its own name, its address where that says nothing.

    A peer on the measured host itself is named `HOST (peer)`: its address has a port that differs from run to run.
    """
    peers = fit.measurement.header["peers"]
    names = [f"{p['host']} (peer)" if p["host"] == host_of(fit) else p["host"] for p in peers]
    return {p["address"]: n if n and names.count(n) == 1 else p["address"] for p, n in zip(peers, names, strict=True)}


def _rate(ir: ChannelFit | None) -> float:
    """Return an interference rate that a platform may have: noise below 0 is 0."""
    return max(ir.ir_s_per_mb, 0.0) if ir else 0.0


def _send_limit(fit: Fit) -> float | None:
    """Return the highest rate sent, to one peer or to several at once; None where nothing was sent."""
    sends = [c.transfer_max_mb_per_s for c in fit.channels if c.direction == "send"]
    return max(*sends, _of_several(fit, "send")) if sends else None


def _of_several(fit: Fit, direction: str) -> float:
    """Return the highest rate of several peers at once, MB/s; 0 where there was one at a time."""
    return max((one.total_max_mb_per_s for one in fit.additive or () if one.direction == direction), default=0.0)


def _shared(node: Document, measured: Fit | None) -> Document:
    """Return a node with its receive limit as several senders reached it, and the share that its parent alone reaches.

    Measured are the link from the parent, on the parent, and what several senders reach, on the node itself.
    """
    several, link = _of_several(measured, "receive") if measured else 0.0, node["receive_limit_mb_per_s"]
    return node | {"receive_limit_mb_per_s": several, "one_sender_share": link / several} if several > link else node


def _receiving(fit: Fit, parent: str | None = None) -> Document:
    """Return what receiving costs this host: from the parent where that was measured, else the mean over its peers."""
    received = [c for c in fit.channels if c.direction == "receive"]
    names = peer_names(fit)
    received = [c for c in received if names[c.peer] == parent][:1] or received
    price = sum(_rate(c) for c in received) / len(received) if received else 0.0
    return {"ir_receive_s_per_mb": price} | _bent("receive_losses", received)


def _bent(field: str, channels: Sequence[ChannelFit]) -> Document:
    """Return the loss curve of a platform, where there is one channel and its loss is no line."""
    if len(channels) != 1 or not channels[0].bent:
        return {}
    (channel,) = channels
    return {field: [[float(f"{part:.5g}") for part in pair] for pair in table(channel.points[channel.estimator])]}


def _compute(fit: Fit) -> float:
    return fit.baseline.idle_per_s


def _link(fit: Fit, address: str, told: list[Notice]) -> Document:
    """Return what the link to this peer carries and what sending to it costs, from what was measured."""
    send = next((c for c in fit.channels if c.peer == address and c.direction == "send"), None)
    if send:
        price = {"receive_limit_mb_per_s": send.transfer_max_mb_per_s, "ir_send_s_per_mb": _rate(send)}
        return price | _bent("send_losses", [send])
    receive = next((c for c in fit.channels if c.peer == address), None)
    header = fit.measurement.header
    asked = any(
        c["direction"] == "send" and header["peers"][c["peer"]]["address"] == address for c in header["channels"]
    )
    told.append(
        warning(
            "send-not-measured",
            f"sending from {host_of(fit)} to {address} was {'sampled too little' if asked else 'not measured'}:"
            " its link is taken to be as fast as receiving, its interference as 0",
            mend_of_missing(fit.measurement) if asked else "--direction each",
        )
    )
    limit = receive.transfer_max_mb_per_s if receive else float("nan")
    return {"receive_limit_mb_per_s": limit, "ir_send_s_per_mb": 0.0}


def _of_fits(fits: Sequence[Fit]) -> list[Notice]:
    """Return what the fits say against the figures that a platform takes from them, each with the host's name."""
    return [
        warning(w["code"], f"measured on {host_of(fit)}: {w['message']}", w["hint"])
        for fit in fits
        for w in fit.warnings
        if w["code"] not in _ABOUT_COSTS
    ]


def _described(fits: Sequence[Fit], name: str | None) -> Calibration:
    told: list[Notice] = []
    own = {host_of(fit): fit for fit in fits}
    first = fits[0]
    root: Document = {"name": host_of(first), "compute_per_s": _compute(first)}
    if (limit := _send_limit(first)) is not None:
        root["send_limit_mb_per_s"] = limit
    nodes, placed = [root], {host_of(first)}
    for fit in fits:
        if host_of(fit) not in placed:
            raise DescriptionError(
                f"{host_of(fit)} is no peer of the hosts before it: the measurements describe no tree",
                "no-tree",
                "begin with the root's measurement, or give --platform",
            )
        for address, node_name in peer_names(fit).items():
            if node_name in placed or not any(c.peer == address for c in fit.channels):
                continue  # what a node costs its parent is known from the parent's own measurement
            link = _link(fit, address, told)
            node: Document = {"name": node_name, "parent": host_of(fit)}
            node |= _peer_itself(fit, address, node_name, own.get(node_name), told)
            nodes.append(_shared(node | link, own.get(node_name)))
            placed.add(node_name)
    description = {"schema_version": 1, "name": name or first.measurement.header["name"], "node": nodes}
    return Calibration(Platform.from_dict(description).with_warnings([*_of_fits(fits), *told]), told)


def _peer_itself(fit: Fit, address: str, name: str, measured: Fit | None, told: list[Notice]) -> Document:
    """Return the peer's compute rate and receive cost, from its own measurement."""
    source = measured or fit
    if measured is None:
        same = any(p["loopback"] for p in fit.measurement.header["peers"] if p["address"] == address)
        if same:
            message = f"{name} is this same machine: a plan for this file promises more than its CPUs, shared, can do"
            hint = "measure another host (`crosswind measure --peer HOST:7117`), then fit again"
        else:
            message = f"{name} was not measured itself: its compute rate and receive cost are those of {host_of(fit)}"
            hint = f"run `crosswind measure` on {name} too and fit both files"
        told.append(warning("same-machine" if same else "peer-not-measured", message, hint))
    node: Document = {"compute_per_s": _compute(source)} | _receiving(source)
    if (limit := _send_limit(source)) is not None and measured is not None:
        node["send_limit_mb_per_s"] = limit
    return node


def _recalibrated(fits: Sequence[Fit], platform: Platform) -> Calibration:
    told: list[Notice] = []
    description = platform.to_dict()
    nodes = {node["name"]: node for node in description["node"]}
    touched: set[str] = set()
    for fit in fits:
        here = nodes.get(host_of(fit))
        if here is not None:
            touched.add(here["name"])
            here["compute_per_s"] = _compute(fit)
            if (limit := _send_limit(fit)) is not None:
                here["send_limit_mb_per_s"] = limit
            if "parent" in here and any(c.direction == "receive" for c in fit.channels):
                here.pop("receive_losses", None)
                here |= _receiving(fit, here["parent"])
        for address, peer in peer_names(fit).items():
            child = nodes.get(peer)
            sends = any(c.peer == address and c.direction == "send" for c in fit.channels)
            if child is None or child.get("parent") != host_of(fit) or not sends:
                continue
            touched.add(peer)
            for replaced in ("send_losses", "one_sender_share"):  # a link is measured with one sender
                child.pop(replaced, None)
            child |= _link(fit, address, told)
    if not touched:
        measured = ", ".join(sorted({n for fit in fits for n in (host_of(fit), *peer_names(fit).values())}))
        raise DescriptionError(
            f"no node of the platform has the name of anything measured ({measured})",
            "no-node",
            f"its nodes are {', '.join(list(nodes)[:20])}",
        )
    untouched = [n for n in nodes if n not in touched]
    if untouched:
        shown = ", ".join(untouched[:10]) + (f" and {len(untouched) - 10} more" if len(untouched) > 10 else "")
        told.append(warning("not-calibrated", f"{shown}: kept as described", "measure there too"))
    # What was known against figures that are replaced now is known no more.
    before = [w for w in description.get("warning", []) if w["code"] != "not-calibrated"] if untouched else []
    return Calibration(Platform.from_dict(description).with_warnings([*before, *_of_fits(fits), *told]), told)
