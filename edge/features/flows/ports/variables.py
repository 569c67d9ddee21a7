"""Reads and writes OPC UA variables of the equipment, over one session for each that flows use."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any

import msgspec

from edge.config import OpcuaEquipmentSettings
from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import VariableValue, WriteVariable
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, open_client

Opener = Callable[[OpcuaEquipmentSettings], AbstractAsyncContextManager[ClientSession]]


class _Connection:
    """The session with one server, opened when it is first used, and again after a failure."""

    def __init__(self, connect: Callable[[], AbstractAsyncContextManager[ClientSession]]) -> None:
        self._connect = connect
        self._stack = AsyncExitStack()
        self._session: ClientSession | None = None
        self._using = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncIterator[ClientSession]:
        """Yield the session; it is closed after a failure. Raises Unavailable when there is none."""
        async with self._using:
            if self._session is None:
                self._session = await self._stack.enter_async_context(self._connect())
            try:
                yield self._session
            except Unavailable:
                await self.close()
                raise

    async def close(self) -> None:
        """Close the session."""
        self._session, stack, self._stack = None, self._stack, AsyncExitStack()
        await stack.aclose()


class VariableClient:
    """Serves the OPC UA equipment of the settings; others are not reached."""

    def __init__(self, sections: Mapping[str, OpcuaEquipmentSettings], connect: Opener | None = None) -> None:
        opener = connect or (lambda section: open_client(section.url, settings=section))
        self._connections = {name: _Connection(partial(opener, section)) for name, section in sections.items()}

    async def close(self) -> None:
        """Close all sessions."""
        for connection in self._connections.values():
            await connection.close()

    async def read(self, query: VariableValue, _action_id: str) -> Any:
        """Return the value of a variable. Raises NodeError, and Unavailable when the server is gone."""
        connection = self._connection(query.equipment)
        try:
            value = await self._read(connection, query.node)
        except Unavailable:
            # The server may have ended a session that was open for a long time.
            value = await self._read(connection, query.node)
        return msgspec.to_builtins(value, str_keys=True)

    async def write(self, action: WriteVariable, _action_id: str) -> dict[str, Any]:
        """Write a variable. Raises NodeError when nothing was written, OutcomeUnknownError without a reply."""
        connection = self._connection(action.equipment)
        # Finds out whether the session is alive before anything is written.
        await self.read(VariableValue(action.equipment, action.node), "")
        with _refusals():
            try:
                async with connection.use() as session:
                    await session.write(await session.node(action.node), action.value)
            except Unavailable as error:
                raise OutcomeUnknownError(error.message) from None
        return {"equipment": action.equipment, "node": action.node}

    def _connection(self, equipment: str) -> _Connection:
        connection = self._connections.get(equipment)
        if connection is None:
            known = ", ".join(sorted(self._connections)) or Text.of("none")
            raise NodeError(
                Text.of("there is no OPC UA equipment {equipment!r}; known: {known}", equipment=equipment, known=known)
            )
        return connection

    async def _read(self, connection: _Connection, node: str) -> Any:
        with _refusals():
            async with connection.use() as session:
                return await session.read(await session.node(node))


@contextlib.contextmanager
def _refusals() -> Any:
    try:
        yield
    except Refused as refusal:
        raise NodeError(refusal.text) from None
