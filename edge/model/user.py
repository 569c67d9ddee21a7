"""The roles of users, which are the same on all ways, and the sessions of people and programs."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from edge.model.recipe import Intervention


class Role(IntEnum):
    """A role includes the permissions of the ones before it (names and meaning: OPC 10000-3, 4.9.2)."""

    OBSERVER = 1
    OPERATOR = 2
    ENGINEER = 3


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
