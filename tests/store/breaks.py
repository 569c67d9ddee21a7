"""Breaks in the confirmation of a primary, as the sentinels cause them, on a store without sentinels."""

import asyncio

from edge.store.client import HighAvailability, Store
from edge.store.connection import CommandConnection, Endpoint
from edge.store.fence import Fence
from edge.store.generation import GenerationCheck
from edge.store.replication import Replication
from edge.store.sentinels import Primary, SentinelAddress, Sentinels, SentinelView

_PRIMARY = Primary("127.0.0.1", 6379, 1)


def break_confirmation(store: Store) -> Fence:
    """Return the fence that a store gets, whose primary was confirmed until now."""
    fence = Fence(_PRIMARY, asyncio.get_running_loop().time)
    _hear(fence, -1.0)
    fence.note_break()
    sentinels = Sentinels(SentinelAddress("line", (), Endpoint()))
    replication = Replication(CommandConnection(Endpoint()), store.keys.replication_mark(), (), least=0)
    store.ha = HighAvailability(sentinels, fence, GenerationCheck(store.keys, _PRIMARY), replication)
    return fence


def confirm(fence: Fence) -> None:
    """Confirm the primary for an hour, as its only sentinel."""
    _hear(fence, 3600.0)


def _hear(fence: Fence, for_s: float) -> None:
    flags = frozenset({"master"})
    fence.take(SentinelView("a", fence.primary, flags, 0.0, for_s, 180.0, 1, 1), asyncio.get_running_loop().time())
