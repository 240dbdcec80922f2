"""What the measurements of a cluster tell: its links, or the rates of a tree; and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from statistics import fmean, median
from typing import TYPE_CHECKING

from crosswind.errors import DescriptionError, Notice, warning
from crosswind.links import Links
from crosswind.measure.cluster.pairs import Visit
from crosswind.measurement import Measurement
from crosswind.model import trust
from crosswind.model.channel import ChannelFit
from crosswind.model.fit import Fit, fit
from crosswind.platform import Platform

if TYPE_CHECKING:
    from crosswind.documents.links import Host, Link

QUICK_LOSS = 0.05
"""A quick measurement promises the loss at the top to this part of the compute rate, either way."""


@dataclass(frozen=True)
class Fitted:
    """The fits of a cluster's measurements.

    Attributes
    ----------
    fits : dict
        By visit.
    unusable : dict
        Why a measurement could not be fitted, by visit.
    quick : bool
        Whether to ask of them what `--quick` promises, or what a measurement promises.
    """

    fits: dict[Visit, Fit]
    unusable: dict[Visit, str]
    quick: bool

    @classmethod
    def of(cls, measurements: Mapping[Visit, Measurement], quick: bool) -> Fitted:
        """Fit all measurements."""
        fits: dict[Visit, Fit] = {}
        unusable: dict[Visit, str] = {}
        for visit, measurement in measurements.items():
            try:
                fits[visit] = fit(measurement)
            except DescriptionError as error:
                unusable[visit] = str(error)
            except Exception as error:  # a host may send whatever it likes
                unusable[visit] = f"cannot be fitted: {type(error).__name__}: {error}"
        return cls(fits, unusable, quick)

    @cached_property
    def _by_ends(self) -> dict[tuple[str, str], Fit]:
        return {(visit.at, visit.peer): one for visit, one in self.fits.items()}

    def _channel(self, at: str, peer: str, direction: str) -> ChannelFit | None:
        found = self._by_ends.get((at, peer))
        return found.alone(direction) if found else None

    def _carried(self, at: str, peer: str, channel: ChannelFit) -> float:
        """Return what a link carries without pacing, MB/s.

        Not the highest rate of any block: what a queue on the way lets through at once is no rate that lasts.
        """
        header = self._by_ends[at, peer].measurement.header
        return float(header["channels"][channel.channel]["unpaced_mb_per_s"])

    def _compute(self, host: str) -> float | None:
        rates = [one.baseline.idle_per_s for visit, one in self.fits.items() if visit.at == host]
        known = [rate for rate in rates if isfinite(rate) and rate > 0]
        return median(known) if known else None

    def _send_limit(self, host: str) -> float | None:
        """Return the fastest that a host sent to any other: what it can send to all together is no less."""
        peers = [visit.peer for visit in self.fits if visit.at == host]
        sends = [(peer, channel) for peer in peers if (channel := self._channel(host, peer, "send"))]
        return max((self._carried(host, peer, channel) for peer, channel in sends), default=None)

    def _price_of_receiving(self, host: str) -> float:
        received = [one.alone("receive") for visit, one in self.fits.items() if visit.at == host]
        prices = [_rate(channel) for channel in received if channel]
        return fmean(prices) if prices else 0.0

    def host(self, name: str) -> Host | None:
        """Return a host as it stands in `links.toml`; None where nothing was measured on it."""
        compute = self._compute(name)
        if compute is None:
            return None
        limit = self._send_limit(name)
        found: Host = {"name": name, "compute_per_s": _rounded(compute)}
        return found if limit is None else {**found, "send_limit_mb_per_s": _rounded(limit)}

    def link(self, sender: str, receiver: str) -> Link | None:
        """Return a link as it stands in `links.toml`; None where neither end measured it.

        Where one end did not, the link is as fast as the other one saw it; receiving costs what it costs that host from
        others, sending nothing.
        """
        arriving = self._channel(receiver, sender, "receive")
        leaving = self._channel(sender, receiver, "send")
        if arriving:
            carried = self._carried(receiver, sender, arriving)
        elif leaving:
            carried = self._carried(sender, receiver, leaving)
        else:
            return None
        price = _rate(arriving) if arriving else self._price_of_receiving(receiver)
        return {
            "from": sender,
            "to": receiver,
            "receive_limit_mb_per_s": _rounded(carried),
            "latency_s": _rounded(self._latency(sender, receiver)),
            "ir_receive_s_per_mb": _rounded(price),
            "ir_send_s_per_mb": _rounded(_rate(leaving)),
        }

    def _latency(self, a: str, b: str) -> float:
        """Return half of the shortest round trip."""
        found = [self._by_ends[ends] for ends in ((a, b), (b, a)) if ends in self._by_ends]
        trips = [peer["rtt_s"] for one in found for peer in one.measurement.header["peers"]]
        return min(trips) / 2.0 if trips else 0.0

    def links(self, name: str, hosts: Iterable[str], wanted: Iterable[tuple[str, str]]) -> Links | None:
        """Return what is known of hosts and links; None where no host is."""
        there = {host: found for host in hosts if (found := self.host(host)) is not None}
        known = [self.link(a, b) for a, b in wanted if a in there and b in there]
        description = {"schema_version": 1, "name": name, "host": list(there.values())}
        return Links.from_dict(description | {"link": [one for one in known if one]}) if there else None

    def platform(self, tree: Platform, host_of: Mapping[str, str]) -> tuple[Platform, list[Notice]]:
        """Return a tree with what was measured in the place of what was described, and what was not measured."""
        description = tree.to_dict()
        kept = []
        for node in description["node"]:
            host = self.host(host_of[node["name"]])
            parent = node.get("parent")
            link = self.link(host_of[parent], host_of[node["name"]]) if parent else None
            node |= {name: value for name, value in (host or {}).items() if name != "name"}
            node |= {name: value for name, value in (link or {}).items() if name not in ("from", "to")}
            if host is None or (parent and link is None):
                kept.append(node["name"])
        hint = "measure again: what is done is not done again"
        told = [warning("not-calibrated", f"{_some(kept)}: kept as described", hint)] if kept else []
        return Platform.from_dict(description).with_warnings([*self.warnings(), *told]), told

    def warnings(self) -> list[Notice]:
        """Return what to keep in mind, each code once: how many measurements it is about, and what it says of one."""
        told: dict[str, list[tuple[Visit, Notice]]] = {}
        for visit, one in self.fits.items():
            for code, w in {w["code"]: w for w in self._judged(one)}.items():
                told.setdefault(code, []).append((visit, w))
        found = []
        for code, several in told.items():
            visit, first = several[0]
            share = f"{len(several)} of {len(self.fits)} measurements, such as {visit.at} with {visit.peer}"
            found.append(warning(code, f"{share}: {first['message']}", first["hint"]))
        return found

    def _judged(self, one: Fit) -> list[Notice]:
        if not self.quick:
            return one.warnings
        known = all(channel.loss_ci95[1] - channel.loss_ci95[0] <= 2 * QUICK_LOSS for channel in one.channels)
        return [w for w in one.warnings if w["code"] != "not-settled" or not known]

    @property
    def trustworthy(self) -> bool:
        """Whether every measurement keeps what it promises."""
        return not any(w["code"] in trust.UNTRUSTED for w in self.warnings())


def _rate(channel: ChannelFit | None) -> float:
    """Return an interference rate that a file may have: noise below 0 is 0."""
    return max(channel.ir_s_per_mb, 0.0) if channel else 0.0


def _rounded(value: float) -> float:
    """Return six digits: more than any measurement has."""
    return float(f"{value:.6g}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
