"""The message filter in the kernel: two classes on a network device, taken back however the process ends.

| question | module |
|---|---|
| which packets belong to a class? | `selector` |
| what is set? | `plan`, from numbers alone; `commands`, as tc and ip |
| how is it said to the kernel? | `messages`, `netlink`, `bpf` |
| what was there before, and how does it come back? | `snapshot`, `state`, `apply`, `watchdog` |
| which rate does the link give? | `rate` |
| what does each class get? | `check` |
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.filter import DEFAULT_DISCIPLINE, Discipline
from crosswind.filter.kernel import apply, plan, snapshot, state
from crosswind.filter.kernel import messages as m
from crosswind.filter.kernel.netlink import Kernel, KernelError, attributes
from crosswind.filter.kernel.plan import LOCAL, PARALLEL, Plan, SegmentSize
from crosswind.filter.kernel.selector import Selector, parse
from crosswind.filter.kernel.watchdog import Watchdog

_PATIENCE_S = 10.0
_TCA_STATS2, _STATS_BASIC, _STATS_QUEUE = 7, 1, 3


class KernelFilter:
    """Two classes on a network device, from `start` to `stop`, or as a block.

    Parameters
    ----------
    device : str
        The network device.
    parallel, local : sequence of str
        Which packets belong to which class: `8001`, `dscp:af41`, `mark:7`, `cgroup:/jobs`; what is not named is local.
    rate_mb_per_s, rate_in_mb_per_s : float, optional
        What leaves, what arrives is shaped to this, MB/s, 0.1 to 100000, a little below what the link gives.
    queue : str
        "drr" or "strict".
    threshold : int
        Bytes of class parallel to one of class local while both wait, at least 1.
    default_route : bool
        Whether a device may be changed that carries the default route.

    Raises
    ------
    DescriptionError
        When a value is out of its range, the device does not exist, has a filter already, has qdiscs that cannot be put
        back, or carries the default route.

    Examples
    --------
    >>> KernelFilter("nosuch0", ["8001"], rate_mb_per_s=12.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    crosswind.errors.DescriptionError: device 'nosuch0' does not exist in this network namespace
    hint: here are ...
    """

    def __init__(
        self,
        device: str,
        parallel: Sequence[str],
        local: Sequence[str] = (),
        *,
        rate_mb_per_s: float | None = None,
        rate_in_mb_per_s: float | None = None,
        queue: Discipline = DEFAULT_DISCIPLINE,
        threshold: int = 4,
        default_route: bool = False,
    ) -> None:
        selected = (parse(parallel, "--parallel"), parse(local, "--local"))
        with Kernel() as kernel:
            about, self._facts = apply.device_facts(kernel, device)
            if not default_route and apply.has_default_route(kernel, about.index):
                hint = "--yes allows it; a mistake cuts this host off until `crosswind filter --undo`"
                raise DescriptionError(f"{device} carries the default route", "default-route", hint)
        self.plan: Plan = plan.plan(
            about,
            *selected,
            rate_mb_per_s=rate_mb_per_s,
            rate_in_mb_per_s=rate_in_mb_per_s,
            queue=queue,
            threshold=threshold,
        )
        self._state: state.State | None = None
        self._watchdog: Watchdog | None = None

    def start(self) -> None:
        """Set it, after everything was looked up that is needed to take it back.

        Raises
        ------
        DescriptionError
            When the device has a filter already, or something that cannot be put back.
        CrosswindError
            When the kernel refuses a step; what was set is taken back.
        """
        try:
            with Kernel() as kernel:
                there = self._to_be_restored(kernel)
                self._watchdog = Watchdog(there.path)
                try:
                    there.write()
                except FileExistsError:
                    raise _on_already(self.plan.device.name, state.read(there.path)) from None
                self._state = there
                if self.plan.rate_mb_per_s is not None:
                    self._rehearse(kernel, there)
                    # From here on the root qdisc may have to be put back, not before: it can be.
                    self._state = replace(there, root=True)
                    self._state.write(again=True)
                for step in self.plan.steps:
                    apply.make(kernel, step)
        except BaseException as error:
            self.stop()
            if isinstance(error, KernelError):
                raise _refused(error, self.plan.device.name) from None
            raise

    def _to_be_restored(self, kernel: Kernel) -> state.State:
        made, device = self.plan, self.plan.device
        path = state.path_of(state.cookie_here(), device.index)
        earlier = state.read(path)
        root = snapshot.root_of(kernel, device.index)
        if earlier is not None and earlier.boot != state.boot():
            earlier.forget()
            earlier = None
        if earlier is not None or (root is not None and root.handle == apply.OWN):
            raise _on_already(device.name, earlier)
        if made.rate_in_mb_per_s is not None:
            if (arriving := snapshot.ingress_of(kernel, device.index)) is not None:
                hint = f"`tc filter show dev {device.name} ingress` shows whose it is"
                raise DescriptionError(f"{device.name} has a qdisc {arriving.kind} already", "device", hint)
            if apply.link(kernel, device.ifb) is not None:
                raise DescriptionError(f"a device {device.ifb} exists already", "device", f"ip link del {device.ifb}")
        set_limits: dict[str, int] = {step.limit: step.size for step in made.steps if isinstance(step, SegmentSize)}
        kinds = [kind for limit in set_limits for kind in (limit, limit.replace("_max", "_ipv4_max"))]
        return state.State(
            boot=state.boot(),
            namespace=state.namespace_here(),
            cookie=state.cookie_here(),
            device=device.name,
            index=device.index,
            owner=state.Process.here(),
            saved=snapshot.save(kernel, device.index),
            limits={kind: self._facts[kind] for kind in kinds if kind in self._facts},
            set_limits=set_limits,
            root=False,
            ifb=device.ifb if made.rate_in_mb_per_s is not None else "",
            rehearsal=f"cw{device.index}try",
        )

    def _rehearse(self, kernel: Kernel, there: state.State) -> None:
        if (why := snapshot.rehearse(kernel, there.saved, there.rehearsal)) is not None:
            hint = f"tc qdisc del dev {there.device} root, and set it again afterwards"
            message = f"{there.device} has qdisc {there.saved.told()}, which could not be put back: {why}"
            raise DescriptionError(message, "device", hint)

    def watch(self) -> None:
        """See that everything stands as it was set; start the watchdog again where it ended.

        Raises
        ------
        CrosswindError
            When the device or its qdisc is gone or is another's.
        """
        assert self._state is not None, "it has not been started"
        assert self._watchdog is not None
        if not self._watchdog.lives:
            self._watchdog = Watchdog(self._state.path)
        if not self._state.path.exists():
            raise CrosswindError(f"{self._state.device}: the filter was taken back by another process", "gone")
        with Kernel() as kernel:
            if apply.link_at(kernel, self._state.index) is None:
                raise CrosswindError(f"{self._state.device} does not exist any more", "gone")
            devices = [self._state.index] if self._state.root else []
            if self._state.ifb:
                devices.append((apply.link(kernel, self._state.ifb) or (0, {}))[0])
            for index in devices:
                root = snapshot.root_of(kernel, index)
                if root is None or root.handle != apply.OWN:
                    found = f"{root.kind} {root.handle >> 16:x}:" if root else "none"
                    raise CrosswindError(f"{self._state.device}: the root qdisc is another's: {found}", "gone")

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return what each class has sent and received through the device.

        Returns
        -------
        dict
            `out` and `in`, where shaped: of `parallel` and `local` each `bytes`, `packets`, `waiting_bytes`, `dropped`.
        """
        with Kernel() as kernel:
            named = {"out": self.plan.device.name if self.plan.rate_mb_per_s is not None else None}
            named["in"] = self.plan.device.ifb if self.plan.rate_in_mb_per_s is not None else None
            return {side: _counted(kernel, device) for side, device in named.items() if device is not None}

    def stop(self) -> str:
        """Take everything back; what was done, in words.

        Raises
        ------
        CrosswindError
            When the device is not what it was before; `crosswind filter --undo` tries again.
        """
        done = ""
        try:
            if self._state is not None:
                done = apply.undo(self._state)
                self._state = None
        finally:
            if self._watchdog is not None:
                self._watchdog.close()
                self._watchdog = None
        return done

    def __enter__(self) -> KernelFilter:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def undo_all(device: str | None = None) -> list[str]:
    """Take back every kernel filter on this host, or that of one device; what was done, in words.

    A process that still holds one is asked to end first.

    Raises
    ------
    CrosswindError
        When a device is not what it was before.
    """
    done = []
    for there in state.all_there():
        if device is not None and device != there.device:
            continue
        if there.owner.lives() and there.owner.pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(there.owner.pid, signal.SIGTERM)
            end = time.monotonic() + _PATIENCE_S
            while there.path.exists() and there.owner.lives() and time.monotonic() < end:
                time.sleep(0.02)
        done.append(apply.undo(there))
    return done


def _on_already(device: str, earlier: state.State | None) -> DescriptionError:
    if earlier is None:
        hint = f"tc qdisc del dev {device} root"
        return DescriptionError(f"{device} has a filter's qdisc without a state file", "device", hint)
    holder = f"process {earlier.owner.pid} holds it" if earlier.owner.lives() else "the process that set it has ended"
    return DescriptionError(
        f"{device} has a filter already: {holder}", "device", "`crosswind filter --undo` takes it back"
    )


def _refused(error: KernelError, device: str) -> CrosswindError:
    if error.errno == errno.EPERM:
        hint = "run it as root, or with CAP_NET_ADMIN; without, `crosswind filter --peer` forwards in user space"
        return DescriptionError("the kernel refuses: not permitted", "permission", hint)
    if error.errno == errno.ENODEV:
        return CrosswindError(f"{device} has gone; nothing is left", "gone")
    hint = "modprobe sch_htb cls_u32 act_mirred ifb; `crosswind filter --dry-run` prints the steps"
    return CrosswindError(f"{device}: the kernel refuses a step: {error.strerror}; nothing is left", "kernel", hint)


def _counted(kernel: Kernel, device: str) -> dict[str, dict[str, int]]:
    found = {}
    index = (apply.link(kernel, device) or (0, {}))[0]
    for body in kernel.dump(m.GET_CLASS, m.traffic(index, 0, 0)):
        one = m.Traffic.read(body)
        name = {apply.OWN | PARALLEL: "parallel", apply.OWN | LOCAL: "local"}.get(one.handle)
        if name is None:
            continue
        counted = attributes(attributes(one.content).get(_TCA_STATS2, b""))
        sent, packets = struct.unpack_from("=QI", counted[_STATS_BASIC])
        _, waiting, dropped = struct.unpack_from("=III", counted[_STATS_QUEUE])
        found[name] = {"bytes": sent, "packets": packets, "waiting_bytes": waiting, "dropped": dropped}
    return found


__all__ = ["KernelFilter", "Selector", "undo_all"]
