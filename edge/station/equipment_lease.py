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
from edge.ticks import next_tick

LOOK_EVERY_S = 1.0
CONNECTS_WITHIN_S = 10.0
"""A holder that is not connected for so long may not reach the equipment: another gateway tries."""
_PAUSE_S = 2 * LOOK_EVERY_S

logger = structlog.get_logger(__name__)


class ConnectionWatch(Struct):
    """Decides from the looks of a gateway whether the holder of a lease cannot connect; each look has its second."""

    _text: str | None = None
    _since: float = 0.0
    _looked: float = float("-inf")

    def look(self, seen: LeaseView, now: float) -> bool:
        """Return whether a holder has not connected in time."""
        # After a pause of this process or of the store, the holder has its time again.
        has_paused = now - self._looked > _PAUSE_S
        self._looked = now
        if has_paused or seen.text != self._text:
            self._text, self._since = seen.text, now
        return seen.holder is not None and not seen.holder.is_connected and now - self._since >= CONNECTS_WITHIN_S


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
        self._watch = ConnectionWatch()

    async def acquire(self) -> None:
        """Wait until this gateway holds the lease; raises Unavailable without the store."""
        while not await self._try_to_acquire():
            await next_tick(self._look_every_s)

    async def confirm(self) -> None:
        """Record that this gateway is connected; raises Unavailable when it does not hold the lease any more."""
        if not await self._update(is_connected=True):
            raise Unavailable(f"another gateway connects to {self._place}")

    async def withdraw(self) -> None:
        """Record that this gateway is not connected any more; raises Unavailable without the store."""
        await self._update(is_connected=False)

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
        cannot_connect = self._watch.look(seen, self._monotonic())
        holder = seen.holder
        is_ours = holder is not None and holder.instance == self._store.consumer
        if holder is None or is_ours or not seen.is_at_work or cannot_connect:
            has_changed = self._written is None or seen.text != self._written
            ours = LeaseHolder(self._store.consumer)
            if holder != ours and not await equipment_leases.take(self._store, self._keys, seen, ours):
                return False
            self._written = equipment_leases.text_of(ours)
            self.has_changed, self.holder = has_changed, ""
            return True
        if holder.instance != self.holder:
            self.holder = holder.instance
            logger.info("another gateway connects to equipment", at=self._place, gateway=self.holder)
        return False

    async def _update(self, *, is_connected: bool) -> bool:
        """Write whether this gateway is connected; return False when another one has taken the lease."""
        after = LeaseHolder(self._store.consumer, is_connected)
        if not await equipment_leases.update(self._store, self._keys, self._written or "", after):
            return False
        self._written = equipment_leases.text_of(after)
        return True
