"""By which time two commands are compared."""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["wall", "cpu"]
BYS: tuple[By, ...] = get_args(By)
