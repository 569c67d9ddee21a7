"""A simulated OPC UA device: a server with official node sets, which can be unplugged and started again."""

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

from edge.errors import SettingsError, Unavailable
from edge.opcua.structures import Structures

Method = Callable[..., Awaitable[Sequence[ua.Variant]]]

AWAY_SECONDS = 0.5
"""How long a device is away whose connection breaks or whose power fails."""

_NODESETS = Path(sys.prefix, "share", "microdcs-edge", "nodesets")


@asynccontextmanager
async def open_device(name: str, files: Sequence[str], port: int = 0) -> AsyncIterator["OpcuaDevice"]:
    """Serve node sets at a loopback port (0 chooses one) for the length of the block.

    Raises SettingsError when a node set was not prepared, Unavailable when the port is taken.
    """
    _require_free(port)
    server = asyncua.Server()
    with _without_collector():
        await server.init()
        # What the importer warns about here is known: the files are pinned by digest.
        logging.getLogger("asyncua.common.xmlimporter").setLevel(logging.ERROR)
        for file in files:
            # Not strict, and without Python classes of its structures: asyncua cannot make those of every node set, and
            # it keeps them for the whole process.
            await server.import_xml(xmlstring=_read(file), strict_mode=False, auto_load_definitions=False)
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}")
    server.set_server_name(name)
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    async with server:
        yield OpcuaDevice(server, await server.register_namespace(f"urn:microdcs-edge:sim:{name}"))


def _require_free(port: int) -> None:
    """See that we may listen there before two seconds are spent on what to show; asyncua tells it by a traceback."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        message = f"cannot listen on 127.0.0.1:{port}: {error.strerror}"
        raise Unavailable(message, "Stop the other program that uses this port, or choose another.") from error


@contextmanager
def _without_collector() -> Iterator[None]:
    """Do not look for garbage: there is none while an address space comes up, and looking takes as long as that."""
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
        raise SettingsError([f"{_NODESETS / file} is missing"], "Run `make setup`.") from error


class OpcuaDevice:
    """The server of a device; `index` is the namespace of its own instances."""

    def __init__(self, server: asyncua.Server, index: int) -> None:
        self.server = server
        self.index = index
        self.structures = Structures(server)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"opc.tcp://127.0.0.1:{self.server.bserver.port}"

    @asynccontextmanager
    async def unplugged(self) -> AsyncIterator[None]:
        """Be unreachable for the length of the block: nobody can connect, and who was connected is no more."""
        await self.server.bserver.stop()
        try:
            yield
        finally:
            await self.server.bserver.start()

    async def link(self, owner: Node, methods: Mapping[str, Method]) -> None:
        """Have the methods of an object do something."""
        children = {child.BrowseName.Name: child.NodeId for child in await owner.get_children_descriptions()}
        for name, method in methods.items():
            self.server.link_method(self.server.get_node(children[name]), method)

    async def tell(self, event_type: ua.NodeId, fields: Mapping[str, ua.Variant]) -> None:
        """Tell an event to all who listen to the Server."""
        generator = await self.server.get_event_generator(self.server.get_node(event_type))
        for name, value in fields.items():
            generator.event.add_property(name, value.Value, value.VariantType)
        await generator.trigger()

    async def plain(self, values: Sequence[ua.Variant]) -> list[Any]:
        """Return arguments in plain Python."""
        return [await self.structures.plain(value) for value in values]
