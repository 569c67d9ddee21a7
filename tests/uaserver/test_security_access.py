"""The access rules for channels, users and roles, case by case."""

from pathlib import Path

import pytest

from edge.config import OpcuaSettings
from edge.model.user import Role
from edge.opcua.access import Caller, Peer
from edge.uaserver.security import AccessControl
from tests.passwords import PASSWORD
from tests.uaserver.clients import make_settings, with_users

NEAR, FAR = "127.0.0.1", "192.0.2.1"


def admission(directory: Path, **others: str) -> AccessControl:
    return AccessControl(with_users(make_settings(directory, **others)))


@pytest.mark.parametrize(
    ("anonymous", "peer", "role"),
    [
        ("nobody", Peer(NEAR, is_encrypted=True), None),
        ("observer", Peer(FAR, is_encrypted=False), Role.OBSERVER),
        ("observer", Peer(FAR, is_encrypted=True), Role.OBSERVER),
        ("operator", Peer(FAR, is_encrypted=True), Role.OPERATOR),
        ("engineer", Peer(FAR, is_encrypted=False), Role.OBSERVER),
        ("engineer", Peer(NEAR, is_encrypted=False), Role.ENGINEER),
        ("engineer", Peer("::1", is_encrypted=False), Role.ENGINEER),
        ("engineer", Peer("::ffff:127.0.0.1", is_encrypted=False), Role.ENGINEER),
        ("engineer", Peer("::ffff:192.0.2.1", is_encrypted=False), Role.OBSERVER),
        ("engineer", Peer("", is_encrypted=False), Role.OBSERVER),
    ],
)
def test_role_of_an_anonymous_client_depends_on_settings_and_channel(
    tmp_path: Path, anonymous: str, peer: Peer, role: Role | None
) -> None:
    caller = admission(tmp_path, anonymous=anonymous, security="none").anonymous(peer)
    assert (caller and caller.role) == role


async def test_a_user_logs_in_on_an_encrypted_channel(tmp_path: Path) -> None:
    peer = Peer(FAR, is_encrypted=True, application="urn:scada")
    caller = await admission(tmp_path).user("operator", PASSWORD, peer)
    assert caller == Caller("operator", Role.OPERATOR, "urn:scada", FAR)


async def test_password_on_an_unencrypted_channel_is_refused(tmp_path: Path) -> None:
    for address in (NEAR, FAR):
        peer = Peer(address, is_encrypted=False)
        assert await admission(tmp_path, security="none").user("operator", PASSWORD, peer) is None


def test_default_settings_require_encryption_and_allow_no_changes() -> None:
    delivered = AccessControl(OpcuaSettings())
    assert not delivered.allows_unencrypted
    caller = delivered.anonymous(Peer(NEAR, is_encrypted=True))
    assert caller
    assert caller.role is Role.OBSERVER
