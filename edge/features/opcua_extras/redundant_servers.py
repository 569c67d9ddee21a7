"""The other servers of a store as a redundant set (OPC 10000-4, 6.6.2): ServerRedundancy and FindServers.

    Server / ServerRedundancy / RedundancySupport, ServerUriArray

All gateways on a store show the same jobs and serve at the same time: a client may use any of them (Hot).
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import msgspec
from asyncua import ua

from edge.foundation.errors import Unavailable
from edge.opcua.server_core import ServerCore
from edge.store import instance_leases
from edge.store.background import poll_store
from edge.store.client import Store
from edge.uaserver.namespaces import PRODUCT_URI, Namespace
from edge.uaserver.own_types import add_nodes, base, item

_REDUNDANCY: Final = ua.NodeId(ua.ObjectIds.Server_ServerRedundancy)
_SUPPORT: Final = ua.NodeId(ua.ObjectIds.Server_ServerRedundancy_RedundancySupport)
_URIS: Final = ua.NodeId(ua.ObjectIds.Server_ServerRedundancy_ServerUriArray)
_TYPE: Final = ua.NodeId(ua.ObjectIds.HasTypeDefinition)
_ALONE: Final = ua.QualifiedName("ServerRedundancyType"), ua.NodeId(ua.ObjectIds.ServerRedundancyType)
_SET: Final = ua.QualifiedName("NonTransparentRedundancyType"), ua.NodeId(ua.ObjectIds.NonTransparentRedundancyType)
T: Final = ua.VariantType


class RedundantServers:
    """The nodes of the redundant set; alone, this server has no redundancy."""

    def __init__(self, core: ServerCore, own_uri: str) -> None:
        self._core = core
        self._own_uri = own_uri
        self._has_uris = False

    async def show(self, peers: Mapping[str, str]) -> None:
        """Show the other servers: their addresses by their application URIs."""
        self._core.other_servers = [_description(uri, url) for uri, url in peers.items()]
        name, type_id = _SET if peers else _ALONE
        node = self._core.aspace[_REDUNDANCY]
        shown = ua.LocalizedText(name.Name)
        node.references = [
            replace(reference, NodeId=type_id, BrowseName=name, DisplayName=shown)
            if reference.ReferenceTypeId == _TYPE
            else reference
            for reference in node.references
        ]
        if peers and not self._has_uris:
            self._add_uris()
            self._has_uris = True
        support = ua.RedundancySupport.Hot if peers else ua.RedundancySupport.None_
        await self._write(_SUPPORT, ua.Variant(int(support), T.Int32))
        if self._has_uris:
            uris = sorted((self._own_uri, *peers)) if peers else []
            await self._write(_URIS, ua.Variant(uris, T.String, is_array=True))

    def _add_uris(self) -> None:
        if _URIS in self._core.aspace:
            # The node set has it without a parent.
            del self._core.aspace[_URIS]
        attributes = ua.VariableAttributes()
        attributes.DataType = base(T.String)
        attributes.ValueRank = ua.ValueRank.OneDimension
        attributes.ArrayDimensions = [0]
        attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
        attributes.Description = ua.LocalizedText("The servers of this store, by their application URIs.", "en")
        # The node exists in the standard, in namespace 0: its name is not the last part of its NodeId.
        named = ua.NodeId("ServerUriArray", Namespace.APPLICATION)
        has_property = ua.NodeId(ua.ObjectIds.HasProperty)
        asked = item(named, _REDUNDANCY, has_property, ua.NodeClass.Variable, attributes)
        asked.RequestedNewNodeId = _URIS
        asked.BrowseName = ua.QualifiedName("ServerUriArray", Namespace.UA)
        asked.TypeDefinition = ua.NodeId(ua.ObjectIds.PropertyType)
        add_nodes(self._core, [asked])

    async def _write(self, node: ua.NodeId, value: ua.Variant) -> None:
        now = datetime.now(UTC)
        written = ua.DataValue(value, SourceTimestamp=now, ServerTimestamp=now)
        (await self._core.aspace.write_attribute_value(node, ua.AttributeIds.Value, written)).check()


def _description(uri: str, url: str) -> ua.ApplicationDescription:
    return ua.ApplicationDescription(
        ApplicationUri=uri,
        ProductUri=PRODUCT_URI,
        ApplicationName=ua.LocalizedText(uri),
        ApplicationType=ua.ApplicationType.Server,
        DiscoveryUrls=[url],
    )


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
