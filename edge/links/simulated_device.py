"""A simulated OPC UA device: a server with official node sets; tests can disconnect and reconnect it."""

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncua
from asyncua import Node, ua
from asyncua.server.binary_server_asyncio import BinaryServer
from asyncua.server.internal_server import InternalServer

from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.text import Text
from edge.links.host_addresses import free_port
from edge.opcua.structures import Structures

Method = Callable[..., Awaitable[Sequence[ua.Variant] | ua.StatusCode]]

AWAY_SECONDS = 0.5
"""How long a device is unreachable after a broken connection or a power failure."""

_NODESETS = Path(sys.prefix, "share", "microdcs-edge", "nodesets")


_FLUSH_S = 0.5
"""Time in which a client can still read what was sent to it."""


@asynccontextmanager
async def open_device(name: str, files: Sequence[str], port: int = 0) -> AsyncIterator["OpcuaDevice"]:
    """Serve node sets at a loopback port (0 selects a free port) for the length of the block.

    Raises SettingsError when a node set is missing, Unavailable when the port is in use.
    """
    port = port or free_port()
    _require_free(port)
    server = asyncua.Server()
    with _without_collector():
        await server.init()
        # The warnings of the importer are known: the files are pinned by digest.
        logging.getLogger("asyncua.common.xmlimporter").setLevel(logging.ERROR)
        for file in files:
            # Not strict, and without generated Python classes: asyncua cannot generate them for every node set, and
            # keeps them until the process ends.
            await server.import_xml(xmlstring=_read(file), strict_mode=False, auto_load_definitions=False)
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}")
    server.set_server_name(name)
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    async with server:
        try:
            yield OpcuaDevice(server, await server.register_namespace(f"urn:microdcs-edge:sim:{name}"))
        finally:
            await stop_listener(server.bserver)


async def stop_listener(listener: BinaryServer) -> None:
    """Close the port and every connection; abort those that are still open after a short time.

    asyncua waits until each client is gone: one that does not read stays as long as it likes.
    """
    aborting = asyncio.create_task(_keep_aborting(listener.iserver), name="opcua connections at stop")
    try:
        await listener.stop()
    finally:
        aborting.cancel()


async def _keep_aborting(server: InternalServer) -> None:
    while True:
        await asyncio.sleep(_FLUSH_S)
        for transport in tuple(server.asyncio_transports):
            transport.abort()


def _require_free(port: int) -> None:
    """Raise Unavailable when the port is in use; asyncua loads for two seconds and then prints a traceback."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        message = Text.of("cannot listen on 127.0.0.1:{port}: {reason}", port=port, reason=error.strerror)
        raise Unavailable(message, "Stop the other program that uses this port, or choose another.") from error


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable the garbage collector: while an address space loads, it finds nothing and doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(file: str) -> str:
    try:
        return (_NODESETS / file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SettingsError([Text.of("{file} is missing", file=_NODESETS / file)], "Run `make setup`.") from error


class OpcuaDevice:
    """The server of a device; `index` is the namespace index of its instances."""

    def __init__(self, server: asyncua.Server, index: int) -> None:
        self.server = server
        self.index = index
        self.structures = Structures(server)
        self._linked: set[ua.NodeId] = set()
        self._executing: set[asyncio.Future[Sequence[ua.Variant] | ua.StatusCode]] = set()

    @property
    def url(self) -> str:
        """Return the endpoint URL of the server."""
        return f"opc.tcp://127.0.0.1:{self.server.bserver.port}"

    @asynccontextmanager
    async def unplugged(self) -> AsyncIterator[None]:
        """Disconnect the device for the length of the block: close all connections and refuse new ones."""
        await stop_listener(self.server.bserver)
        try:
            yield
        finally:
            await self.server.bserver.start()

    async def link(self, owner: Node, methods: Mapping[str, Method]) -> None:
        """Link the methods of an object to their handlers, which are called with all of their arguments only."""
        children = {child.BrowseName.Name: child.NodeId for child in await owner.get_children_descriptions()}
        for name, method in methods.items():
            node = self.server.get_node(children[name])
            parts = {child.BrowseName.Name: child.NodeId for child in await node.get_children_descriptions()}
            inputs = parts.get("InputArguments")
            arguments = await self.server.get_node(inputs).read_value() if inputs else ()
            self.server.link_method(node, self._handler(method, len(arguments or ())))
            self._linked.add(node.nodeid)

    async def link_others(self, owner: Node) -> None:
        """Link each other method at an object and below it, so that it is answered as not implemented."""
        for child in await owner.get_children_descriptions():
            if child.NodeClass is ua.NodeClass.Object:
                await self.link_others(self.server.get_node(child.NodeId))
            elif child.NodeClass is ua.NodeClass.Method and child.NodeId not in self._linked:
                await self.link(owner, {child.BrowseName.Name: _not_implemented})

    def _handler(self, method: Method, count: int) -> Method:
        """Return the handler of a method that refuses a wrong number of arguments (OPC 10000-4, 5.12.2).

        It executes the method to its end although its caller disconnects; asyncua would cancel it.
        """

        async def handle(owner: ua.NodeId, *arguments: ua.Variant) -> Sequence[ua.Variant] | ua.StatusCode:
            if len(arguments) < count:
                return ua.StatusCode(ua.StatusCodes.BadArgumentsMissing)
            if len(arguments) > count:
                return ua.StatusCode(ua.StatusCodes.BadTooManyArguments)
            executing = asyncio.ensure_future(method(owner, *arguments))
            self._executing.add(executing)
            executing.add_done_callback(self._executing.discard)
            return await asyncio.shield(executing)

        return handle

    async def send_event(self, event_type: ua.NodeId, fields: Mapping[str, ua.Variant]) -> None:
        """Trigger an event at the Server object."""
        generator = await self.server.get_event_generator(self.server.get_node(event_type))
        for name, value in fields.items():
            generator.event.add_property(name, value.Value, value.VariantType)
        await generator.trigger()

    async def plain(self, values: Sequence[ua.Variant]) -> list[Any]:
        """Return method arguments as plain Python values."""
        return [await self.structures.plain(value) for value in values]


async def _not_implemented(_: ua.NodeId, *_arguments: ua.Variant) -> ua.StatusCode:
    return ua.StatusCode(ua.StatusCodes.BadNotImplemented)
