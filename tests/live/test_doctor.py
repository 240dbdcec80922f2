"""The doctor's handshake with a real peer, and with one of another version."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import speaking

from crosswind import doctor
from crosswind.errors import MeasurementError
from crosswind.serve import greet

pytestmark = pytest.mark.live


def by_code(findings):
    return {finding.code: finding for finding in findings}


def test_a_peer_that_serves_is_greeted_by_name_and_keeps_serving(peer):
    for _ in range(2):
        found = by_code(doctor(peer.address, seconds=0.0))
        assert found["peer-handshake"].level == "ok"
        assert socket.gethostname() in found["peer-handshake"].message
    assert greet(peer.address)["loopback"] is True


def test_a_peer_of_another_version_is_a_problem_that_names_both_versions():
    def answer(server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                if len(connection.recv(40, socket.MSG_WAITALL)) == 40:  # else it only tried whether the port is open
                    connection.sendall(speaking.greeting(version=9))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found = by_code(doctor(address, seconds=0.0))
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert found["peer"].level == "ok", "it accepts connections"
    assert found["peer-handshake"].level == "problem"
    assert "speaks version 9 of the protocol; this build speaks 3" in found["peer-handshake"].message
    assert found["peer-handshake"].hint


def test_no_listener_is_an_error_with_the_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(MeasurementError, match=address):
        greet(address)


VETH = """
import subprocess
from crosswind.host import network
from crosswind.host.route import interface_to, is_same_machine
for line in ("link set lo up", "link add v0 type veth peer name v1", "addr add 10.99.0.1/24 dev v0", "link set v0 up"):
    subprocess.run(["ip", *line.split()], check=True)
print(interface_to("10.99.0.2:7117"), network.kind("v0"), is_same_machine("10.99.0.2"), is_same_machine("10.99.0.1"))
"""


def test_a_veth_pair_is_recognised_in_a_namespace_of_its_own():
    namespace = ["unshare", "--map-root-user", "--net", "--mount", "--"]
    mount = 'mount -t sysfs sysfs /sys 2>/dev/null; exec "$@"'
    if (
        not all(map(shutil.which, ("unshare", "ip")))
        or subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no permission to make a network namespace")
    command = [*namespace, "sh", "-c", mount, "sh", sys.executable, "-c", VETH]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd(), check=False)
    assert done.stdout.split() == ["v0", "veth", "False", "True"], done.stderr
