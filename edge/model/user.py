"""The roles of users, which are the same on all ways, and the sessions of people and programs."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from edge.foundation.text import Text
from edge.model.instant import Instant, rfc3339
from edge.model.recipe import Intervention


class Role(IntEnum):
    """A role includes the permissions of the ones before it (names and meaning: OPC 10000-3, 4.9.2)."""

    OBSERVER = 1
    OPERATOR = 2
    ENGINEER = 3

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _ROLES[self]


_ROLES: Final = {
    Role.OBSERVER: Text.of("observer"),
    Role.OPERATOR: Text.of("operator"),
    Role.ENGINEER: Text.of("engineer"),
}


INTERVENTION_ROLES: Mapping[Intervention, Role] = MappingProxyType(
    {
        Intervention.RETRY: Role.OPERATOR,
        Intervention.SKIP: Role.OPERATOR,
        Intervention.FORCE: Role.ENGINEER,
        Intervention.COMPLETE: Role.ENGINEER,
    }
)
"""The lowest role for each intervention in a job."""


SessionWay = Literal["opcua", "cli", "web"]


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as it is stored. `since` is in milliseconds since the epoch; `ended` asks its gateway to end it."""

    user: str
    role: str
    way: SessionWay
    instance: str
    since: int
    address: str = ""
    client: str = ""
    ended: bool = False


class PublicSession(Struct, frozen=True, kw_only=True):
    """A session as `--json` and the HTTP API state it; `gateway` is the one that keeps it."""

    id: str
    user: str
    role: str
    way: SessionWay
    gateway: str
    address: str
    client: str
    since: Instant
    last_activity: Instant


def public_session(id: str, session: Session, last_activity: Instant) -> PublicSession:
    """Return the public form of a session."""
    return PublicSession(
        id=id,
        user=session.user,
        role=session.role,
        way=session.way,
        gateway=session.instance,
        address=session.address,
        client=session.client,
        since=rfc3339(session.since),
        last_activity=last_activity,
    )


class PublicToken(Struct, frozen=True, kw_only=True):
    """A token of a user; `until` is the last day on which it is valid (RFC 3339, `full-date`)."""

    id: str
    until: str


class PublicUser(Struct, frozen=True, kw_only=True):
    """A user as `--json` and the HTTP API state it: no secret leaves the gateway.

    `pin` and `badge`: the user has one, to log in at a panel.
    `second_factor_missing`: the settings require one of this role. `tokens` and `recovery_codes` are their numbers.
    """

    name: str
    role: str
    second_factor: bool
    second_factor_missing: bool
    recovery_codes: int
    pin: bool
    badge: bool
    tokens: int
    valid_tokens: tuple[PublicToken, ...]
