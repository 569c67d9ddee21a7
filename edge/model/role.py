"""The roles of users, the same over OPC UA, on the command line and on the page."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

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
