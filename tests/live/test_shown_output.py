"""What calls print on other hosts is shown where the program runs."""

from __future__ import annotations

import socket
import subprocess
import sys

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


@pytest.mark.parametrize("words", [[], ["quiet"]])
def test_on_the_hosts_of_a_file(tmp_path, words):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    (tmp_path / "token").write_text("the token of these hosts\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "hosts.toml").write_text(
        f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{port}"\n'
        '[[host]]\nname = "leaf"\nparent = "head"\n'
    )
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "crosswind.cli", "serve", "--hosts", "hosts.toml", "--name", "leaf"]
    with subprocess.Popen([*command, "--token-file", "token"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as host:
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
