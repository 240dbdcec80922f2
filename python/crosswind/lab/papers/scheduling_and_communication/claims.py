"""What the paper claims about programs under disturbances (D-1 to D-8), asked of the rows of the figures.

Slowdowns are relative to the time of the best dedicated window, times the jobs that share the machine: the captions'
definition (E2-5). Limits come from the text. Where it has only a word that needs a number ("large", "significantly"),
the part is asked by an order that the text gives, or it is not decided. Daemons and skews can cost no program more than
`Reach` says: a part whose limit lies beyond that cannot fail, and is not graded.
"""

from __future__ import annotations

from crosswind.lab.papers.grading import Claim
from crosswind.lab.papers.scheduling_and_communication import (
    daemon_claims,
    node_claims,
    scheduling_claims,
    window_claims,
)
from crosswind.lab.papers.scheduling_and_communication.calibration import Calibration
from crosswind.lab.papers.scheduling_and_communication.figures import Rows


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade every claim.

    Parameters
    ----------
    rows : Rows
        Of all figures.
    calibration : Calibration
        With which they were run.
    """
    modules = (scheduling_claims, daemon_claims, node_claims, window_claims)
    return [claim for module in modules for claim in module.claims(rows, calibration)]
