"""Hosts as network namespaces around a switch; the link from the switch to each host has a rate and a buffer.

The link is a token bucket with a queue of bytes, so that packets wait there in one queue, as in a switch's port. Up to
200 Mbit/s it takes segments apart into packets (TBF); above that would cost more than this machine has, and they go
whole (HTB). What a host sends reaches the switch as fast as this machine can.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

BUFFER_S = 0.008
"""How long a full buffer of the switch takes to leave."""
PACKETS_UP_TO_MBIT = 200
_LEAST_BUFFER_BYTES = 100_000
_count = 0


def missing() -> str | None:
    """Why there can be no star here, None where there can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    return next((f"{tool} is not installed" for tool in ("ip", "tc", "nsenter") if shutil.which(tool) is None), None)


class Star:
    """Hosts 0 to `hosts` - 1, at 10.79.0.1 and following; made and removed with its block.

    Parameters
    ----------
    hosts : int
        How many, 2 to 200.
    rate_mbit : float, optional
        Rate of the links to them, Mbit/s; None: not limited.
    congestion : str, optional
        TCP's congestion control on the hosts, such as "cubic"; None: this machine's.
    """

    def __init__(self, hosts: int, rate_mbit: float | None = None, congestion: str | None = None) -> None:
        global _count  # noqa: PLW0603 (several in one process)
        _count += 1
        self._prefix = f"cws{os.getpid()}-{_count}"
        self.hosts = range(hosts)
        self._rate_mbit = rate_mbit
        self._congestion = congestion
        self.device = "eth0"

    def namespace(self, host: int) -> str:
        """Name of a host's namespace."""
        return f"{self._prefix}-{host}"

    def path(self, host: int) -> Path:
        """Where a host's namespace can be entered."""
        return Path("/run/netns") / self.namespace(host)

    def address(self, host: int) -> str:
        """Address of a host."""
        return f"10.79.0.{host + 1}"

    def on(self, host: int) -> list[str]:
        """Words before a command that runs it on a host."""
        return ["nsenter", f"--net={self.path(host)}"]

    def run(self, host: int, *command: str) -> str:
        """Run a command on a host; its output."""
        return _run([*self.on(host), *command])

    def remove(self, host: int) -> None:
        """Remove a host's namespace."""
        _run(["ip", "netns", "del", self.namespace(host)])

    def __enter__(self) -> Star:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def _make(self) -> None:
        switch = f"{self._prefix}-sw"
        _run(["ip", "netns", "add", switch])
        _run(["ip", "-n", switch, "link", "add", "br0", "up", "type", "bridge"])
        for host in self.hosts:
            name, port = self.namespace(host), f"p{host}"
            _run(["ip", "netns", "add", name])
            ends = ["ip", "link", "add", port, "netns", switch, "type", "veth", "peer", "name", "eth0", "netns", name]
            _run(ends)
            _run(["ip", "-n", switch, "link", "set", port, "master", "br0", "up"])
            _run(["ip", "-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0"])
            for device in ("lo", "eth0"):
                _run(["ip", "-n", name, "link", "set", device, "up"])
            if self._congestion is not None:
                self.run(host, "sh", "-c", f"echo {self._congestion} > /proc/sys/net/ipv4/tcp_congestion_control")
            if self._rate_mbit is not None:
                self._shape(switch, port, self._rate_mbit)

    @staticmethod
    def _shape(switch: str, port: str, rate_mbit: float) -> None:
        bytes_per_s = rate_mbit * 1e6 / 8
        limit, queue = max(int(bytes_per_s * BUFFER_S), _LEAST_BUFFER_BYTES), ["tc", "-n", switch]
        root = [*queue, "qdisc", "add", "dev", port, "root", "handle", "1:"]
        if rate_mbit <= PACKETS_UP_TO_MBIT:
            _run([*root, "tbf", "rate", f"{rate_mbit}mbit", "burst", "3100", "limit", str(limit)])
            return
        burst = str(int(bytes_per_s * 100e-6))
        _run([*root, "htb", "default", "1"])
        one = [*queue, "class", "add", "dev", port, "parent", "1:", "classid", "1:1", "htb", "rate", f"{rate_mbit}mbit"]
        _run([*one, "burst", burst, "cburst", burst, "quantum", "60000"])
        _run([*queue, "qdisc", "add", "dev", port, "parent", "1:1", "bfifo", "limit", str(limit)])

    def _remove(self) -> None:
        for name in [*map(self.namespace, self.hosts), f"{self._prefix}-sw"]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
