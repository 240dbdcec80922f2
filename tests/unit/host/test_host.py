import gzip
import ipaddress
import json
import math
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import ONE_GROUP_V2, plant, process, stat

from crosswind.errors import DescriptionError
from crosswind.host import cgroup, network, processor
from crosswind.host.activity import Snapshot
from crosswind.host.description import describe, machine
from crosswind.host.interrupts import Counts
from crosswind.host.route import interface_to, is_same_machine, split_address
from crosswind.host.tree import list_cpus, parse_cpus
from crosswind.run.this_machine import here

CGROUP = "sys/fs/cgroup"


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_survives_being_written_and_read(cpus):
    assert parse_cpus(list_cpus(cpus)) == sorted(cpus)


def test_on_an_empty_tree_everything_is_unknown_and_nothing_raises(tmp_path):
    found = describe(compute_cpus=[0], interfaces=["eth0"], root=tmp_path)
    assert (found["name"], found["cpu"], found["kernel"], found["cpus"]) == ("unknown", "unknown", "unknown", 0)
    described = {name: value for name, value in found["settings"].items() if not name.startswith("version_")}
    offloads = described.pop("eth0.offloads")
    assert set(described.values()) == {"unknown"}
    assert {state.partition("=")[2] for state in offloads.split()} == {"unknown"}


def test_this_machine_is_described_by_strings_only_and_without_failing():
    found = describe()
    assert found["cpus"] >= 1
    assert found["kernel"][0].isdigit()
    assert all(isinstance(v, str) and v for v in found["settings"].values())
    assert found["settings"]["lo.kind"] == "loopback"
    json.dumps(found)


def test_a_quota_of_version_2_is_found_in_an_ancestor(tmp_path):
    files = {f"{CGROUP}/user.slice/cpu.max": "150000 100000\n", f"{CGROUP}/user.slice/job/cpu.max": "max 100000\n"}
    quota = cgroup.cpu_quota(plant(tmp_path, ONE_GROUP_V2 | files))
    assert quota.cpus == 1.5
    assert quota.group == tmp_path / CGROUP / "user.slice"
    assert processor.settings(root=tmp_path)["cpu_quota"] == "1.5 CPUs"


def test_the_tightest_quota_counts(tmp_path):
    files = {f"{CGROUP}/user.slice/cpu.max": "200000 100000", f"{CGROUP}/user.slice/job/cpu.max": "50000 100000"}
    assert cgroup.cpu_quota(plant(tmp_path, ONE_GROUP_V2 | files)).cpus == 0.5


@pytest.mark.parametrize(("quota", "cpus"), [("-1", math.inf), ("250000", 2.5)])
def test_a_quota_of_version_1_is_read(tmp_path, quota, cpus):
    at = f"{CGROUP}/cpu,cpuacct/box"
    tree = {
        "proc/self/cgroup": "4:cpu,cpuacct:/box\n0::/\n",
        "proc/self/mountinfo": f"33 31 0:30 / /{CGROUP}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
        f"{at}/cpu.cfs_quota_us": quota,
        f"{at}/cpu.cfs_period_us": "100000",
        f"{at}/cpu.stat": "nr_periods 9\nnr_throttled 7\n",
    }
    assert cgroup.cpu_quota(plant(tmp_path, tree)).cpus == cpus
    assert cgroup.throttled(tmp_path) == 7


def test_in_a_container_the_groups_path_counts_from_what_is_mounted(tmp_path):
    tree = {
        "proc/self/cgroup": "0::/docker/abc\n",
        "proc/self/mountinfo": f"31 23 0:28 /docker/abc /{CGROUP} ro - cgroup2 cgroup rw\n",
        f"{CGROUP}/cpu.max": "100000 100000",
    }
    assert cgroup.cpu_quota(plant(tmp_path, tree)).cpus == 1


def test_a_root_group_without_a_quota_file_has_no_quota(tmp_path):
    tree = {
        "proc/self/cgroup": "0::/\n",
        "proc/self/mountinfo": ONE_GROUP_V2["proc/self/mountinfo"],
        f"{CGROUP}/cgroup.procs": "1\n",
    }
    assert math.isinf(cgroup.cpu_quota(plant(tmp_path, tree)).cpus)


def test_where_no_group_is_mounted_the_quota_is_unknown(tmp_path):
    tree = {"proc/self/cgroup": "0::/job\n", "proc/self/mountinfo": "22 27 0:21 / /proc rw - proc proc rw\n"}
    assert cgroup.cpu_quota(plant(tmp_path, tree)) is None
    assert processor.settings(root=tmp_path)["cpu_quota"] == "unknown"


def test_what_was_set_since_the_boot_beats_how_the_kernel_was_built(tmp_path):
    release = {"proc/sys/kernel/osrelease": "6.1", "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC"}
    plant(tmp_path, release | {"boot/config-6.1": "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_HZ=1000\nCONFIG_HZ_1000=y\n"})
    assert processor.preemption(tmp_path) == "voluntary (dynamic)"
    assert processor.settings(root=tmp_path)["hz"] == "1000"
    plant(tmp_path, {"proc/cmdline": "root=/dev/vda preempt=full\n"})
    assert processor.preemption(tmp_path) == "full"
    plant(tmp_path, {"sys/kernel/debug/sched/preempt": "none voluntary (lazy)\n"})
    assert processor.preemption(tmp_path) == "lazy"


def test_the_kernels_configuration_is_read_from_proc(tmp_path):
    plant(tmp_path, {"proc/x": ""})
    config = b"CONFIG_TICK_CPU_ACCOUNTING=y\n# CONFIG_IRQ_TIME_ACCOUNTING is not set\nCONFIG_PREEMPT_NONE=y\n"
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(config))
    assert processor.accounting(tmp_path) == "tick, interrupts not timed"
    assert processor.preemption(tmp_path) == "none"


def test_a_guest_is_told_that_it_may_not_see_its_topology(tmp_path):
    tree = {
        "proc/cpuinfo": "processor : 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor tsc\n",
        "sys/devices/system/cpu/online": "0-3",
        **{f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": "0-1" if n < 2 else "2-3" for n in range(4)},
    }
    plant(tmp_path, tree)
    assert processor.smt(range(4), tmp_path) == "2 threads per core (a guest may not see the true topology)"
    assert processor.siblings(3, tmp_path) == [2, 3]
    assert processor.virtualisation(tmp_path) == "yes"
    assert processor.model(tmp_path) == "Some CPU"


def test_caches_are_named_with_the_cpus_that_share_them(tmp_path):
    files = {}
    for cpu in range(4):
        for index, (level, size, sharers) in enumerate(
            [(1, "32K", f"{cpu}"), (3, "32768K", "0-1" if cpu < 2 else "2-3")]
        ):
            at = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            files |= {
                f"{at}/level": str(level),
                f"{at}/size": size,
                f"{at}/shared_cpu_list": sharers,
                f"{at}/type": "Unified",
            }
    plant(tmp_path, files)
    assert processor.cache(3, [0, 2], tmp_path) == "32768K shared by 0-1 | 2-3"
    assert processor.cache(2, [0], tmp_path) == "unknown"


def test_steal_is_that_of_the_cpus_asked_for(tmp_path):
    plant(tmp_path, {"proc/stat": stat((50, 0, 0, 50, 0, 0, 0, 0), (0, 0, 0, 75, 0, 0, 0, 25))})
    assert processor.steal_share([1], tmp_path) == 0.25
    assert processor.steal_share([], tmp_path) == 0.125


def test_interfaces_are_told_apart(tmp_path):
    net = "sys/class/net"
    tree = {f"{net}/{n}/type": "1" for n in ("v0", "br0", "eth0", "eth0.5", "dummy0", "t0")} | {
        f"{net}/lo/type": "772",
        f"{net}/v0/iflink": "7",
        f"{net}/v0/ifindex": "6",
        f"{net}/br0/bridge/stp_state": "0",
        f"{net}/eth0/device/vendor": "0x1af4",
        f"{net}/eth0.5/uevent": "DEVTYPE=vlan\nINTERFACE=eth0.5\n",
        f"{net}/dummy0/iflink": "3",
        f"{net}/dummy0/ifindex": "3",
        f"{net}/t0/tun_flags": "0x1",
    }
    plant(tmp_path, tree)
    kinds = {
        name: network.kind(name, tmp_path) for name in ("lo", "v0", "br0", "eth0", "eth0.5", "dummy0", "t0", "no0")
    }
    assert kinds == {
        "lo": "loopback",
        "v0": "veth",
        "br0": "bridge",
        "eth0": "device",
        "eth0.5": "vlan",
        "dummy0": "virtual",
        "t0": "tun",
        "no0": "unknown",
    }


def test_the_interrupts_of_a_virtio_card_are_those_of_the_pci_device_above_it(tmp_path):
    pci = "sys/devices/pci0000:00/0000:00:03.0"
    plant(
        tmp_path,
        {f"{pci}/msi_irqs/{n}": "msix" for n in (37, 38)}
        | {f"{pci}/virtio2/vendor": "", "sys/class/net/eth0/type": "1"}
        | {"proc/irq/37/smp_affinity_list": "0-1", "proc/irq/38/effective_affinity_list": "1"}
        | {"proc/irq/38/smp_affinity_list": "0-1"},
    )
    (tmp_path / "sys/class/net/eth0/device").symlink_to(tmp_path / pci / "virtio2")
    assert network.irq_affinity("eth0", tmp_path) == "37: 0-1, 38: 1"


def test_an_interfaces_interrupts_are_not_those_of_one_whose_name_begins_alike(tmp_path):
    listed = "      CPU0\n 5:  1  IO-APIC eth1-rx-0\n 6:  1  IO-APIC eth10-rx-0\n 7: 0 IO-APIC eth1\nNMI: 0 eth1\n"
    plant(tmp_path, {"proc/interrupts": listed, "sys/class/net/eth1/device/vendor": ""})
    assert network.interrupts("eth1", tmp_path) == [5, 7]


def test_steering_names_the_queues_that_are_steered(tmp_path):
    queues = "sys/class/net/eth0/queues"
    plant(tmp_path, {f"{queues}/rx-0/rps_cpus": "00,00000000", f"{queues}/tx-0/xps_cpus": "3"})
    assert network.steering("eth0", "rps", tmp_path) == "off"
    assert network.steering("eth0", "xps", tmp_path) == "tx-0: 3"


def test_offloads_that_a_driver_does_not_tell_are_unknown():
    def ask(interface, command, words):
        if command == 0x2B:
            raise OSError
        return [0 if command == 0x1E else 1]

    states = network.offloads("eth0", ask)
    assert (states["tso"], states["gso"], states["gro"]) == ("off", "on", "unknown")


def test_the_kernel_tells_the_offloads_of_loopback():
    assert set(network.offloads("lo").values()) <= {"on", "off"}
    assert network.offloads("no-such-if")["tso"] == "unknown"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("node7:7117", "node7", 7117), ("node7", "node7", None), ("[::1]:5", "::1", 5), ("fe80::1", "fe80::1", None)],
)
def test_an_address_is_split(text, host, port):
    assert split_address(text) == (host, port)


@pytest.mark.parametrize("text", ["", ":7117", "node7:x", "node7:0", "node7:70000", "[::1]:http"])
def test_an_address_that_is_none_is_refused(text):
    with pytest.raises(DescriptionError, match=r"HOST:PORT"):
        split_address(text)


def test_loopback_is_this_machine_and_is_reached_by_lo():
    assert interface_to("127.0.0.1:7117") == "lo"
    assert is_same_machine("127.0.0.3")
    assert is_same_machine("localhost:7117")


def test_an_address_for_documentation_is_not_this_machine():
    # 203.0.113.0/24 is reserved (RFC 5737); no packet is sent.
    assert ipaddress.ip_address("203.0.113.1").is_global is False
    assert not is_same_machine("203.0.113.1:7117")


def test_an_unknown_host_is_an_error_of_the_caller():
    with pytest.raises(DescriptionError, match="resolved"):
        interface_to("no-such-host.invalid")


def test_two_processes_of_one_kernel_have_the_same_machine():
    code = "from crosswind.host.description import machine; print(machine())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert other == machine() != "unknown"


def test_activity_is_the_difference_of_two_snapshots(tmp_path):
    at_first = process(7, "a (b) c", 100, 50, start=5, cpu=1) | process(9, "gone", 10, 0, start=1)
    plant(tmp_path, at_first | {"proc/stat": stat((0, 0, 0, 0, 0, 0, 0, 0), (10, 0, 0, 10, 0, 0, 0, 0))})
    before = Snapshot.take(tmp_path)
    shutil.rmtree(tmp_path / "proc/9")
    later = process(7, "a (b) c", 130, 70, start=5, cpu=1)
    plant(tmp_path, later | {"proc/stat": stat((20, 0, 10, 50, 0, 0, 10, 10), (10, 0, 0, 110, 0, 0, 0, 0))})
    activity = Snapshot.take(tmp_path).since(before)
    assert activity.busy(0) == pytest.approx(0.4)
    assert activity.shares[0]["steal"] == pytest.approx(0.1)
    assert activity.busy(1) == 0
    assert activity.mean("steal") == pytest.approx(0.05)
    [busy] = activity.processes
    assert (busy.pid, busy.name, busy.cpu) == (7, "a (b) c", 1)
    assert busy.cpu_s > 0


def test_a_pid_used_again_is_another_process(tmp_path):
    plant(tmp_path, process(7, "old", 1000, 0, start=5))
    before = Snapshot.take(tmp_path)
    plant(tmp_path, process(7, "new", 30, 0, start=99))
    [busy] = Snapshot.take(tmp_path).since(before).processes
    old = before.processes[7, 5]
    assert busy.name == "new"
    assert 0 < busy.cpu_s < old.cpu_s


INTERRUPTS = """           CPU0       CPU2
 24:          {}          0  IO-APIC   5-edge      ACPI:Ged
 31:          0          {}  PCI-MSIX-0000:00:01.0   3-edge      virtio0-stats
LOC:        100        200   Local timer interrupts
ERR:          0
"""


def test_interrupts_and_steal_are_counted_by_cpu_and_name_and_only_those_that_came(tmp_path):
    steal = "cpu0 0 0 0 0 0 0 0 {} 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0"
    plant(tmp_path, {"proc/interrupts": INTERRUPTS.format(1, 7), "proc/stat": "cpu 0\n" + steal.format(0)})
    before = Counts.take(tmp_path)
    plant(tmp_path, {"proc/interrupts": INTERRUPTS.format(1, 9), "proc/stat": "cpu 0\n" + steal.format(200)})
    counted = Counts.take(tmp_path).since(before, [0, 2])
    assert counted["interrupts"] == {"0": {}, "2": {"virtio0-stats": 2}}
    assert counted["steal_s"]["0"] > 0
    assert counted["steal_s"]["2"] == 0
    assert Counts.take(tmp_path / "nothing").since(before, [0]) == {"interrupts": {"0": {}}, "steal_s": {}}


def test_counters_that_go_back_add_nothing(tmp_path):
    """Idle and iowait do when a CPU was off in between; shares stay shares."""
    before = Snapshot.take(plant(tmp_path / "a", {"proc/stat": "cpu0 100 0 100 1000 50 0 0 0 0 0\n"}))
    after = Snapshot.take(plant(tmp_path / "b", {"proc/stat": "cpu0 110 0 105 900 50 0 0 0 0 0\ncpu1 9 9 9 9\n"}))
    share = after.since(before)
    assert (share.shares[0]["user"], share.shares[0]["idle"]) == (pytest.approx(2 / 3), 0.0)
    assert sum(share.shares[0].values()) == pytest.approx(1.0)
    assert share.busy(0) == 1.0
    assert 1 not in share.shares  # it was not there before: how long it worked is not known
    assert Counts({}, {0: 1.0}).since(Counts({}, {0: 5.0}), [0])["steal_s"] == {"0": 0.0}


ODD = [
    "", "\n\n", "(null)\n", "0-3:1/2\n", "a-b\n", "3-\n", "cpu\n\ncpu0\ncpux 1 2\ncpu0 1 -5 x\n", "1 (a b) S 1\n",
    "Cpus_allowed_list:\t(null)\n", "nr_throttled\nnr_throttled x\n", "CPU0 CPUx\n 1: 2\n", "99999999999999999999\n",
    "31 23 0:28 / /sys - cgroup2\n - - -\n", "0:::\n::\n", "\0\0", "00 00 zz zz zz zz zz zz zz lo\n", "flags\n:\n",
]  # fmt: skip
FILES = [
    "proc/stat", "proc/self/status", "proc/self/stat", "proc/7/stat", "proc/interrupts", "proc/cpuinfo", "proc/cmdline",
    "proc/self/cgroup", "proc/self/mountinfo", "proc/net/route", "proc/net/ipv6_route", "proc/config.gz",
    "proc/loadavg", "proc/sys/kernel/osrelease", "sys/devices/system/cpu/online", "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "sys/devices/system/cpu/cpu0/cache/index0/level",
    "sys/kernel/debug/sched/preempt", "sys/class/net/eth0/type", "sys/class/net/eth0/uevent",
    "sys/class/net/lo/ifindex", "sys/class/net/eth0/device/msi_irqs/x", "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/cpu.stat", "proc/device-tree/model",
]  # fmt: skip


@pytest.mark.parametrize("content", ODD, ids=range(len(ODD)))
def test_whatever_the_kernels_files_hold_a_host_is_described(tmp_path, content):
    root = plant(tmp_path, dict.fromkeys(FILES, content))
    processor.kernel_config.cache_clear()
    assert all(isinstance(value, str) for value in describe([0], ["eth0", "lo"], root=root)["settings"].values())
    Snapshot.take(root).since(Snapshot.take(root))
    Counts.take(root)
    cgroup.throttled(root)
    cgroup.unified_mount(root)
    network.default_interfaces(root)
    assert processor.model(root)
    assert processor.virtualisation(root)


def test_a_configuration_that_is_cut_off_is_none(tmp_path):
    whole = gzip.compress(b"CONFIG_HZ=250\n" * 99)
    (tmp_path / "proc").mkdir()
    for end in range(0, len(whole), 7):
        (tmp_path / "proc/config.gz").write_bytes(whole[:end])
        processor.kernel_config.cache_clear()
        assert processor.kernel_config(tmp_path) == {}
    processor.kernel_config.cache_clear()


def test_a_list_of_every_second_cpu_is_read():
    assert parse_cpus("0-7:1/2,9") == [0, 2, 4, 6, 9]
    assert parse_cpus("0-7:3/4") == [0, 1, 2, 4, 5, 6]
    assert parse_cpus("(null)") == parse_cpus("3-1") == parse_cpus("x,-") == []


REJECT = "0" * 32 + " 00 " + "0" * 32 + " 00 " + "0" * 32 + " ffffffff 00000001 00000000 00200200       lo\n"
BY_SIX = "0" * 32 + " 00 " + "0" * 32 + " 00 20010db8" + "0" * 23 + "1 00000400 00000001 00000000 00000003     ens5\n"


def test_the_interface_of_a_default_route_of_ipv6_is_found(tmp_path):
    present = {f"sys/class/net/{name}/type": "1\n" for name in ("lo", "ens5", "ens6")}
    root = plant(tmp_path, present | {"proc/net/route": "Iface\n", "proc/net/ipv6_route": REJECT + BY_SIX})
    assert network.default_interfaces(root) == ["lo", "ens5"]
    described = network.settings(root=root)
    assert "ens5.kind" in described
    assert "ens6.kind" not in described


def test_below_a_bond_a_vlan_and_a_bridge_the_cards_are_described(tmp_path):
    net = "sys/class/net"
    root = plant(
        tmp_path,
        {
            "proc/net/route": "Iface\nbr0.7 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\n",
            f"{net}/lo/type": "772\n",
            f"{net}/br0.7/lower_br0/x": "",
            f"{net}/br0/bridge/x": "",
            f"{net}/br0/lower_bond0/x": "",
            f"{net}/br0/lower_vnet0/x": "",
            f"{net}/vnet0/tun_flags": "",
            f"{net}/bond0/bonding/mode": "802.3ad 4\n",
            f"{net}/bond0/lower_ens1f0/x": "",
            f"{net}/bond0/lower_ens1f1/x": "",
            f"{net}/ens1f0/device/msi_irqs/64": "msix\n",
            f"{net}/ens1f1/device/msi_irqs/65": "msix\n",
            "proc/irq/64/effective_affinity_list": "0\n",
            "proc/irq/65/effective_affinity_list": "1\n",
        },
    )
    assert network.default_interfaces(root) == ["lo", "br0.7", "ens1f0", "ens1f1"]
    assert network.irq_affinity("br0.7", root) == "64: 0, 65: 1"
    asked = network.settings(["bond0"], root)  # the way to a peer, say
    assert [asked[f"{name}.irq_affinity"] for name in ("bond0", "ens1f0", "ens1f1")] == [
        "64: 0, 65: 1",
        "64: 0",
        "65: 1",
    ]


def test_interfaces_that_name_each_other_as_lower_end(tmp_path):
    net = "sys/class/net"
    root = plant(tmp_path, {f"{net}/a/lower_b/x": "", f"{net}/b/lower_a/x": "", f"{net}/b/lower_gone/x": ""})
    assert network.cards_below("a", root) == []


def test_a_quota_below_a_mount_point_with_a_blank_is_found(tmp_path):
    files = {
        "proc/self/cgroup": "0::/job\n",
        "proc/self/mountinfo": "31 23 0:28 / /mnt/my\\040groups\\134x rw - cgroup2 cgroup2 rw\n",
        "mnt/my groups\\x/job/cpu.max": "50000 100000\n",
    }
    assert cgroup.cpu_quota(plant(tmp_path, files)).cpus == 0.5


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (["/run/cilium/cgroupv2", "/sys/fs/cgroup"], "sys/fs/cgroup"),
        (["/sys/fs/cgroup", "/run/cilium/cgroupv2"], "sys/fs/cgroup"),
        (["/run/other", "/sys/fs/cgroup/unified"], "sys/fs/cgroup/unified"),
        (["/run/other"], "run/other"),
    ],
)
def test_of_two_mounts_of_control_groups_the_usual_one_counts(tmp_path, listed, found):
    lines = [f"{n} 23 0:28 / {at} rw - cgroup2 none rw\n" for n, at in enumerate(listed)]
    assert cgroup.unified_mount(plant(tmp_path, {"proc/self/mountinfo": "".join(lines)})) == tmp_path / found


@pytest.mark.parametrize(("quota", "agents"), [("50000", 1), ("100000", 1), ("150000", 2), ("max", 4), ("9900000", 4)])
def test_a_quota_of_cpus_limits_how_many_are_kept_busy(tmp_path, monkeypatch, quota, agents):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    root = plant(tmp_path, ONE_GROUP_V2 | {f"{CGROUP}/user.slice/job/cpu.max": f"{quota} 100000\n"})
    assert cgroup.usable_cpus(root) == agents
    monkeypatch.setitem(here.__globals__, "usable_cpus", lambda: cgroup.usable_cpus(root))
    assert len(here().nodes) == 1 + agents


ARM = "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\nCPU part : 0xd0c\n"
DMI = "sys/class/dmi/id"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({f"{DMI}/sys_vendor": "QEMU\n", f"{DMI}/product_name": "KVM Virtual Machine\n"}, "kvm"),
        ({f"{DMI}/sys_vendor": "Amazon EC2\n", f"{DMI}/product_name": "c7g.large\n"}, "kvm"),
        ({f"{DMI}/sys_vendor": "Amazon EC2\n", f"{DMI}/product_name": "c7g.metal\n"}, "none"),
        (
            {f"{DMI}/sys_vendor": "Apple Inc.\n", f"{DMI}/product_name": "Apple Virtualization Generic Platform\n"},
            "apple",
        ),
        ({f"{DMI}/sys_vendor": "Ampere\n", f"{DMI}/product_name": "Mt. Jade\n"}, "unknown"),
        ({"proc/device-tree/compatible": "linux,dummy-virt\0"}, "kvm"),
        ({"proc/device-tree/hypervisor/compatible": "xen,xen-4.17\0xen,xen\0"}, "xen"),
        ({"proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0"}, "unknown"),
    ],
)
def test_a_virtual_machine_on_arm_is_known_by_its_firmware(tmp_path, files, found):
    root = plant(tmp_path, {"proc/cpuinfo": ARM} | files)
    assert processor.virtualisation(root) == found
    assert processor.model(root) == "ARM implementer 0x41 part 0xd0c"


def test_a_processor_without_any_name_has_that_of_its_board(tmp_path):
    root = plant(tmp_path, {"proc/cpuinfo": "processor : 0\n", "proc/device-tree/model": "StarFive VisionFive V2\0"})
    assert processor.model(root) == "StarFive VisionFive V2"
