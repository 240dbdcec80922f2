"""What calls print on other hosts is shown where the program runs."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.live
PROGRAM = """
import logging, sys
import crosswind

def speak(one):
    print("out", one)
    logging.warning("logged %d", one)
    return one

if __name__ == "__main__":
    placing = crosswind.Placing(token_file="token", trusted=True)
    with crosswind.Farm("hosts:hosts.toml", placing=placing, quiet="quiet" in sys.argv) as farm:
        assert farm.submit(speak, 7).result() == 7
        assert sorted(farm.map(speak, range(40), chunksize=8)) == list(range(40))
"""


def made_hosts(tmp_path):
    """A file of hosts in which this machine is both; how the second one serves."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    (tmp_path / "token").write_text("the token of these hosts\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "hosts.toml").write_text(
        f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{port}"\n'
        '[[host]]\nname = "leaf"\nparent = "head"\n'
    )
    command = [sys.executable, "-m", "crosswind.cli", "serve", "--hosts", "hosts.toml", "--name", "leaf"]
    return [*command, "--token-file", "token"]


@pytest.mark.parametrize("words", [[], ["quiet"]])
def test_on_the_hosts_of_a_file(tmp_path, words):
    command = made_hosts(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as host:
        done = subprocess.run(
            [sys.executable, "program.py", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        _, said = host.communicate(timeout=20)
    assert done.returncode == 0, done.stderr + said
    expected = [f"[leaf] {word}" for one in (7, *range(40)) for word in (f"out {one}", f"WARNING:root:logged {one}")]
    assert sorted(done.stderr.splitlines()) == ([] if words else sorted(expected))
    assert "logged 39" in said  # there it is in any case


@pytest.mark.parametrize("words", [[], ["--quiet"]])
def test_commands_on_the_hosts_of_a_file(tmp_path, words):
    serving = made_hosts(tmp_path)
    line = "echo \"said {}\" >&2; echo 'a\x1b[7mb' >&2; sleep 0.05; test {} != 3"
    command = [sys.executable, "-m", "crosswind.cli", "map", line, *(f"--values={one}" for one in range(5))]
    command += ["--on", "hosts:hosts.toml", "--token-file", "token", "--joblog", "log", "--out", "results", *words]
    began = time.monotonic()
    with subprocess.Popen(serving, cwd=tmp_path, stderr=subprocess.DEVNULL) as host:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        host.wait(timeout=20)
    ended = time.monotonic()
    assert done.returncode == 3, done.stderr
    shown = [line for line in done.stderr.splitlines() if line.startswith("[leaf]")]
    expected = [f"[leaf] {one}: {text}" for one in (0, 1, 2, 4) for text in (f"said {one}", "a\\x1b[7mb")]
    assert sorted(shown) == ([] if words else sorted(expected))
    log = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()[1:]]
    assert {line[1] for line in log} == {"leaf"}
    took = [float(line[3]) for line in log]  # as the node measured, which runs one after the other
    assert min(took) >= 0.05
    assert sum(took) <= ended - began


def test_on_the_workers_of_dask(tmp_path):
    pytest.importorskip("distributed", reason="distributed is not installed")
    program = PROGRAM.replace('    placing = crosswind.Placing(token_file="token", trusted=True)\n', "").replace(
        'crosswind.Farm("hosts:hosts.toml", placing=placing,',
        "distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client, "
        "crosswind.Farm(client,",
    )
    (tmp_path / "program.py").write_text(program.replace("import crosswind\n", "import crosswind, distributed\n"))
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = [line.partition("] ")[2] for line in done.stderr.splitlines() if line.startswith("[")]
    assert sorted(told) == sorted(
        line for one in (7, *range(40)) for line in (f"out {one}", f"WARNING:root:logged {one}")
    )
