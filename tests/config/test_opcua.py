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
        ({"max_connections": 60, "max_subscriptions": 1}, ["max_sessions", "max_subscriptions"]),
    ],
)
def test_limits_that_contradict_each_other_are_reported(keys: dict[str, int], expected: list[str]) -> None:
    conflicts = msgspec.structs.replace(OpcuaSettings(), **keys).conflicts()
    assert [each.partition(":")[0] for each in conflicts] == expected
