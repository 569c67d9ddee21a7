"""The lease of the connection to one piece of equipment, which one of the gateways that share a scope holds."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from edge.features.openprotocol import lease_store as equipment_leases
from edge.features.openprotocol.lease_store import LeaseView
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick
from edge.station.equipment import Command, NotSent
from edge.store.client import Store, block_ms

LOOK_EVERY_S = 1.0
CONNECTS_WITHIN_S = 10.0
"""A holder that is not connected for so long may not reach the equipment: another gateway tries."""
_PAUSE_S = 2 * LOOK_EVERY_S
_LOOK_AGAIN_S: Final = 0.1
_ANSWERS_WITHIN_S: Final = 0.5
"""How long a tool stays enabled for the question whether another gateway works with it."""
_LOGGED_CHARACTERS: Final = 200

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


class LeaseLostError(NotSent):
    """Another gateway has taken the lease."""


class EquipmentLease:
    """Implements `ConnectionLease` in the store; `monotonic` returns seconds of a clock that is never set."""

    def __init__(
        self,
        store: Store,
        scopes: Collection[str],
        place: str,
        look_every_s: float = LOOK_EVERY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holder = ""
        self.has_changed = True
        self._place = place
        self._leases = equipment_leases.leases_at(store, scopes, place)
        self._own = store.own_lease
        self._look_every_s = look_every_s
        self._monotonic = monotonic
        self._written: str | None = None
        """The holder as this process has written or confirmed it last."""
        self._confirmed_in = 0
        """The term of the lease of this instance in which this lease was found ours last."""
        self._watch = ConnectionWatch()

    async def acquire(self) -> None:
        """Wait until this gateway holds the lease; raises Unavailable without the store, or for an unreadable lease."""
        while not await self._try_to_acquire():
            await next_tick(self._look_every_s)

    async def confirm(self) -> None:
        """Record that this gateway is connected; raises Unavailable when it does not hold the lease any more."""
        term = self._own.term
        if not await self._update(is_connected=True):
            raise self._lost()
        self._confirmed_in = term

    async def ensure(self) -> None:
        """Return when no other gateway can take the lease for a moment; raises NotSent when another one holds it.

        A process that was frozen looks after its next renewal. It waits while the store is unavailable.
        """
        while not self._is_certain:
            try:
                if self._own.is_certain:
                    await self._look()
                    continue
            except LeaseLostError:
                raise
            except Unavailable as error:
                logger.info("lease of equipment not confirmed", at=self._place, reason=error.message)
            await next_tick(_LOOK_AGAIN_S)

    async def refuse_if_lost(self) -> None:
        """Raise NotSent when another gateway holds the lease; return where the store does not answer soon."""
        if self._is_certain:
            return
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN_S):
                await self._look()
        except LeaseLostError:
            raise
        except (Unavailable, TimeoutError) as error:
            logger.info("lease of equipment not confirmed", at=self._place, reason=str(error))

    @property
    def _is_certain(self) -> bool:
        return self._own.is_certain and self._own.term == self._confirmed_in

    async def _look(self) -> None:
        """Read whether this lease is still ours; raises NotSent when it is not, Unavailable without the store."""
        term = self._own.term
        if not await equipment_leases.is_held(self._leases, self._written or ""):
            raise self._lost()
        self._confirmed_in = term

    async def withdraw(self) -> None:
        """Record that this gateway is not connected any more; raises Unavailable without the store."""
        await self._update(is_connected=False)

    async def release(self) -> None:
        """Release the lease: another gateway may take it at once. Raises Unavailable without the store."""
        if self._written is not None:
            await equipment_leases.release(self._leases, self._written)

    async def pass_on(self, command: Command) -> None:
        """Pass a command to the gateway that is connected; raises NotSent when none is, or it has not this scope."""
        lease_view = await equipment_leases.load(self._leases)
        holder = lease_view.holder
        if holder is not None and command.scope not in holder.scopes:
            raise NotSent(
                Text.of(
                    "gateway {instance} connects to {place} and does not serve scope {scope}",
                    instance=holder.instance,
                    place=self._place,
                    scope=command.scope,
                ),
                "Set the same [gateway] scopes for both gateways.",
            )
        is_there = holder is not None and holder.is_connected
        if not is_there or not await equipment_leases.pass_on(self._leases, lease_view, command):
            raise NotSent(
                Text.of(
                    "gateway {holder} connects to {place} and is not connected", holder=self.holder, place=self._place
                )
            )

    async def passed(self) -> AsyncGenerator[Command | None, None]:
        """Yield the commands of other gateways, None for one that cannot be read; remove each after it was taken.

        Raises Unavailable when this gateway does not hold the lease any more.
        """
        taken: str | None = None
        while True:
            try:
                taken = await self._first_passed(taken)
            except LeaseLostError:
                raise
            except Unavailable:
                # The connection to the equipment lasts: it may work for a command. What was passed stays in the list.
                await next_tick(self._look_every_s)
                continue
            if taken is not None:
                yield _readable(taken)

    async def _first_passed(self, taken: str | None) -> str | None:
        """Remove what was taken, and wait for the next command; the lease is ours before and after."""
        await self._remove_passed(taken)
        found = await equipment_leases.first_passed(self._leases, block_ms())
        if found is not None:
            await self._remove_passed(None)
        return found

    async def _remove_passed(self, taken: str | None) -> None:
        if not await equipment_leases.remove_passed(self._leases, self._written or "", taken):
            raise self._lost()

    def _lost(self) -> LeaseLostError:
        return LeaseLostError(Text.of("another gateway connects to {place}", place=self._place))

    async def _try_to_acquire(self) -> bool:
        lease_view = await equipment_leases.load(self._leases)
        cannot_connect = self._watch.look(lease_view, self._monotonic())
        if lease_view.holder is None or cannot_connect:
            has_changed = self._written is None or lease_view.ours != self._written
            ours = equipment_leases.text_of(self._leases.holder())
            is_ours = lease_view.ours == ours and not lease_view.replaced
            if not is_ours and not await equipment_leases.take(self._leases, lease_view):
                return False
            self._written = ours
            self.has_changed, self.holder = has_changed, ""
            return True
        if lease_view.holder.instance != self.holder:
            self.holder = lease_view.holder.instance
            logger.info("another gateway connects to equipment", at=self._place, gateway=self.holder)
        return False

    async def _update(self, *, is_connected: bool) -> bool:
        """Write whether this gateway is connected; return False when another one has taken the lease."""
        after = self._leases.holder(is_connected=is_connected)
        if not await equipment_leases.update(self._leases, self._written or "", after):
            return False
        self._written = equipment_leases.text_of(after)
        return True


def _readable(text: str) -> Command | None:
    try:
        return msgspec.json.decode(text, type=Command)
    except msgspec.DecodeError:
        logger.warning("passed command cannot be read", text=text[:_LOGGED_CHARACTERS])
        return None
