"""Policies of the user's own: `policy.order = "python:FILE:CLASS"` becomes a class."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from crosswind.errors import DescriptionError

PREFIX = "python:"


def own_policies(description: Mapping[str, Any]) -> list[str]:
    """Return the policies of the user's own that an experiment names, each once.

    Examples
    --------
    >>> own_policies({"policy": {"order": "arrival"}, "sweep": {"policy.order": ["planned", "python:mine.py:Mine"]}})
    ['python:mine.py:Mine']
    """
    policy = description.get("policy", {})
    orders = description.get("sweep", {}).get("policy.order", [policy.get("order")])
    return list(dict.fromkeys(order for order in orders if isinstance(order, str) and order.startswith(PREFIX)))


def file_of(order: str) -> str:
    """Return the file of a policy of the user's own."""
    return order.removeprefix(PREFIX).rpartition(":")[0]


@dataclass(frozen=True)
class OwnPolicy:
    """A class in a file, which is loaded where it is needed: here, or by a worker of a cluster.

    Attributes
    ----------
    order : str
        `python:FILE:CLASS`.
    path : Path
        Where the file is, or was.
    content : bytes
        Of the file.
    """

    order: str
    path: Path
    content: bytes

    def load(self) -> type:
        """Return the class.

        Raises
        ------
        DescriptionError
            When the file cannot be run, or has no such class, or the class is no `crosswind.policy.Policy`. The user's
            exception is its cause.
        """
        from crosswind.policy import Policy

        module = self._module()
        name = self.order.rpartition(":")[2]
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, Policy) and found is not Policy:
            return found
        there = [
            known
            for known, one in vars(module).items()
            if isinstance(one, type) and issubclass(one, Policy) and one is not Policy
        ]
        what = f"has no {name}" if found is None else f"has {name}, which does not derive from crosswind.policy.Policy"
        hint = f"it has {', '.join(there)}" if there else f"class {name}(crosswind.policy.Policy): ..."
        raise DescriptionError(f"policy.order is {self.order!r}; {self.path} {what}", "policy", hint)

    def _module(self) -> ModuleType:
        """Return the file as a module; the same content is run once."""
        digest = hashlib.sha256(self.content).hexdigest()
        name = f"crosswind_policy_{digest[:16]}"
        if name in sys.modules:
            return sys.modules[name]
        module = ModuleType(name)
        module.__file__ = str(self.path)
        # A traceback shows the lines that ran, also where the file has gone.
        lines = self.content.decode("utf-8", "replace").splitlines(keepends=True)
        linecache.cache[str(self.path)] = (len(self.content), None, lines, str(self.path))
        sys.modules[name] = module  # dataclasses look their module up
        sys.path.insert(0, str(self.path.parent))
        try:
            exec(compile(self.content, str(self.path), "exec"), vars(module))
        except Exception as error:
            del sys.modules[name]
            message = f"policy.order is {self.order!r}; {self.path} cannot be run: {type(error).__name__}: {error}"
            raise DescriptionError(message, "policy", None) from error
        finally:
            sys.path.remove(str(self.path.parent))
        return module
