"""Hosts of a file, whose agents people start themselves: typed as a user would."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import cloudpickle
import farms
import pytest
from farms import point, slowly, take, tree, value

from crosswind.certificates import Node, make_certificates
from crosswind.errors import DescriptionError
from crosswind.run.deploying import deployed
from crosswind.run.local import Launch, Limits, LiveFarm, Task, Work

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
CROSSWIND = [sys.executable, "-m", "crosswind.cli"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "token").write_text("the token of these hosts\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "hosts.toml").write_text(
        f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[[host]]\nname = "a"\nparent = "head"\nlisten = "127.0.0.1:{free_port()}"\n'
        '[[host]]\nname = "b"\nparent = "a"\n'
    )
    for number in range(20):
        (tmp_path / f"{number:02}.in").write_text("x" * number)
    return tmp_path


def shown(by, name):
    return ["--token-file", "token"] if by == "token" else ["--tls", f"certs/{name}"]


def serving(files, name, by="token", *more):
    command = [*CROSSWIND, "serve", "--hosts", "hosts.toml", "--name", name, *shown(by, name), *more]
    return subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("by", ["token", "certificates"])
def test_a_command_runs_on_the_hosts_of_a_file_which_end_with_it(files, by):
    make_certificates(files / "certs", [Node("head", parent=True), Node("a", parent=True), Node("b")])
    served = [serving(files, "b", by), serving(files, "a", by)]  # the first one waits
    command = [*CROSSWIND, "map", "wc -c < {input}", "--inputs", "*.in", "--out", "out", "--json"]
    done = subprocess.run(
        [*command, "--on", "hosts:hosts.toml", *shown(by, "head")],
        cwd=files,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["on"] == "hosts"
    assert [(files / "out" / f"{n:02}.in").read_text().strip() for n in range(20)] == [str(n) for n in range(20)]
    for process in served:
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0, said


def states(page):
    """What a page's events say, one after the other."""
    with urllib.request.urlopen(f"{page}events", timeout=60) as events:
        for line in events:
            if line.startswith(b"data: {") and len(line) > len(b"data: {}\n"):
                yield json.loads(line.removeprefix(b"data: "))


def test_a_node_in_the_middle_shows_what_comes_through_it(files):
    pytest.importorskip("tornado", reason="tornado is not installed")
    served = [serving(files, "b"), serving(files, "a", "token", "--watch")]
    page = served[1].stderr.readline().removeprefix("watch: ").strip()
    command = [*CROSSWIND, "map", "sleep 0.3; wc -c < {input}", "--inputs", "*.in", "--out", "out", "--json"]
    root = subprocess.Popen(
        [*command, "--on", "hosts:hosts.toml", "--token-file", "token"], cwd=files, stdout=subprocess.PIPE
    )
    seen = list(states(page))  # until the run is over
    done = json.loads(root.communicate(timeout=60)[0])
    for process in served:
        assert process.wait(20) == 0
    assert root.returncode == 0
    assert seen[-1]["state"] == "ended"
    assert [node["name"] for node in seen[-1]["nodes"]] == ["a", "b"]
    computed = {node["name"]: node["tasks"] for node in done["nodes"]}
    assert {node["name"]: node["tasks"] for node in seen[-1]["nodes"]} == {name: computed[name] for name in "ab"}
    assert any(0 < state.get("done", 0) < seen[-1]["done"] for state in seen), "it was there before the end"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_host_that_is_asked_to_end_hands_its_tasks_back_and_the_others_go_on(number, tmp_path):
    file = tmp_path / "token"
    file.write_text("the token of this farm\n")
    file.chmod(0o600)
    limits = Limits(start_s=20.0, silence_s=2.0)
    launch = Launch(by_hand=True)
    work = Work("callable", function=slowly)
    with LiveFarm(tree("r", "a<r", "b<r"), point(), work, launch=launch, limits=limits, token=file.read_text()) as farm:
        command = [*CROSSWIND, "serve", "--parent", farm.address, "--token-file", str(file), "--name"]
        a, b = (subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "ab")
        for task in range(200):
            farm.submit(Task(str(task).encode().join([b"I", b"\n."])))  # a pickled int
        farm.end_of_tasks()
        taken = take(farm, 10)
        a.send_signal(number)
        taken |= take(farm, 200 - len(taken))  # several may come at a time
        assert a.wait(20) == 0
        summary, _ = farm.close()
        assert b.wait(20) == 0
    assert {task: value(result) for task, result in taken.items()} == {n: n * n for n in range(200)}
    (event,) = summary["events"]
    assert (event["code"], event["node"]) == ("agent-left", "a")
    assert event["tasks"] > 0
    busy = {node["name"]: node["busy_s"] for node in summary["nodes"]}
    assert busy["a"] > 0, "it told what it did before it went"


def test_a_host_that_waits_for_its_parent_ends_when_it_is_asked_to(files):
    process = serving(files, "a")
    assert "children connect to" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said


def test_what_does_not_fit_to_the_file_is_refused(files):
    with (
        pytest.raises(DescriptionError, match="--token-file or --tls is missing"),
        deployed(f"hosts:{files}/hosts.toml"),
    ):
        pass
    for words, said in (
        (["serve", "--hosts", "hosts.toml", "--name", "head", "--token-file", "token"], "head has no parent"),
        (["serve", "--hosts", "hosts.toml", "--name", "c", "--token-file", "token"], "has no 'c'"),
        (["serve", "--hosts", "hosts.toml", "--name", "a", "--parent", "x:1"], "--parent does not go with --hosts"),
    ):
        done = subprocess.run([*CROSSWIND, *words], cwd=files, capture_output=True, text=True, check=False, timeout=30)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
