"""How a host and the root of a measurement know each other, over a pair of sockets."""

import socket
import threading

import pytest

from crosswind.errors import AgentLost
from crosswind.measure.cluster import handshake
from crosswind.measure.cluster.calls import Secret, masked, unmasked
from crosswind.measure.cluster.handshake import announce, meet

TOKEN = "a token of this test"


def both(host, root):
    """Run both ends; what each returned or raised."""
    ends, found = socket.socketpair(), {}

    def run(name, function, line):
        try:
            found[name] = function(line)
        except (AgentLost, OSError) as error:
            found[name] = error
        finally:
            line.close()

    threads = [
        threading.Thread(target=run, args=each) for each in zip(("host", "root"), (host, root), ends, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return found["host"], found["root"]


def test_both_ends_get_one_key_which_no_other_connection_has():
    keys = []
    for _ in range(2):
        host, root = both(lambda line: announce(line, "a", TOKEN), lambda line: meet(line, TOKEN, frozenset("ab")))
        assert host == root
        keys.append(host.key)
    assert keys[0] != keys[1]


@pytest.mark.parametrize(("token", "name"), [("another token, of others", "a"), (TOKEN, "c"), (TOKEN, "")])
def test_a_wrong_token_or_an_unknown_name_is_refused_by_the_root(token, name):
    _, root = both(lambda line: announce(line, name, token), lambda line: meet(line, TOKEN, frozenset("ab")))
    assert isinstance(root, AgentLost)


def test_a_root_that_does_not_know_the_token_gets_no_proof():
    host, _ = both(lambda line: announce(line, "a", TOKEN), lambda line: meet(line, "guessed", frozenset("ab")))
    assert isinstance(host, AgentLost)
    assert "does not know the token" in str(host)


def test_a_proof_that_was_heard_is_of_no_use_again():
    heard = bytearray()

    def eavesdropped(line):
        class Line:
            settimeout = line.settimeout
            recv = line.recv

            @staticmethod
            def sendall(said):
                heard.extend(said)
                line.sendall(said)

        return announce(Line, "a", TOKEN)

    host, _ = both(eavesdropped, lambda line: meet(line, TOKEN, frozenset("a")))
    assert host.name == "a"
    assert TOKEN.encode() not in heard

    def replay(line):
        line.sendall(heard)
        return line.recv(1000)

    assert isinstance(both(replay, lambda line: meet(line, TOKEN, frozenset("a")))[1], AgentLost)


@pytest.mark.parametrize(
    "said", [b"[" * 4000, b"GET / HTTP/1.1\r\n" * 9, handshake._MAGIC + bytes(32) + b"\xff\xff" + bytes(9000)]
)
def test_other_bytes_end_the_connection_before_a_proof_is_sent(said):
    def speak(line):
        line.sendall(said)
        return line.recv(1)

    host, root = both(speak, lambda line: meet(line, TOKEN, frozenset("a")))
    assert isinstance(root, AgentLost)
    assert host == b"" or isinstance(host, ConnectionError)


def test_secrets_in_arguments_are_masked_each_time_anew():
    secret = Secret("0123456789abcdef" * 2)
    arguments = ["127.0.0.1:1", {"token": secret, "max_seconds": 4.0}, 60.0]
    first, second = masked(arguments, b"key"), masked(arguments, b"key")
    assert first != second
    assert str(secret) not in f"{first}{second}"
    assert unmasked(first, b"key") == arguments
    with pytest.raises((ValueError, AssertionError)):
        assert unmasked(first, b"other") == arguments
