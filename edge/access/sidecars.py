"""Registers sidecars, which call the gateway, as components of the plant."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct

from edge.access.components import HEARTBEAT_S, another_holder
from edge.foundation.errors import Refused
from edge.model.component import Component
from edge.store import components
from edge.store.client import Store
from edge.store.commit import join
from edge.store.components import KnownComponent

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LIVES_S: Final = 3 * HEARTBEAT_S
MOST_SIDECARS: Final = 100
"""The most sidecars of a store: whoever may call can register under any name."""

_Short = Annotated[str, Meta(max_length=200)]


class SidecarReport(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sidecar says of itself; `token` is a random text of its start, `started` is in milliseconds."""

    id: str
    token: Annotated[str, Meta(min_length=8, max_length=200)]
    version: Annotated[str, Meta(max_length=64)] = ""
    started: Annotated[int, Meta(ge=0, lt=1 << 53)] = 0
    host: _Short = ""
    problems: _Short = ""
    labels: Annotated[Mapping[Annotated[str, Meta(max_length=64)], _Short], Meta(max_length=16)] = {}


async def register_sidecar(store: Store, report: SidecarReport, now_s: int) -> float:
    """Register a sidecar, or write its sign of life; return the seconds within which the next one is expected.

    Raises Refused when the name is invalid, another sidecar of this name shows signs of life, a gateway or worker has
    it, or too many sidecars live.
    """
    if not _NAME.fullmatch(report.id):
        raise Refused("component", f"{report.id[:80]!r} is not a name of a component", "Use letters and digits.")
    every = await components.load_all(store)
    known = every.get(report.id)
    is_other = known is not None and known.token not in {"", report.token}
    if known is not None and (known.component.kind != "sidecar" or (is_other and now_s - known.seen_s < _LIVES_S)):
        raise another_holder(report.id)
    is_same = known is not None and known.token == report.token
    found = Component(
        id=report.id,
        kind="sidecar",
        version=report.version,
        started=report.started or (known.component.started if known and is_same else now_s * 1000),
        host=report.host,
        labels=dict(report.labels),
        problems=report.problems,
    )
    keys = store.keys
    gone = [] if known else _replaced(every, now_s)
    parts = [*([components.remove(keys, gone)] if gone else []), components.touch(keys, report.id, now_s)]
    if not is_same:
        parts.append(components.take(keys, report.id, report.token))
    if known is None or known.component != found:
        parts.append(components.put(keys, found))
    await store.commit(join(parts))
    return HEARTBEAT_S


def _replaced(every: Mapping[str, KnownComponent], now_s: int) -> list[str]:
    """Return the sidecar that makes room for a new one: the one silent for longest. Raises Refused when all live."""
    sidecars = {
        id: known_component.seen_s
        for id, known_component in every.items()
        if known_component.component.kind == "sidecar"
    }
    if len(sidecars) < MOST_SIDECARS:
        return []
    oldest = min(sidecars, key=sidecars.__getitem__)
    if now_s - sidecars[oldest] < _LIVES_S:
        advice = "Look at the list: edge fleet list"
        raise Refused("component", f"{len(sidecars)} sidecars work on this store already", advice)
    return [oldest]
