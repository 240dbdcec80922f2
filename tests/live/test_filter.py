"""The message filter as users start it: on loopback, on the testbed, and with streams of messages through it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.errors import DescriptionError, InfeasibleError
from crosswind.filter import Filter, Forward
from crosswind.run.streams_local import run_streams_here

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from filter_ends import testbed  # noqa: E402

COMMAND = [sys.executable, "-m", "crosswind.cli", "filter"]


class Process:
    """A `crosswind filter`, ended with its block."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def says(self, what):
        """The line that says it."""
        while what not in (line := self.process.stderr.readline()):
            assert line, "it ended"
        return line.strip()

    def ends(self, with_signal=signal.SIGINT):
        self.process.send_signal(with_signal)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out


def echo():
    """A server on a free port that answers what it gets, in capitals."""
    code = (
        "import socketserver\n"
        "class H(socketserver.BaseRequestHandler):\n"
        "    def handle(self):\n"
        "        while got := self.request.recv(65536): self.request.sendall(got.upper())\n"
        "class S(socketserver.ThreadingTCPServer): daemon_threads = True\n"
        "s = S(('127.0.0.1', 0), H); print(s.server_address[1], flush=True); s.serve_forever()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


@pytest.fixture
def echo_port():
    process, port = echo()
    yield port
    process.kill()
    process.communicate()


def ask(port, what=b"hello"):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(what)
        return connection.recv(100)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_filters_started_by_hand_forward_and_count_until_they_are_ended(echo_port, asked):
    with Process("--listen", "127.0.0.1:0", "--json") as there:
        address = there.says("connect to").split()[-1]
        forwards = ["--parallel", f"0=127.0.0.1:{echo_port}", "--local", f"0=127.0.0.1:{echo_port}"]
        with Process("--peer", address, *forwards, "--json") as here:
            ports = [int(here.says(f"{name}: ").split()[1].rpartition(":")[2]) for name in ("parallel", "local")]
            here.says("all peers are there")
            assert [ask(port) for port in ports] == [b"HELLO", b"HELLO"]
            code, out = here.ends(asked)
        counters = json.loads(out)
        assert code == 0
        assert [counters[name]["sent_bytes"] for name in ("parallel", "local")] == [5, 5]
        assert counters["connections_made"] == 2
        code, out = there.ends(asked)
        assert (code, json.loads(out)["parallel"]["received_bytes"]) == (0, 5)


def test_a_filter_with_another_token_is_kept_out_and_named_once(tmp_path):
    log = tmp_path / "log"
    with Filter(listen="127.0.0.1:0", token="a token of some length", log=log) as there:
        here = Filter(peers=[there.address], token="another of some length", log=tmp_path / "other")
        with here:
            assert not here.wait_for_peers(1.5)
        assert there.counters()["peers"] == 0
    assert log.read_text().count("does not know the token") == 1
    assert "a token" not in log.read_text()


def test_a_port_of_an_absent_peer_refuses_and_the_filter_goes_on(tmp_path):
    forward = Forward("local", "127.0.0.1:0", "127.0.0.1:9")
    with Filter([forward], ["127.0.0.1:9"], log=tmp_path / "log") as here:
        port = int(here.ports[0].rpartition(":")[2])
        assert ask(port, b"") == b""
        assert here.at_work
        assert here.counters()["refused"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "neither --listen nor --peer"),
        (["--peer", "127.0.0.1:1", "--local", "8001"], "must be PORT=HOST:PORT"),
        (["--listen", "0.0.0.0:0"], "neither a token nor a certificate"),
        (["--listen", "127.0.0.1:0", "--check"], "--check goes with --export"),
        (["--export", "tc", "--listen", "127.0.0.1:0"], "does not go with --export"),
        (["--export", "tc", "--policy", "fifo"], "without any settings"),
        (["--export", "cilium", "--check"], "stay on the node"),
        (["--token-file", "/nowhere/at/all"], "--token-file is"),
    ],
)
def test_wrong_words_end_with_2_and_a_reason(words, said):
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_marks_are_checked_at_a_filter_that_listens():
    with Filter(listen="127.0.0.1:0") as there:
        words = ["--export", "tc", "--check", "--peer", there.address, "--json"]
        done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(one["sent_dscp"], one["arrived_dscp"]) for one in found["checks"]] == [(34, 34), (0, 0)]


def streams(receiving=False, **policy):
    """A beside a local stream of 16 KB, on links so slow that this machine's own times do not matter."""
    ways = [(0, 2), (1, 2)] if receiving else [(0, 1), (0, 2)]
    about = [("A", "parallel", 64), ("local", "local", 16384)]
    return {
        "schema_version": 1,
        "name": "A beside local",
        "network": {"link_mb_per_s": 4, "frame_bytes": 1024, "pad": True},
        "workload": {
            "kind": "streams",
            "hosts": 3,
            "stream": [
                {"name": name, "class": whose, "from": way[0], "to": way[1], "message_bytes": size, "messages": 60}
                for (name, whose, size), way in zip(about, ways, strict=True)
            ],
        },
        "policy": policy,
    }


@pytest.mark.alone
@pytest.mark.parametrize(
    "policy", [{}, {"queue": "threshold"}, {"queue": "strict"}], ids=["drr", "threshold", "strict"]
)
def test_two_queues_lower_the_slowdown_of_small_messages_threefold_and_leave_local_ones_within_two(policy):
    run = run_streams_here(json.dumps(streams(**policy)))
    small, large = run["streams"]
    assert small["slowdown_fifo"] >= 3 * small["slowdown_queued"], run
    assert large["slowdown_queued"] <= 2, run
    assert (small["bytes"], large["bytes"]) == (60 * 64, 60 * 16384)
    assert small["latency_s"]["queued"]["p50"] < small["latency_s"]["fifo"]["p50"]


@pytest.mark.alone
def test_at_the_receiving_side_credits_lower_the_slowdown_too():
    # Less than at the sending side: frames come no faster than one sender's link lets them, so few wait here.
    run = run_streams_here(json.dumps(streams(receiving=True, credits="receiver")))
    small, _ = run["streams"]
    assert small["slowdown_fifo"] > small["slowdown_queued"], run


@pytest.mark.alone
def test_credits_lower_the_slowdown_threefold_where_two_local_senders_meet_at_a_receiver():
    point = streams(credits="receiver")
    local = {**point["workload"]["stream"][1], "to": 3, "messages": 30, "arrivals": "backlogged"}
    small = {**point["workload"]["stream"][0], "to": 3, "messages": 30}
    point["workload"] |= {"hosts": 4, "stream": [small, {**local, "from": 1}, {**local, "name": "other", "from": 2}]}
    run = run_streams_here(json.dumps(point))
    small, *large = run["streams"]
    assert small["slowdown_fifo"] >= 3 * small["slowdown_queued"], run
    assert all(one["slowdown_queued"] <= 2 * one["slowdown_fifo"] for one in large), run


def test_one_to_all_and_back_is_one_operation():
    point = streams()
    point["workload"]["stream"] = [
        {
            "name": "barrier",
            "class": "parallel",
            "from": 0,
            "to": [1, 2],
            "message_bytes": 64,
            "answer_bytes": 100,
            "messages": 20,
        },
        {
            "name": "open",
            "class": "local",
            "from": 1,
            "to": 2,
            "message_bytes": {"distribution": "exponential", "mean": 2000},
            "arrivals": "open",
            "gap_s": 0.002,
            "messages": 20,
        },
    ]
    run = run_streams_here(json.dumps(point))
    assert run["streams"][0]["bytes"] == 20 * 2 * (64 + 100)
    assert run["streams"][1]["alone_s"] >= 19 * 0.002


def test_credits_as_printed_stop_the_parallel_stream_for_ever():
    point = streams(queue="threshold", credits="receiver", literal=True, receive_threshold=0)
    point["workload"]["stream"][0] |= {"message_bytes": 65536}
    with pytest.raises(InfeasibleError, match="no message that is timed has arrived"):
        run_streams_here(json.dumps(point))


def test_jobs_and_many_hosts_run_on_sim_only():
    point = streams()
    point["workload"]["hosts"] = 100
    with pytest.raises(DescriptionError, match="at most 16 on local"):
        run_streams_here(json.dumps(point))


@pytest.fixture
def hosts(monkeypatch):
    if (why := testbed.missing()) is not None:
        pytest.skip(f"no testbed: {why}")
    with testbed.up() as found:
        yield found


@pytest.mark.alone
def test_on_the_testbed_two_queues_do_the_same(hosts):
    found = testbed.slowdowns(hosts, {"A": 64, "local": 16384}, 60)
    assert found["A"]["slowdown_fifo"] >= 3 * found["A"]["slowdown_queued"], found
    assert found["local"]["slowdown_queued"] <= 2, found


def test_on_the_testbed_exported_settings_are_taken_and_marks_arrive(hosts, tmp_path):
    token = tmp_path / "token"
    token.write_text("a token for the testbed only")
    token.chmod(0o600)
    filters = [*COMMAND, "--token-file", str(token)]
    there = hosts.addresses["b"]
    hosts.start("b", [*filters, "--listen", f"{there}:7200"], until=b"connect to")
    words = ["--export", "tc", "--dev", "lo", "--rate", "1.5", "--check", "--peer", f"{there}:7200", "--json"]
    done = subprocess.run([*hosts.on("a"), *filters, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["arrived_dscp"] for one in found["checks"]] == [34, 0]
    if shutil.which("tc") is None:
        return
    # The settings themselves, where a mark decides: what is counted in the class of parallel packets.
    script = (
        f"{found['text']}\nip link set lo up\n{sys.executable} -c '{MARKED}'\ntc -s class show dev lo\n{found['undo']}"
    )
    done = subprocess.run([*hosts.on("a"), "sh", "-ec", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sent = {words[2]: words for words in map(str.split, done.stdout.splitlines()) if words[:2] == ["class", "htb"]}
    assert {"1:1", "1:2"} <= sent.keys(), done.stdout
    counted = [int(line.split()[1]) for line in done.stdout.splitlines() if line.strip().startswith("Sent")]
    assert sum(count > 100_000 for count in counted) >= 2, done.stdout


MARKED = (
    'import socket; s = socket.create_server(("127.0.0.1", 0)); c = socket.socket(); '
    "c.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 34 << 2); c.connect(s.getsockname()); a = s.accept()[0]; "
    "c.sendall(bytes(200000)); n = 0\\nwhile n < 200000: n += len(a.recv(65536))"
).replace("\\n", "\n")
