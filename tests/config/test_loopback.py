"""Loopback addresses are recognised in every notation."""

import pytest

from edge.config.loopback import is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("gw", False)],  # noqa: S104
)
def test_loopback_address_is_recognised(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected
