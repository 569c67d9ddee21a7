"""Names the OPC UA servers of the gateways on one store to each other."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from edge.foundation.errors import Unavailable
from edge.store import instance_leases
from edge.store.background import poll_store
from edge.store.client import Store

EVERY_S = 10.0


class SharedServer(msgspec.Struct, frozen=True):
    """The OPC UA server of a gateway."""

    uri: str
    url: str


class SharedServers:
    """Keeps our server in the store, and shows the others whenever they change: their addresses by their URIs."""

    def __init__(
        self, store: Store, gateway: str, own: SharedServer, show: Callable[[Mapping[str, str]], Awaitable[None]]
    ) -> None:
        self._store = store
        self._gateway = gateway
        self._own = msgspec.json.encode(own).decode()
        self._show = show
        self._shown: Mapping[str, str] = {}

    async def run(self, every_s: float = EVERY_S) -> None:
        """Publish our server until cancelled; then it is removed. An unavailable store leaves attempts out."""
        try:
            await poll_store(self._store.defects, "OPC UA servers", self._share, every_s)
        finally:
            with contextlib.suppress(Unavailable):
                await self._store.commit(instance_leases.remove_opcua_server(self._store.keys, self._gateway))

    async def _share(self) -> None:
        found = await instance_leases.load_opcua_servers(self._store)
        if found.get(self._gateway) != self._own:
            await self._store.commit(instance_leases.put_opcua_server(self._store.keys, self._gateway, self._own))
        peers: dict[str, str] = {}
        for gateway, text in found.items():
            with contextlib.suppress(msgspec.DecodeError):
                if gateway != self._gateway:
                    peer = msgspec.json.decode(text, type=SharedServer)
                    peers[peer.uri] = peer.url
        if peers != self._shown:
            await self._show(peers)
            self._shown = peers
