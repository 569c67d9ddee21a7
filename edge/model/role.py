"""The roles of users, the same over OPC UA, on the command line and on the page."""

from enum import IntEnum


class Role(IntEnum):
    """A role includes the permissions of the ones before it (names and meaning: OPC 10000-3, 4.9.2)."""

    OBSERVER = 1
    OPERATOR = 2
    ENGINEER = 3
