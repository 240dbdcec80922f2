"""What messages of other flows cost a parallel job's, in closed form: gamma, delta, eta of communication-interactions.

The equations, and where they differ from the printed ones, are in `crates/model/src/contention` and
docs/papers/communication-interactions.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from crosswind import _core
from crosswind.errors import Notice, warning

if TYPE_CHECKING:
    from crosswind.model.flows import Contention

Formula = Literal["corrected", "literal"]
Pattern = Literal["many-to-one", "one-to-many", "each-to-many", "all-to-all"]


def message_rate(link_mb_per_s: float, message_bytes: float, formula: Formula = "corrected") -> float:
    """Return how many messages of a size a link carries, 1/s (gamma); headers and cells are not in it.

    Parameters
    ----------
    link_mb_per_s : float
        Rate of the link, MB/s, greater than 0.
    message_bytes : float
        Mean size of messages, bytes, greater than 0.
    formula : {"corrected", "literal"}
        As printed a megabit has 2^20 bits (E4-4).

    Examples
    --------
    >>> round(message_rate(19.375, 8192)), message_rate(19.375, 8192, "literal")
    (2365, 2480.0)
    """
    return _core.message_rate(link_mb_per_s, message_bytes, formula)


def effective_ratio(effective: Contention | Mapping[str, Any], flows: int) -> float:
    """Return which part of a link `flows` flows use while they congest it (delta).

    Parameters
    ----------
    effective : Contention or mapping
        A fit, or one of the forms: `{"form": "literal", "messages_per_s": 2480}` (2.2 as printed),
        `{"form": "reconstructed", "window_messages": 256}` (what gives the paper's analytic values),
        `{"form": "linear-latency", "per_flow": 0.1}`, `{"form": "table", "ratios": [1.0, 0.91]}` (for 1, 2, ... flows),
        `{"form": "fitted", "measured": [[2, 0.91]], "elsewhere": {...}}`.
    flows : int
        At least 1.

    Raises
    ------
    DescriptionError
        When a parameter is out of range, or the form has no answer for this number of flows.

    Examples
    --------
    >>> [round(effective_ratio({"form": "linear-latency", "per_flow": 0.1}, n), 3) for n in (1, 2, 3, 4)]
    [1.0, 0.909, 0.833, 0.769]
    """
    return _core.effective_ratio(_form(effective), flows)[0]


@dataclass(frozen=True)
class DelayRatio:
    """By which part a parallel job's messages take longer beside local flows (eta).

    Attributes
    ----------
    over_managed : float
        Over the time in which the job's own flows share links without loss: the paper's baseline.
    over_unmanaged : float
        Over the time in which the job's own flows cost each other what that number of flows does (E4-12).
    saturated : str or None
        The first link of which flows want more than it carries.
    wanted, carries : float or None
        How much, in the unit of the rates.
    """

    over_managed: float
    over_unmanaged: float
    saturated: str | None = None
    wanted: float | None = None
    carries: float | None = None

    @property
    def warnings(self) -> list[Notice]:
        """A warning beyond saturation, where the model only supposes how much each flow gets."""
        if self.saturated is None:
            return []
        message = f"{self.saturated}: flows want {self.wanted:.6g} of the {self.carries:.6g} that it carries"
        hint = "beyond saturation queues decide, not this model: simulate it (`crosswind run --on sim`, kind streams)"
        return [warning("beyond-saturation", message, hint)]


def delay_ratio(
    pattern: Pattern,
    *,
    link: float,
    parallel: float,
    local: Sequence[float],
    effective: Contention | Mapping[str, Any],
    formula: Formula = "corrected",
    local_target: Literal["same", "elsewhere"] = "same",
    at_targets: Sequence[Sequence[int]] | None = None,
) -> DelayRatio:
    """Return how much later a parallel job's messages are beside local flows (eta).

    Parameters
    ----------
    pattern : {"many-to-one", "one-to-many", "each-to-many", "all-to-all"}
        Senders and receivers. Several targets of a sender are served one after the other.
    link : float
        What each link carries in one direction (gamma), greater than 0. All rates are in one unit: messages/s of one
        size, or MB/s (E4-13).
    parallel : float
        What the job wants to send from each of its hosts (beta), greater than 0.
    local : sequence of float
        What local users send from each sending host (alpha), at least 0: n rates for many-to-one, one for one-to-many,
        one for each host otherwise.
    effective : Contention or mapping
        As in `effective_ratio`.
    formula : {"corrected", "literal"}
        As printed, eta may be below 0 (E4-7, E4-11).
    local_target : {"same", "elsewhere"}
        Where local flows go, many-to-one: to the job's target, as the paper supposes, or to hosts of their own.
    at_targets : sequence of sequence of int, optional
        Each-to-many: for each sender, how many flows arrive at each of its targets at the same time.

    Raises
    ------
    DescriptionError
        When something is out of its range.

    Notes
    -----
    Means over long times; no queue that grows is in it (`DelayRatio.saturated`). Source: communication-interactions,
    section 3; errata E4-7 to E4-13.

    Examples
    --------
    >>> measured = {"form": "linear-latency", "per_flow": 0.1}
    >>> mg = {"link": 2365.0, "parallel": 813.0, "local": [500.0] * 4, "effective": measured}
    >>> round(delay_ratio("all-to-all", **mg).over_managed, 2)
    1.13
    >>> round(delay_ratio("all-to-all", **{**mg, "local": [0.0] * 4}, formula="literal").over_managed, 2)
    -0.56
    """
    managed, unmanaged, beyond = _core.delay_ratio(
        pattern, link, parallel, list(local), _form(effective), formula, local_target, at_targets
    )
    return DelayRatio(managed, unmanaged, *(beyond or ()))


def _form(effective: Contention | Mapping[str, Any]) -> str:
    from crosswind.model.flows import Contention

    return json.dumps(effective.effective if isinstance(effective, Contention) else dict(effective))
