"""What was found, in sentences: the headline of each channel, and whether to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crosswind.model.channel import ChannelFit
from crosswind.report.words import percent, percent_range, rate, reference_rate_mb_per_s

if TYPE_CHECKING:
    from crosswind.documents.measurement import MeasurementHeader

FASTER = 1.05  # a highest rate beyond the top level by more than this is a figure of its own
VERBS = {"receive": ("Receiving", "from"), "send": ("Sending", "to")}


@dataclass(frozen=True)
class Finding:
    """The answer for one channel.

    Attributes
    ----------
    headline : str
        One sentence with the cost at a round rate and its interval.
    at_most : str
        What is lost at the top level that was measured, and, where the link is faster than that, how fast it is.
    """

    headline: str
    at_most: str


def finding(channel: ChannelFit, several_peers: bool) -> Finding:
    """Say what one channel's traffic costs."""
    verb, preposition = VERBS[channel.direction]
    to_peer = f" {preposition} {channel.peer}" if several_peers else ""
    at = reference_rate_mb_per_s(channel.transfer_max_mb_per_s)
    if channel.upper_bound is not None:
        headline = (
            f"{verb} {rate(at)}{to_peer} costs this host's computation nothing distinguishable from 0: "
            f"less than {percent(channel.upper_bound * at)}"
        )
    else:
        low, high = (end * at for end in channel.ir_ci95)
        headline = (
            f"{verb} {rate(at)}{to_peer} takes {percent(channel.ir_s_per_mb * at)} ({percent_range(low, high)}) "
            "of this host's computation"
        )
    at_most = (
        f"At {rate(channel.top_mb_per_s)}, the top level of the measurement, "
        f"{percent(channel.loss_at_top)} ({percent_range(*channel.loss_ci95)}) is lost"
    )
    if channel.transfer_max_mb_per_s > FASTER * channel.top_mb_per_s:
        at_most += (
            f". The link itself reached {rate(channel.transfer_max_mb_per_s)} at most: "
            "the loss at that rate was not measured"
        )
    return Finding(headline + ".", at_most + ".")


def trust(header: MeasurementHeader, settled: bool, trustworthy: bool, warnings: int) -> tuple[str, str]:
    """Say whether to trust a measurement: a level (`good`, `fair`, `poor`) and a sentence."""
    also = " See what limits these numbers." if warnings else ""
    match header["ended"]:
        case "interrupted":
            return "poor", "Partial: it was interrupted. What was sampled until then is shown." + also
        case "peer-lost":
            return "poor", "Partial: the peer went away. What was sampled until then is shown." + also
    if not settled:
        return "poor", "Not settled: the intervals are not yet as narrow as was asked." + also
    if not trustworthy:
        return "poor", "Settled, but not to be trusted as it stands." + also
    if warnings:
        return "fair", "Settled: every interference rate is known as well as was asked." + also
    return "good", "Settled: every interference rate is known as well as was asked, and nothing was found amiss."
