"""The newest STATE message of a host is used; older and malformed ones are ignored."""

import json

import pytest

from edge.features.sparkplug.session import HostState, read_state


def state(online: object, timestamp: object) -> bytes:
    """Return a STATE message."""
    return json.dumps({"online": online, "timestamp": timestamp}).encode()


@pytest.mark.parametrize(
    ("known", "payload", "expected"),
    [
        (HostState(), state(True, 5), HostState(True, 5)),
        (HostState(), state(False, 5), HostState(False, 5)),
        (HostState(True, 5), state(False, 5), HostState(False, 5)),
        (HostState(False, 5), state(True, 6), HostState(True, 6)),
        (HostState(), b'{"online":true,"timestamp":1,"more":[]}', HostState(True, 1)),
    ],
)
def test_newest_host_state_is_used(known: HostState, payload: bytes, expected: HostState) -> None:
    assert read_state(known, payload) == expected


def test_older_state_is_ignored() -> None:
    assert read_state(HostState(True, 5), state(False, 4)) == "it is older than the state before"


@pytest.mark.parametrize(
    "payload",
    [b"", b"ONLINE", b"\xff", b"[]", b'{"online":1,"timestamp":1}', b'{"online":true}', b"[" * 3000, bytes(5000)],
)
def test_malformed_host_state_is_ignored(payload: bytes) -> None:
    assert isinstance(read_state(HostState(), payload), str)
