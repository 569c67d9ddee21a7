"""The lease of the connection to one piece of equipment, which one of the gateways that share a scope holds."""

import time
from collections.abc import AsyncIterator, Callable

import structlog
from msgspec import Struct

from edge.errors import Unavailable
from edge.station.equipment import Command, NotSent
from edge.store import equipment_leases
from edge.store.client import Store, block_ms
from edge.store.equipment_leases import LeaseHolder, LeaseView
from edge.store.instance_leases import LIFETIME_MS
from edge.ticks import next_tick

LOOK_EVERY_S = 1.0
_LIFETIME_S = LIFETIME_MS / 1000
CONNECTS_WITHIN_S = 10.0
"""A holder that is not connected for so long may not reach the equipment: another gateway tries."""

logger = structlog.get_logger(__name__)


class LeaseWatch(Struct):
    """Decides from the looks of a gateway whether the lease of another one may be taken; each has its second."""

    look_every_s: float
    _text: str | None = None
    _since: float = 0.0
    _looked: float = float("-inf")
    _sure_from: float = 0.0

    def look(self, seen: LeaseView, now: float) -> bool:
        """Return whether no gateway holds the lease, or one that has ended or cannot connect."""
        if now - self._looked > 2 * self.look_every_s:
            # This process or the store was stopped: the others may have been, and have to renew their leases first.
            self._sure_from, self._text = now + _LIFETIME_S, None
        self._looked = now
        if seen.text != self._text:
            self._text, self._since = seen.text, now
        if seen.holder is None:
            return True
        if not seen.is_at_work:
            return now >= self._sure_from
        return not seen.holder.is_connected and now - self._since >= CONNECTS_WITHIN_S


class EquipmentLease:
    """Implements `ConnectionLease` in the store; `monotonic` returns seconds of a clock that is never set."""

    def __init__(
        self,
        store: Store,
        scope: str,
        place: str,
        look_every_s: float = LOOK_EVERY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holder = ""
        self.has_changed = True
        self._store = store
        self._place = place
        self._keys = equipment_leases.keys_of(store, scope, place)
        self._look_every_s = look_every_s
        self._monotonic = monotonic
        self._written: str | None = None
        """The holder as this process has written or confirmed it last."""
        self._watch = LeaseWatch(look_every_s)

    async def acquire(self) -> None:
        """Wait until this gateway holds the lease; raises Unavailable without the store."""
        while not await self._try_to_acquire():
            await next_tick(self._look_every_s)

    async def confirm(self) -> None:
        """Record that this gateway is connected; raises Unavailable when it does not hold the lease any more."""
        if not await self._write(self._written, is_connected=True):
            raise Unavailable(f"another gateway connects to {self._place}")

    async def withdraw(self) -> None:
        """Record that this gateway is not connected any more; raises Unavailable without the store."""
        await self._write(self._written, is_connected=False)

    async def release(self) -> None:
        """Release the lease: another gateway may take it at once. Raises Unavailable without the store."""
        if self._written is not None:
            await equipment_leases.release(self._store, self._keys, self._written)

    async def pass_on(self, command: Command) -> None:
        """Pass a command to the gateway that is connected; raises NotSent when none is."""
        seen = await equipment_leases.load(self._store, self._keys)
        is_there = seen.holder is not None and seen.holder.is_connected and seen.is_at_work
        if not is_there or not await equipment_leases.pass_on(self._store, self._keys, seen.text or "", command):
            raise NotSent(f"gateway {self.holder} connects to {self._place} and is not connected")

    async def passed(self) -> AsyncIterator[Command]:
        """Yield the commands of other gateways; raises Unavailable when this one does not hold the lease any more."""
        while True:
            try:
                text = (await equipment_leases.load(self._store, self._keys)).text
                is_held = text == self._written
                command = await self._next_passed() if is_held else None
            except Unavailable:
                # The connection to the equipment lasts: it may work for a command.
                await next_tick(self._look_every_s)
                continue
            if not is_held:
                raise Unavailable(f"another gateway connects to {self._place}")
            if command is not None:
                yield command

    async def _next_passed(self) -> Command | None:
        return await equipment_leases.next_passed(self._store, self._keys, block_ms(), Command)

    async def _try_to_acquire(self) -> bool:
        seen = await equipment_leases.load(self._store, self._keys)
        is_free = self._watch.look(seen, self._monotonic())
        is_ours = seen.holder is not None and seen.holder.instance == self._store.consumer
        if is_ours or is_free:
            has_changed = self._written is None or seen.text != self._written
            if not await self._write(seen.text, is_connected=False):
                return False
            self.has_changed, self.holder = has_changed, ""
            return True
        if seen.holder is not None and seen.holder.instance != self.holder:
            self.holder = seen.holder.instance
            logger.info("another gateway connects to equipment", at=self._place, gateway=self.holder)
        return False

    async def _write(self, before: str | None, *, is_connected: bool) -> bool:
        """Write this gateway as the holder in place of `before`; return False when another one was faster."""
        after = LeaseHolder(self._store.consumer, is_connected)
        text = equipment_leases.text_of(after)
        if text == before and not is_connected:
            self._written = text
            return True
        if not await equipment_leases.replace(self._store, self._keys, before, after):
            return False
        self._written = text
        return True
