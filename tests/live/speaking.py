"""What the ends of a measurement say to each other, byte by byte: for tests of what they may not say."""

import hmac
import json
import os
import socket
import struct

MAGIC, VERSION = b"XWND", 3
CONTROL, DATA, LOAD, PING = range(4)
HEAD = struct.Struct(">4sHH")
NO_TOKEN = b"crosswind without a token"


def greeting(role=CONTROL, nonce=bytes(32), magic=MAGIC, version=VERSION):
    return HEAD.pack(magic, version, role) + nonce


def exactly(connection, count):
    return connection.recv(count, socket.MSG_WAITALL)


def say(connection, message):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    connection.sendall(struct.pack(">I", len(text)) + text)


def hear(connection):
    """The next frame; None when the other end has hung up."""
    head = exactly(connection, 4)
    return json.loads(exactly(connection, struct.unpack(">I", head)[0])) if len(head) == 4 else None


def signed(key, word, nonces, name=""):
    message = word + MAGIC + struct.pack(">H", VERSION) + b"".join(nonces) + bytes(32) + name.encode()
    return hmac.digest(key, message, "sha256")


def met(connection, role):
    """Greet; what both have drawn."""
    own = os.urandom(32)
    connection.sendall(greeting(role, own))
    return own, exactly(connection, 40)[8:]


def control(connection, token=NO_TOKEN):
    """Prove that one knows the token; the key of what will belong to the connection."""
    nonces = met(connection, CONTROL)
    say(connection, {"proof": list(signed(token, b"crosswind, a caller ", nonces, "control"))})
    answer = hear(connection)
    assert answer["type"] == "proved", answer
    return signed(token, b"key for what belongs", nonces)


def open_session(connection, channels=()):
    say(connection, {"type": "open", "channels": list(channels)})
    return hear(connection)["session"]


def belong(connection, role, session, channel, key):
    """Say whose a connection is, with the session's key."""
    proof = signed(key, b"crosswind, a caller ", met(connection, role), f"{role} {session} {channel}")
    say(connection, {"session": session, "channel": channel, "proof": list(proof)})


def be_met(connection, token=NO_TOKEN):
    """Be a listener: let a control connection be proved and a session be opened, or let a connection belong to it."""
    caller, own = exactly(connection, 40), os.urandom(32)
    connection.sendall(greeting(0, own))
    hear(connection)
    if HEAD.unpack(caller[:8])[2] != CONTROL:
        say(connection, {"type": "done"})
        return
    proof = signed(token, b"crosswind, listening", (caller[8:], own), "control")
    say(connection, {"type": "proved", "proof": list(proof)})
    hear(connection)
    say(connection, {"type": "opened", "session": 1, "host": "", "boot": ""})
