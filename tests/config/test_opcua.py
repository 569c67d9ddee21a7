"""Limits of the OPC UA server that contradict each other are reported, each with its key."""

import msgspec
import pytest

from edge.config import OpcuaSettings


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, []),
        ({"max_connections": 50, "max_sessions": 50}, []),
        ({"max_connections": 51}, ["max_sessions"]),
        ({"max_subscriptions": 19}, ["max_subscriptions"]),
        ({"reverse_connect": ("opc.tcp://scada:4841", "opc.tcp://[::1]")}, []),
        (
            {"reverse_connect": ("http://scada", "opc.tcp://", "opc.tcp://a:0", "opc.tcp://a:x")},
            ["reverse_connect"] * 4,
        ),
        ({"reverse_connect": ("opc.tcp://a",) * 2}, ["reverse_connect"]),
        ({"reverse_connect": tuple(f"opc.tcp://a{n}" for n in range(9))}, ["reverse_connect"]),
        ({"reverse_connect": ("opc.tcp://a",), "endpoint": ""}, ["reverse_connect"]),
        ({"advertise": True}, []),
        ({"advertise": True, "endpoint": ""}, ["advertise"]),
        ({"advertise": True, "endpoint": "opc.tcp://127.0.0.1:4840"}, ["advertise"]),
        ({"advertise": True, "endpoint": "opc.tcp://127.0.1.1:4840"}, ["advertise"]),
        ({"advertise": True, "endpoint": "opc.tcp://0.0.0.0:0"}, ["advertise"]),
        # An endpoint that is not a URL is reported where its form is checked.
        ({"advertise": True, "endpoint": "opc.tcp://a:x"}, []),
        ({"advertise": True, "endpoint": "opc.tcp://[::1"}, []),
        ({"max_connections": 60, "max_subscriptions": 1}, ["max_sessions", "max_subscriptions"]),
    ],
)
def test_conflicting_limits_are_reported(keys: dict[str, int], expected: list[str]) -> None:
    conflicts = msgspec.structs.replace(OpcuaSettings(), **keys).conflicts()
    assert [str(conflict).partition(":")[0] for conflict in conflicts] == expected
