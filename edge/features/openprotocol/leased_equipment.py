"""Equipment that one gateway connects to: of the gateways that share a scope, that with its lease.

The others pass their commands to it, and one of them connects when it ends. A controller with one tool has one queue of
commands then, and serves one client.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol, TypeAlias

from edge.equipment.connected_equipment import ConnectedEquipment, open_connected
from edge.equipment.device import Connector, Device, DeviceEvents
from edge.equipment.remembered_text import Memory
from edge.foundation.errors import Unavailable, unwrap_group
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_health import OpenSafing
from edge.sfc.signal import Phase
from edge.station.equipment import Command, NotSent, Repetition, StationPort
from edge.store.background import retry_while_unavailable

_PAUSE_S = 0.05


class ConnectionLease(Protocol):
    """The right to connect to one piece of equipment: one of the gateways that share a scope holds it.

    `holder` is the other gateway that holds it, empty when this one does. `has_changed` says whether another gateway
    may have held it since the last connection. Example: `await lease.acquire()`, then connect and `confirm`.
    """

    holder: str
    has_changed: bool

    async def acquire(self) -> None:
        """Wait until this gateway holds the lease; raises Unavailable without the store."""

    async def confirm(self) -> None:
        """Record that this gateway is connected; raises Unavailable when it does not hold the lease any more."""

    async def ensure(self) -> None:
        """Return when no other gateway can take the lease for a moment; raises NotSent when another one holds it.

        Call it right before a message that begins work leaves. It waits while the store is unavailable.
        """

    async def refuse_if_lost(self) -> None:
        """Raise NotSent when another gateway holds the lease; return where the store does not answer soon.

        Call it right before a message that ends work leaves.
        """

    async def withdraw(self) -> None:
        """Record that this gateway is not connected any more; raises Unavailable without the store."""

    async def release(self) -> None:
        """Release the lease: another gateway may take it at once. Raises Unavailable without the store."""

    async def pass_on(self, command: Command) -> None:
        """Pass a command to the gateway that is connected; raises NotSent when none is."""

    def passed(self) -> AsyncIterator[Command | None]:
        """Yield the commands of other gateways, None for one that cannot be read; each stays until it was taken.

        Raises Unavailable when this gateway does not hold the lease any more.
        """


LeaseOf: TypeAlias = Callable[[Collection[str], str], ConnectionLease]
"""Returns the lease of the connection to a place, for a gateway that serves these scopes."""


class OnlyLease:
    """The lease of equipment that no other gateway connects to; as `ConnectionLease`."""

    def __init__(self) -> None:
        self.holder = ""
        self.has_changed = True

    async def acquire(self) -> None:
        """Return at once."""

    async def confirm(self) -> None:
        """Record that this gateway was connected."""
        self.has_changed = False

    async def ensure(self) -> None:
        """Return at once."""

    async def refuse_if_lost(self) -> None:
        """Return at once."""

    async def withdraw(self) -> None:
        """Keep the lease."""

    async def release(self) -> None:
        """Keep the lease: no other gateway waits for it."""

    async def pass_on(self, command: Command) -> None:
        """Raise NotSent: no other gateway is connected."""
        raise NotSent("no other gateway is connected")

    async def passed(self) -> AsyncIterator[Command | None]:
        """Yield nothing: no other gateway passes commands."""
        for command in await asyncio.get_running_loop().create_future():
            yield command


def only_lease(_scopes: Collection[str], _place: str) -> ConnectionLease:
    """Return the lease of equipment that no other gateway connects to."""
    return OnlyLease()


class LeasedMemory:
    """The texts of equipment that only the gateway with its lease writes: one that was frozen knows older ones."""

    def __init__(self, memory: Memory, lease: ConnectionLease) -> None:
        self._lease = lease
        self._memory = memory
        self.recall = memory.recall

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        """Remember these texts; raises NotSent when another gateway holds the lease, Unavailable without the store."""
        await self._lease.refuse_if_lost()
        await self._memory.remember(equipment, texts)


class LeasedEquipment:
    """The port of equipment for a gateway: its own connection, or the gateway that holds the lease."""

    def __init__(self, equipment: ConnectedEquipment, lease: ConnectionLease) -> None:
        self.name = equipment.name
        self._equipment = equipment
        self._lease = lease

    @property
    def connected(self) -> bool | None:
        """Whether it is connected; None where another gateway connects to it."""
        return self.connection.connected

    @property
    def connection(self) -> ConnectionState:
        """The connection of this gateway, or the gateway that connects to it."""
        holder = self._lease.holder
        return ConnectionState(holder=holder) if holder else self._equipment.connection

    @property
    def problem(self) -> str | Text:
        """The reason why the connected device cannot execute commands; empty when it can."""
        return self._equipment.problem

    @property
    def connection_count(self) -> int:
        """The number of connections since the start."""
        return self._equipment.connection_count

    @property
    def open_release(self) -> OpenSafing | None:
        """The release of its tool that the device has not confirmed; None when it has, or another gateway connects."""
        return None if self._lease.holder else self._equipment.open_release

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs of the connected device; empty where it cannot list them."""
        return self._equipment.programs

    def repetition_of(self, type_id: str) -> Repetition:
        """Return what a start that is sent a second time may do."""
        return self._equipment.repetition_of(type_id)

    def withdraw(self, command_id: str) -> bool:
        """Drop a start that waits in memory; return False for one that may have been on its way to the device."""
        return self._equipment.withdraw(command_id)

    async def send(self, command: Command) -> None:
        """Queue a start, or pass it on; raises NotSent while no gateway is connected."""
        await (self._lease.pass_on(command) if await self._is_elsewhere() else self._equipment.send(command))

    async def reset(self, command: Command) -> None:
        """Queue a reset ahead of all starts, or pass it on; raises NotSent while no gateway is connected."""
        await (self._lease.pass_on(command) if await self._is_elsewhere() else self._equipment.reset(command))

    async def _is_elsewhere(self) -> bool:
        """Return whether another gateway connects; raises NotSent when it has taken the lease meanwhile.

        A command that was queued here then would wait in memory, unknown to the other gateway.
        """
        if not self._lease.holder and self._equipment.connected:
            await self._lease.ensure()
        return bool(self._lease.holder)

    async def stop(self, command: Command) -> None:
        """Stop a command, or pass the stop on; raises NotSent while no gateway is connected."""
        await (self._lease.pass_on(command) if self._lease.holder else self._equipment.stop(command))


@asynccontextmanager
async def open_leased(
    name: str,
    place: str,
    type_ids: Collection[str],
    station: StationPort,
    scopes: Collection[str],
    connect: Connector,
    repetition: Repetition,
    lease: ConnectionLease,
) -> AsyncIterator[LeasedEquipment]:
    """Connect to equipment as `open_connected`, while this gateway holds the lease; release it at the end."""
    open_commands = partial(station.outstanding, scopes, type_ids)

    @asynccontextmanager
    async def connect_leased() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        await lease.acquire()
        async with connect() as connected:
            await lease.confirm()
            try:
                with unwrap_group():
                    async with background_task(take_passed(), f"commands of other gateways for {name}"):
                        yield connected
            finally:
                with suppress(Unavailable):
                    await lease.withdraw()

    async def take_passed() -> None:
        # The connection is in use when the open commands of the runs were read: these came before.
        while not equipment.connected:
            await next_tick(_PAUSE_S)
        stopping: set[str] = set()
        async with TaskGroup() as tasks:
            async for command in lease.passed():
                if command is None:
                    # A start may have been in what cannot be read.
                    for order in await retry_while_unavailable("open commands", open_commands):
                        await _queue(equipment, station, order)
                elif command.type_id not in type_ids or command.scope not in scopes:
                    continue
                elif command.phase is not Phase.STOP:
                    await _queue(equipment, station, command)
                elif command.command_id not in stopping:
                    stopping.add(command.command_id)
                    # The device may answer late: others do not wait.
                    stop = _stop(equipment, command, stopping)
                    tasks.create_task(stop, name=f"stop of another gateway {command.command_id}")

    try:
        async with open_connected(name, place, type_ids, station, scopes, connect_leased, repetition) as equipment:
            yield LeasedEquipment(equipment, lease)
    finally:
        with suppress(Unavailable):
            await lease.release()


async def _queue(equipment: ConnectedEquipment, station: StationPort, command: Command) -> None:
    """Queue a reset, or a start that waits for its answer; an outage of the store is waited for.

    Without the connection it is left out: the next one begins with the open commands.
    """
    with suppress(NotSent):
        if command.phase is Phase.RESET:
            await equipment.reset(command)
            return
        is_open = partial(station.is_outstanding, command.command_id)
        if await retry_while_unavailable("command of another gateway", is_open):
            await equipment.send(command)


async def _stop(equipment: ConnectedEquipment, command: Command, stopping: set[str]) -> None:
    """Stop a command; a stop that fails is sent again by the gateways until it is confirmed."""
    try:
        with suppress(Unavailable):
            await equipment.stop(command)
    finally:
        stopping.discard(command.command_id)
