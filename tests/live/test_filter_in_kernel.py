"""The filter in the kernel, in network namespaces: set as the printed commands set it, and gone however it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crosswind
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.filter.kernel import KernelFilter, messages, netlink, state, undo_all
from crosswind.filter.kernel.check import Path as CheckedPath
from crosswind.filter.kernel.far_end import dial
from crosswind.filter.kernel.netlink import Kernel, KernelError, in_namespace

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from filter_ends import star  # noqa: E402

COMMAND = [sys.executable, "-m", "crosswind.cli", "filter"]
TOKEN = "a token for namespaces only"
BEFORE = {
    "the kernel's choice": "",
    "a queue of packets": "tc qdisc add dev eth0 root handle 8: pfifo limit 123",
    "a token bucket": "tc qdisc add dev eth0 root handle 8: tbf rate 80mbit burst 20k limit 300k",
    "classes with filters": """
        tc qdisc add dev eth0 root handle 8: htb default 30 r2q 20
        tc class add dev eth0 parent 8: classid 8:1 htb rate 200mbit ceil 300mbit burst 20k
        tc class add dev eth0 parent 8:1 classid 8:10 htb rate 100mbit ceil 200mbit prio 1 quantum 9000
        tc class add dev eth0 parent 8:1 classid 8:30 htb rate 50mbit
        tc qdisc add dev eth0 parent 8:10 handle 9: bfifo limit 70000
        tc filter add dev eth0 parent 8: protocol ip prio 3 u32 match ip dport 80 0xffff flowid 8:10
        tc filter add dev eth0 parent 8: protocol ip prio 3 u32 match ip sport 81 0xffff flowid 8:30
        tc filter add dev eth0 parent 8: protocol ipv6 prio 4 u32 match ip6 dport 80 0xffff flowid 8:10
        tc filter add dev eth0 parent 8: protocol all prio 5 bpf bytecode '1,6 0 0 4294967295,' flowid 8:10""",
}


@pytest.fixture
def hosts():
    if (why := star.missing()) is not None:
        pytest.skip(why)
    with star.Star(2) as found:
        yield found


@pytest.fixture
def unwatched(monkeypatch):
    """Without a process beside: what is tested is the way back itself."""

    class Watchdog:
        lives = True

        def __init__(self, path):
            pass

        def close(self):
            pass

    monkeypatch.setattr("crosswind.filter.kernel.Watchdog", Watchdog)


def shown(hosts, device="eth0"):
    """Everything that tc and ip show of a device, but for what they count, and the carrier: a new pair gets it late."""
    words = [f"tc -d qdisc show dev {device}", f"tc -d class show dev {device}", f"tc filter show dev {device}"]
    words += [f"tc filter show dev {device} ingress", "ip -d link", "ip link show type ifb"]
    text = hosts.run(0, "sh", "-c", "; ".join(words))
    return re.sub(r"refcnt \d+ ?|state \w+|NO-CARRIER,|,LOWER_UP|direct_packets_stat \d+| id \d+", "", text)


def filter_on(hosts, *parallel, **options):
    given = {"rate_mb_per_s": 12.25, **options}
    return in_namespace(hosts.path(0), lambda: KernelFilter("eth0", parallel or ["dscp:34", "8001"], **given))


def here(hosts, call):
    return in_namespace(hosts.path(0), call)


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def states_of(hosts):
    cookie = here(hosts, state.cookie_here)
    return sorted(state.DIRECTORY.glob(f"*{cookie}-*"))


def test_what_is_set_is_what_the_commands_set(hosts, unwatched):
    both = {"rate_mb_per_s": 122.5, "rate_in_mb_per_s": 50.0}
    words = [
        "--in-kernel",
        "eth0",
        "--parallel",
        "8001,dscp:af41",
        "--local",
        "22",
        "--rate",
        "122.5",
        "--rate-in",
        "50",
    ]
    printed = subprocess.run(
        [*hosts.on(0), *COMMAND, *words, "--dry-run", "--json"], capture_output=True, text=True, check=True
    )
    told = json.loads(printed.stdout)
    before = shown(hosts)
    hosts.run(0, "sh", "-ec", "\n".join(told["commands"]))
    by_commands = shown(hosts), shown(hosts, "cw2ifb" if "cw2ifb" in shown(hosts) else told["undo"][1].split()[-1])
    hosts.run(0, "sh", "-ec", "\n".join(told["undo"]))
    assert shown(hosts) == before
    filter_here = filter_on(hosts, "8001", "dscp:af41", local=["22"], **both)
    here(hosts, filter_here.start)
    try:
        by_netlink = shown(hosts), shown(hosts, filter_here.plan.device.ifb)
    finally:
        here(hosts, filter_here.stop)
    without_ticks = [
        re.sub(r"c?burst \d+b/1|\d+: " + filter_here.plan.device.ifb + r".*\n.*", "", "".join(one))
        for one in (by_commands, by_netlink)
    ]
    assert without_ticks[0] == without_ticks[1]
    assert shown(hosts) == before


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_a_device_is_afterwards_what_it_was_before(hosts, unwatched, before):
    hosts.run(0, "sh", "-ec", before)
    there = shown(hosts)
    filter_here = filter_on(hosts, rate_in_mb_per_s=50.0)
    here(hosts, filter_here.start)
    assert "htb c5:" in shown(hosts)
    assert here(hosts, filter_here.stop).startswith("eth0: restored ")
    assert shown(hosts) == there
    assert states_of(hosts) == []


@pytest.mark.parametrize(
    ("first", "before"), [(1, ""), (2, BEFORE["classes with filters"])], ids=["default", "classes"]
)
def test_a_set_up_that_breaks_off_at_any_step_leaves_nothing(hosts, unwatched, monkeypatch, first, before):
    hosts.run(0, "sh", "-ec", before)
    there, ask, refused = shown(hosts), Kernel.ask, first
    left = [0]

    def breaking(self, kind, body, flags=0):
        left[0] -= 1
        if left[0] == 0:
            raise KernelError(22, "broken off by the test")
        ask(self, kind, body, flags)

    monkeypatch.setattr(Kernel, "ask", breaking)
    while True:
        left[0] = refused
        filter_here = filter_on(hosts, rate_in_mb_per_s=50.0)
        try:
            here(hosts, filter_here.start)
        except (CrosswindError, KernelError):
            left[0] = 0
            assert shown(hosts) == there, f"after step {refused}"
            refused += 3
            assert states_of(hosts) == []
            continue
        left[0] = 0
        here(hosts, filter_here.stop)
        break
    assert refused > len(filter_here.plan.steps)
    assert shown(hosts) == there


@pytest.mark.parametrize("step", [1, 4, 33])
def test_kill_9_at_a_step_of_the_set_up_leaves_nothing(hosts, step):
    hosts.run(0, "sh", "-ec", BEFORE["a token bucket"])
    there = shown(hosts)
    code = (
        "import os\nfrom crosswind.filter.kernel import KernelFilter\n"
        "from crosswind.filter.kernel.netlink import Kernel\n"
        "ask, left = Kernel.ask, [STEP]\n"
        "def killed(self, kind, body, flags=0):\n"
        "    left[0] -= 1\n"
        "    ask(self, kind, body, flags)\n"
        "    if left[0] == 0: os.kill(os.getpid(), 9)\n"
        "Kernel.ask = killed\n"
        "KernelFilter('eth0', ['8001'], rate_mb_per_s=12.0, rate_in_mb_per_s=12.0).start()\n"
    ).replace("STEP", str(step))
    done = subprocess.run([*hosts.on(0), sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    until(lambda: states_of(hosts) == [])
    assert shown(hosts) == there


HOLDER = """
import signal
from crosswind.filter.kernel import KernelFilter
signal.signal(signal.SIGTERM, lambda *_: exit(0))
with KernelFilter('eth0', ['8001'], rate_mb_per_s=12.0) as one:
    print(one._watchdog.pid, flush=True)
    signal.pause()
"""


class Held:
    """A filter on host 0 that a process of its own holds, and its watchdog; killed with its block."""

    def __init__(self, hosts):
        command = [*hosts.on(0), sys.executable, "-c", HOLDER]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.watchdog = int(self.process.stdout.readline())

    def kill_both(self):
        for pid in (self.watchdog, self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_the_command_holds_it_until_it_is_asked_to_end_and_takes_all_back(hosts):
    there = shown(hosts)
    words = ["--in-kernel", "eth0", "--parallel", "8001", "--rate", "12.25", "--json"]
    command = [*hosts.on(0), *COMMAND, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while "ctrl-C takes it back" not in (line := running.stderr.readline()):
            assert line
        assert "htb c5:" in shown(hosts)
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert set(json.loads(out)["out"]) == {"parallel", "local"}
    assert shown(hosts) == there


def test_kill_9_is_undone_by_the_watchdog(hosts):
    there = shown(hosts)
    with Held(hosts) as held:
        assert "htb c5:" in shown(hosts)
        held.process.kill()
        until(lambda: states_of(hosts) == [])
    assert shown(hosts) == there


def test_kill_9_of_both_is_undone_by_undo_from_another_namespace(hosts):
    there = shown(hosts)
    with Held(hosts) as held:
        held.kill_both()
        assert "htb c5:" in shown(hosts)
        with pytest.raises(DescriptionError, match="the process that set it has ended"):
            here(hosts, filter_on(hosts).start)
        done = subprocess.run([*COMMAND, "--undo", "--json"], capture_output=True, text=True, check=True)
        assert "eth0: restored noqueue" in json.loads(done.stdout)["undone"]
    assert shown(hosts) == there
    assert states_of(hosts) == []


def test_undo_ends_a_filter_that_runs(hosts):
    there = shown(hosts)
    with Held(hosts) as held:
        undo_all("eth0")
        held.process.wait(timeout=20)
    assert shown(hosts) == there


def test_a_watchdog_that_was_killed_is_started_again(hosts):
    filter_here = filter_on(hosts)
    here(hosts, filter_here.start)
    first = filter_here._watchdog
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not first.lives)
    here(hosts, filter_here.watch)
    assert filter_here._watchdog.lives
    here(hosts, filter_here.stop)
    assert states_of(hosts) == []


def test_a_second_filter_on_a_device_is_refused_and_the_first_stands(hosts):
    with Held(hosts) as held:
        there = shown(hosts)
        with pytest.raises(DescriptionError, match=f"eth0 has a filter already: process {held.process.pid} holds it"):
            here(hosts, filter_on(hosts).start)
        assert shown(hosts) == there


def test_a_device_that_goes_down_and_up_keeps_it_and_is_restored(hosts, unwatched):
    there = shown(hosts)
    filter_here = filter_on(hosts)
    here(hosts, filter_here.start)
    hosts.run(0, "ip", "link", "set", "eth0", "down")
    here(hosts, filter_here.watch)
    hosts.run(0, "ip", "link", "set", "eth0", "up")
    here(hosts, filter_here.watch)
    here(hosts, filter_here.stop)
    assert shown(hosts) == there
    # Down when it is taken back: the kernel's own choice is another one then.
    here(hosts, filter_here.start)
    hosts.run(0, "ip", "link", "set", "eth0", "down")
    here(hosts, filter_here.stop)
    hosts.run(0, "ip", "link", "set", "eth0", "up")
    assert shown(hosts) == there


def test_of_a_device_that_is_deleted_nothing_is_left(hosts, unwatched):
    filter_here = filter_on(hosts, rate_in_mb_per_s=20.0)
    here(hosts, filter_here.start)
    hosts.run(0, "ip", "link", "del", "eth0")
    with pytest.raises(CrosswindError, match="eth0 does not exist any more"):
        here(hosts, filter_here.watch)
    assert "does not exist any more" in here(hosts, filter_here.stop)
    assert "ifb" not in hosts.run(0, "ip", "link")
    assert states_of(hosts) == []


def test_of_a_namespace_that_is_gone_nothing_is_left(hosts):
    with Held(hosts) as held:
        kept = states_of(hosts)
        held.kill_both()
    there = state.read(kept[0])
    hosts.remove(0)
    until(lambda: state.namespace_path(there.namespace, there.cookie) is None)
    assert [path.exists() for path in kept] == [True]
    assert "eth0: its network namespace does not exist any more, nor what was set in it" in undo_all("eth0")
    assert [path.exists() for path in kept] == [False]


def test_a_root_qdisc_that_another_set_meanwhile_is_left_alone(hosts, unwatched):
    filter_here = filter_on(hosts)
    here(hosts, filter_here.start)
    hosts.run(0, "tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "77:", "pfifo")
    with pytest.raises(CrosswindError, match="another's: pfifo 77:"):
        here(hosts, filter_here.watch)
    assert "is another's by now" in here(hosts, filter_here.stop)
    assert "pfifo 77:" in shown(hosts)
    assert states_of(hosts) == []


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("tc qdisc add dev eth0 clsact", "eth0 has a qdisc clsact already"),
        ("ip link add cw2ifb type ifb; ip link add $(IFB) type ifb 2>/dev/null; true", "exists already"),
        ("ip route add default via 10.79.0.2", "eth0 carries the default route"),
        (
            "tc qdisc add dev eth0 root handle 8: htb;"
            " tc filter add dev eth0 parent 8: protocol ip prio 3 handle 5: u32 divisor 16;"
            " tc filter add dev eth0 parent 8: protocol ip prio 3 u32 ht 5:2 match ip dport 80 0xffff"
            " action mirred egress redirect dev lo",
            "could not be put back",
        ),
    ],
    ids=["clsact", "ifb", "default route", "actions"],
)
def test_a_device_that_could_not_be_restored_is_refused_untouched(hosts, unwatched, before, said):
    with in_namespace(hosts.path(0), Kernel) as kernel:
        index = messages.link_facts(kernel.get(messages.GET_LINK, messages.link(0, messages.named("eth0"))))[0]
    hosts.run(0, "sh", "-c", before.replace("$(IFB)", f"cw{index}ifb"))
    there = shown(hosts)
    with pytest.raises(DescriptionError, match=said):
        here(hosts, filter_on(hosts, rate_in_mb_per_s=20.0).start)
    assert shown(hosts) == there
    assert states_of(hosts) == []


def sent(hosts, prepare):
    """Send 300 kB from host 0 to host 1 on a socket that is prepared."""

    def send():
        with socket.socket() as one:
            prepare(one)
            one.connect((hosts.address(1), 8001))
            one.sendall(bytes(300_000))
            one.shutdown(socket.SHUT_WR)
            one.recv(1)

    here(hosts, send)


@pytest.fixture
def sink(hosts):
    code = (
        "import socket\ns = socket.create_server(('', 8001)); print(flush=True)\n"
        "while True:\n    c = s.accept()[0]\n    while c.recv(65536): pass\n    c.close()\n"
    )
    process = subprocess.Popen([*hosts.on(1), sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield
    process.kill()
    process.communicate()


SO_PRIORITY = 12


@pytest.mark.parametrize(
    ("parallel", "prepare"),
    [
        ("8001", lambda one: None),
        ("8002", lambda one: one.bind(("", 8002))),
        ("dscp:af41", lambda one: one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 34 << 2)),
        ("mark:7", lambda one: one.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 7)),
        ("8003", lambda one: one.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, 0xC50001)),
    ],
    ids=["port", "own port", "dscp", "mark", "priority"],
)
def test_packets_go_to_the_class_that_their_mark_names(hosts, unwatched, sink, parallel, prepare):
    filter_here = filter_on(hosts, parallel)
    here(hosts, filter_here.start)
    sent(hosts, prepare)
    first = here(hosts, filter_here.counters)["out"]
    if parallel != "8001":
        sent(hosts, lambda one: None)
    last = here(hosts, filter_here.counters)["out"]
    here(hosts, filter_here.stop)
    assert first["parallel"]["bytes"] > 300_000 > 20_000 > first["local"]["bytes"]
    assert parallel == "8001" or last["local"]["bytes"] > 300_000


def test_packets_of_a_control_group_go_to_its_class(hosts, unwatched, sink):
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    root = next((Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2"), None)
    if root is None or root.stat().st_ino != 1:
        pytest.skip("no control groups of version 2, or not their root")
    group = root / f"cwtest{os.getpid()}" / "jobs"
    group.mkdir(parents=True)
    home = root / Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
    try:
        filter_here = filter_on(hosts, f"cgroup:/{group.parent.name}")
        here(hosts, filter_here.start)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        sent(hosts, lambda one: None)
        (home / "cgroup.procs").write_text(str(os.getpid()))
        within = here(hosts, filter_here.counters)["out"]
        sent(hosts, lambda one: None)
        beyond = here(hosts, filter_here.counters)["out"]
        here(hosts, filter_here.stop)
    finally:
        (home / "cgroup.procs").write_text(str(os.getpid()))
        for one in (group, group.parent):
            one.rmdir()
    assert within["parallel"]["bytes"] > 300_000 > within["local"]["bytes"]
    assert beyond["local"]["bytes"] > 300_000 > beyond["parallel"]["bytes"] - within["parallel"]["bytes"]


@pytest.fixture
def narrow(tmp_path):
    """Two hosts 20 Mbit/s apart, the far end of a check on host 1: how a check's command begins on host 0."""
    if (why := star.missing()) is not None:
        pytest.skip(why)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with star.Star(2, 20.0) as hosts:
        listen = ["check", "--listen", f"{hosts.address(1)}:7300", "--token-file", str(token)]
        far_end = subprocess.Popen([*hosts.on(1), *COMMAND, *listen], stderr=subprocess.PIPE, text=True)
        assert "checks connect to" in far_end.stderr.readline()
        yield [*hosts.on(0), *COMMAND], ["--peer", f"{hosts.address(1)}:7300", "--token-file", str(token)], hosts
        far_end.send_signal(signal.SIGINT)
        assert far_end.wait(timeout=20) == 0


@pytest.mark.alone
def test_a_check_shows_that_small_messages_pass_bulk(narrow):
    command, peer, hosts = narrow
    there = shown(hosts)
    words = ["check", *peer, "--parallel", "8001", "--in-kernel", "eth0", "--rate", "2.4", "--connections", "2"]
    done = subprocess.run([*command, *words, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["lowered"]["64"] > 3, found
    both = found["after"]["both"]
    assert both["parallel"]["bulk_mb_per_s"] > 2 * both["local"]["bulk_mb_per_s"], found
    assert shown(hosts) == there


@pytest.mark.alone
def test_a_rate_is_measured_where_none_is_given(narrow):
    command, peer, _ = narrow
    words = ["--in-kernel", "eth0", "--parallel", "8001", "--rate", "auto", *peer, "--dry-run", "--json"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rate = re.search(r"([\d.]+) MB/s leaves eth0: shaped to ([\d.]+)", done.stderr)
    assert 2.0 < float(rate[1]) < 2.7, done.stderr
    assert float(rate[2]) == pytest.approx(0.98 * float(rate[1]), abs=0.02)


def test_the_far_end_turns_away_a_caller_that_does_not_know_the_token(narrow, tmp_path):
    command, peer, _ = narrow
    other = tmp_path / "other"
    other.write_text("another token of some length")
    other.chmod(0o600)
    words = ["check", *peer[:3], str(other), "--seconds", "0.2"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "closed the connection" in done.stderr or "does not know the token" in done.stderr
    with pytest.raises(DescriptionError, match="off loopback"):
        CheckedPath(peer[1])


def test_a_port_is_listened_at_again_at_once_after_the_one_who_asked_has_gone():
    far_end = subprocess.Popen([*COMMAND, "check", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"127\.0\.0\.1:(\d+)", far_end.stderr.readline())
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for _ in range(20):
            dial(("127.0.0.1", int(address[1])), None, {"do": "listen", "port": port}).close()
    finally:
        far_end.send_signal(signal.SIGINT)
        assert far_end.wait(timeout=20) == 0


def test_netlink_says_in_its_own_words_what_is_wrong(hosts):
    with in_namespace(hosts.path(0), Kernel) as kernel, pytest.raises(KernelError) as refused:
        kernel.ask(messages.NEW_QDISC, messages.traffic(2, 0x80000, messages.ROOT, "nosuch"), netlink.CREATE)
    assert refused.value.errno in (2, 19)
    assert refused.value.strerror


STREAMS = {
    "schema_version": 1,
    "name": "through the kernel",
    "network": {"link_mb_per_s": 4, "frame_bytes": 1514, "pad": False},
    "policy": {"filter": "kernel"},
    "workload": {
        "kind": "streams",
        "hosts": 3,
        "stream": [
            {
                "name": "A",
                "class": "parallel",
                "from": 0,
                "to": 1,
                "message_bytes": 64,
                "messages": 150,
                "gap_s": 0.001,
            },
            {
                "name": "local",
                "class": "local",
                "from": 0,
                "to": 2,
                "message_bytes": 16384,
                "messages": 60,
                "arrivals": "backlogged",
            },
        ],
    },
}


@pytest.mark.alone
def test_streams_of_an_experiment_pass_through_the_kernel_beside_what_the_simulator_predicts():
    if (why := star.missing()) is not None:
        pytest.skip(why)
    run = crosswind.run(crosswind.Experiment.from_dict(STREAMS), on="local")[0]
    small, large = run.streams
    assert small["latency_s"]["fifo"]["p50"] >= 3 * small["latency_s"]["queued"]["p50"], run.data
    assert large["slowdown_queued"] <= 2 * large["slowdown_fifo"], run.data
    assert {"simulated fifo A", "simulated queued A"} <= run.bounds.keys()


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ({"link_mb_per_s": 4, "frame_bytes": 1514, "pad": True}, "network.pad is true"),
        ({"link_mb_per_s": 4, "frame_bytes": 100, "pad": False}, "frame_bytes is 100 bytes; it must be 590 to 65000"),
        ({"link_mb_per_s": 0.01, "frame_bytes": 1514, "pad": False}, "link_mb_per_s is 0.01 MB/s; it must be 0.1"),
    ],
)
def test_links_that_no_kernel_can_have_are_refused(network, said):
    if (why := star.missing()) is not None:
        pytest.skip(why)
    with pytest.raises(DescriptionError, match=said):
        crosswind.run(crosswind.Experiment.from_dict({**STREAMS, "network": network}), on="local")
