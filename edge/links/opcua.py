"""One OPC UA client session: find a node by its browse path, read its value in plain Python."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from asyncua import Client, ua

from edge.errors import Refused, Unavailable
from edge.links.opcua_structure import Structures

_REQUEST_SECONDS = 4.0
# How long the server keeps a session whose client is gone.
_SESSION_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a server: its NodeId in text form, and the browse path that led there (OPC 10000-4, A.2)."""

    id: str
    path: str


@asynccontextmanager
async def open_client(url: str, *, request_timeout: float = _REQUEST_SECONDS) -> AsyncIterator["Session"]:
    """Open a session without security, as an anonymous user; close it at the end of the block.

    No answer takes longer than `request_timeout` seconds. Raises Unavailable when the server is not there or does
    not take us.
    """
    client = Client(url, timeout=request_timeout)
    client.session_timeout = _SESSION_SECONDS * 1000
    with _sorted_errors(url):
        try:
            await client.connect()
        except asyncio.CancelledError:
            client.disconnect_socket()
            raise
    try:
        yield Session(client, url)
    finally:
        # A server that is gone cannot take our leave; that is no reason to fail.
        await client.disconnect()


class Session:
    """What can be asked of a server. Every call raises Unavailable when it does not answer or declines."""

    def __init__(self, client: Client, url: str) -> None:
        self.url = url
        self._client = client
        self._structures = Structures(client)

    async def find(self, *names: str) -> Node:
        """Go down from Objects by browse names, whatever their namespaces.

        Raises Refused(`unknown_node`) when a name is not there, or there in two namespaces.
        """
        with _sorted_errors(self.url):
            node_id, path = ua.NodeId(ua.ObjectIds.ObjectsFolder), "/0:Objects"
            for name in names:
                children = await self._client.get_node(node_id).get_children_descriptions()
                # One node may be the target of several references: it is still one.
                fitting = {child.NodeId: child.BrowseName for child in children if child.BrowseName.Name == name}
                if len(fitting) != 1:
                    what = "is ambiguous" if fitting else "is not there"
                    raise Refused("unknown_node", f"{path}/{name} {what} on {self.url}")
                ((node_id, browse_name),) = fitting.items()
                path = f"{path}/{browse_name.to_string()}"
            return Node(node_id.to_string(), path)

    async def read(self, node: Node) -> Any:
        """Read the value of a variable in plain Python; structures are dicts by the names of their fields.

        Raises Refused(`unreadable`) for a structure that we cannot decode.
        """
        with _sorted_errors(self.url):
            return await self._structures.plain(await self._client.get_node(node.id).read_value())


@contextmanager
def _sorted_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ua.UaError) as error:
        reason = str(error) or type(error).__name__
        raise Unavailable(f"the OPC UA server {url} does not serve us: {reason}", "Is it running?") from error
