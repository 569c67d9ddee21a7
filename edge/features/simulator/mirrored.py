"""Applies the entries of a script about mirrored sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge.sfc.mirror_copy import MirrorCopy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def mirrored(known: Mapping[str, MirrorCopy], entries: Mapping[str, Iterable[str] | None]) -> dict[str, MirrorCopy]:
    """Return the copies after an entry of a script: new members by name; None makes the last copy stale."""
    after = dict(known)
    for name, members in entries.items():
        if members is not None:
            after[name] = MirrorCopy(frozenset(members))
        elif name in after:
            after[name] = MirrorCopy(after[name].members, is_stale=True)
    return after
