"""Copies of mirrored sets as a decision sees them, and which of their members it has asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from edge.expression.value import UNKNOWN, Truth


class MirrorCopy(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The members of a mirrored set as read last; `is_stale` while it cannot be read any more.

    `others` is None for a whole copy. A recorded copy holds only what a decision asked for: `others` are the names that
    were not members, and nothing is known of the rest.
    """

    members: frozenset[str] = frozenset()
    is_stale: bool = False
    others: frozenset[str] | None = None

    def has(self, member: str) -> Truth:
        """Return whether a name is a member; UNKNOWN when a recorded copy does not say it."""
        if member in self.members:
            return True
        return False if self.others is None or member in self.others else UNKNOWN

    def __str__(self) -> str:
        number = len(self.members)
        return f"a copy of {number} member{'s' if number != 1 else ''}{', stale' if self.is_stale else ''}"


Mirrors: TypeAlias = Mapping[str, MirrorCopy]
"""The copies by the name of their mirror; one that was not read yet is absent."""

NO_MIRRORS: Final[Mirrors] = MappingProxyType({})


class AskedMirrors:
    """The copies that a decision sees; collects what it asks for, so that its record can repeat it."""

    __slots__ = ("_copies", "recorded")

    def __init__(self, copies: Mirrors) -> None:
        self._copies = copies
        self.recorded: dict[str, MirrorCopy] = {}

    def is_stale(self, name: str) -> Truth:
        """Return whether a mirror is stale; UNKNOWN before it was read."""
        recorded = self._recorded(name)
        return UNKNOWN if recorded is None else recorded.is_stale

    def has(self, name: str, member: str) -> Truth:
        """Return whether a mirror has a member; UNKNOWN before it was read."""
        recorded = self._recorded(name)
        if recorded is None:
            return UNKNOWN
        found = self._copies[name].has(member)
        if recorded.has(member) is UNKNOWN and found is not UNKNOWN:
            members = recorded.members | {member} if found else recorded.members
            others = recorded.others or frozenset()
            self.recorded[name] = MirrorCopy(members, recorded.is_stale, others if found else others | {member})
        return found

    def show(self, name: str) -> str:
        """Return the state of a mirror as text."""
        return str(self._copies.get(name, "not read yet"))

    def _recorded(self, name: str) -> MirrorCopy | None:
        """Return what is recorded of a mirror so far; None before the mirror was read."""
        copy = self._copies.get(name)
        if copy is None:
            return None
        return self.recorded.setdefault(name, MirrorCopy(is_stale=copy.is_stale, others=frozenset()))
