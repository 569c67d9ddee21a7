"""Local peers are distinguished from remote ones; a role includes the permissions of all lower roles."""

import pytest

from edge.model.user import Role
from edge.opcua.access import Peer


@pytest.mark.parametrize(
    ("address", "is_local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.0.2.7", False),
     ("::ffff:192.0.2.7", False), ("fe80::1", False), ("", False), ("localhost", False)],
)  # fmt: skip
def test_only_loopback_addresses_are_local(address: str, is_local: bool) -> None:  # noqa: FBT001 - a table
    assert Peer(address, is_encrypted=False).is_local is is_local


def test_roles_are_ordered_by_permission() -> None:
    assert Role.OBSERVER < Role.OPERATOR < Role.ENGINEER
