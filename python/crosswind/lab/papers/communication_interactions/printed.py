"""What the paper prints: numbers of its text and of table 2. Its figures are lost, but for what the text says."""

from __future__ import annotations

COUNTED = {("mg", 4): (816, 24.5), ("mg", 8): (1472, 48.8), ("ft", 4): (186, 336.0), ("ft", 8): (826, 392.0)}
"""Section 4.3, (program, hosts): messages, and MB of 2^20 bytes."""

TABLE_2 = {
    (1, 1): {"A": 0.92, "B": 0.90},
    (2, 1): {"A": 0.83, "B": 0.85},
    (1, 2): {"A": 0.81, "B": 0.85},
    (2, 2): {"A": 0.75, "B": 0.74},
}
"""Flows of A, flows of B -> slowdown of δ of each."""

DELTA_SLOWDOWN = {2: 0.91, 3: 0.83, 4: 0.76}
"""Flows -> slowdown of δ: two of A in section 4.2, three and four from table 2 (N-1)."""

ETA = {
    ("mg", 4): {500: 0.82, 1000: 1.60, 2000: 3.82},
    ("ft", 4): {50: 0.17, 100: 0.18, 250: 0.182},
    ("ft", 8): {50: 0.086, 100: 0.09, 250: 0.094},
}
"""Section 4.3, (program, hosts): messages/s of each local flow -> η."""

SLOWDOWNS_16_KB = {
    "receiving": {"A": (14.0, 3.0), "B": (6.0, 3.0)},
    "one-to-all": {"A": (45.0, 6.0), "B": (30.0, 9.0)},
}
"""Sections 6.3 and 6.4: slowdown with one queue, with two. Of the sending side the text gives no number."""

LOCAL_ONE_TO_ALL = {"A": 7.0, "B": 12.0}
"""Section 6.4: slowdown of the local stream beside A and beside B, one queue."""
