"""One OPC UA client session: find nodes, read values, call methods and receive events, all in plain Python."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from asyncua import ua
from asyncua.common.subscription import DataChangeEvent, OpcEvent, Subscription
from asyncua.ua.ua_binary import nodeid_to_binary
from msgspec import Struct

from edge.config import OpcuaEquipmentSettings
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock
from edge.foundation.task_group import cancellation_kept
from edge.foundation.text import Text
from edge.links.opcua_requests import RequestListener, ignore_request, report_failure, reported, serving
from edge.links.opcua_security import secure
from edge.links.opcua_subscription import ValueWatch, open_subscription
from edge.model.equipment_traffic import EquipmentRequest
from edge.opcua.browse import MOST_NODES, Browser
from edge.opcua.client_transport import DEFAULT_LIMITS, TOO_LARGE, BoundedClient, ClientLimits, SkippedNotification
from edge.opcua.structures import Structures

_REQUEST_SECONDS = 4.0
# Seconds for which the server keeps a session after its client is gone.
_SESSION_SECONDS = 60
# Many servers handle the requests of a connection one by one: a slow method must not look like a lost connection.
# A closed connection is detected at once; this interval detects a silent network.
_KEEP_ALIVE_SECONDS = 10.0
# Time limit for the end of a session: an ended or busy server does not answer.
_GOODBYE_SECONDS = 1.0
# Time limit of a search through a server.
_SEARCH_SECONDS = 300.0
_EVENTS_AT_MOST = 1000
_CHANGES_AT_MOST = 20
# One result may take megabytes: a message with several could exceed the size limit, which each of them keeps.
_EVENTS_PER_MESSAGE = 1
_VALUES_PER_MESSAGE = 10_000
_TOO_LARGE = {item.code for item in TOO_LARGE}


class Node(Struct, frozen=True):
    """A node of a server: its NodeId in text form, and its browse path (OPC 10000-4, A.2)."""

    id: str
    path: str


class TypeName(Struct, frozen=True):
    """A type of an information model, by its namespace and number, which are the same on every server."""

    namespace_uri: str
    number: int


class EventField(Struct, frozen=True):
    """A field of an event by its BrowseName, and the event type that defines it."""

    defined_by: TypeName
    name: str


class _Method(Struct, frozen=True):
    """A method: the data types of its arguments, and whether each is an array."""

    id: ua.NodeId
    arguments: Sequence[tuple[ua.NodeId, bool]]


@asynccontextmanager
async def open_client(
    url: str,
    *,
    settings: OpcuaEquipmentSettings | None = None,
    request_timeout: float = _REQUEST_SECONDS,
    on_request: RequestListener = ignore_request,
    limits: ClientLimits | None = None,
) -> AsyncIterator["ClientSession"]:
    """Open a session for the length of the block; without `settings` it is anonymous and has no security.

    Each request has a timeout of `request_timeout` seconds; `limits` replace the one in the settings. Raises
    Unavailable when the server cannot be reached, declines the session or is not trusted, SettingsError when a
    certificate of ours cannot be read.
    """
    if limits is None:
        limits = ClientLimits(settings.max_message_bytes) if settings is not None else DEFAULT_LIMITS
    client = BoundedClient(url, request_timeout, _KEEP_ALIVE_SECONDS, limits)
    client.session_timeout = _SESSION_SECONDS * 1000
    with serving(url):
        try:
            if settings is not None:
                await secure(client, settings)
            await client.connect()
        except asyncio.CancelledError:
            client.disconnect_socket()
            raise
    try:
        yield ClientSession(client, url, on_request)
    finally:
        try:
            # asyncua ends tasks of its own there, and ignores that ours is cancelled meanwhile.
            with cancellation_kept():
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await client.disconnect()
        except TimeoutError:
            client.disconnect_socket()


class ClientSession:
    """A session with a server. Every call raises Unavailable when the server does not answer or declines."""

    def __init__(self, client: BoundedClient, url: str, on_request: RequestListener) -> None:
        self.url = url
        self.on_request = on_request
        self._client = client
        self._structures = Structures(client)
        self._namespaces: list[str] = []
        self._methods: dict[tuple[str, str], _Method] = {}
        self._browser = Browser(client)
        self.answer_count = 0
        """Number of methods and values that the server has answered."""

    @reported
    async def find(self, *names: str) -> Node:
        """Find a node by the browse names of its path below Objects, whatever their namespaces.

        Raises Refused(`unknown_node`) when a name does not exist, or exists in two namespaces.
        """
        with serving(self.url):
            node_id, path = ua.NodeId(ua.ObjectIds.ObjectsFolder), "/0:Objects"
            for name in names:
                children = await self._browser.below(node_id)
                # Several references may have the same target: it counts once.
                fitting = {child.NodeId: child.BrowseName for child in children if child.BrowseName.Name == name}
                if len(fitting) != 1:
                    what = Text.of("is ambiguous") if fitting else Text.of("is not there")
                    raise Refused(
                        "unknown_node",
                        Text.of("{path}/{name} {what} on {url}", path=path, name=name, what=what, url=self.url),
                    )
                ((node_id, browse_name),) = fitting.items()
                path = f"{path}/{browse_name.to_string()}"
            return Node(node_id.to_string(), path)

    @reported
    async def read(self, node: Node) -> Any:
        """Read the value of a variable in plain Python; structures are dicts by the names of their fields.

        Raises Refused(`unreadable`) for a structure that cannot be decoded.
        """
        with serving(self.url):
            value = await self._client.get_node(node.id).read_value()
            self.answer_count += 1
            return await self._structures.plain(value)

    async def node(self, node_id: str) -> Node:
        """Return a node by its NodeId in text form, as `nsu=http://example.com;s=Speed` or `ns=2;i=7`.

        The namespace URI is the same after each start of the server, its index may differ. Raises Refused
        (`unknown_node`) for an unknown namespace, Refused(`unreadable`) for an invalid NodeId.
        """
        uri, _, rest = node_id.removeprefix("nsu=").rpartition(";")
        if not node_id.startswith("nsu="):
            return Node(_parse_node_id(node_id).to_string(), node_id)
        with serving(self.url):
            index = await self._namespace_index(uri)
        return Node(_parse_node_id(f"ns={index};{rest}").to_string(), node_id)

    @reported
    async def write(self, node: Node, value: Any) -> None:
        """Write the value of a variable, given in the form that `read` returns.

        Raises Refused(`unwritable`) for a value that the variable cannot have, or when the server declines the write.
        """
        with serving(self.url):
            variable = self._client.get_node(node.id)
            data_type = await variable.read_data_type()
            rank = await variable.read_value_rank()
            # OPC 10000-3, 5.6.2: from 0 an array, -1 a scalar, below it either.
            is_array = rank >= 0 or (rank < -1 and isinstance(value, list))
            variant = await self._structures.variant(data_type, value, is_array=is_array)
            try:
                # Many servers decline timestamps of a client (OPC 10000-4, 5.11.4).
                await variable.write_attribute(ua.AttributeIds.Value, ua.DataValue(variant))
            except ua.UaStatusCodeError as error:
                raise Refused(
                    "unwritable",
                    Text.of("{path}: the server declines the write: {reason}", path=node.path, reason=error),
                ) from None

    @reported
    async def children(self, node: Node) -> dict[str, Node]:
        """Return the nodes below a node by the names in their BrowseNames, methods included."""
        return await self._below(node)

    async def _below(self, node: Node) -> dict[str, Node]:
        with serving(self.url):
            found = await self._browser.below(ua.NodeId.from_string(node.id))
            return {
                value.BrowseName.Name: Node(value.NodeId.to_string(), f"{node.path}/{value.BrowseName.to_string()}")
                for value in found
            }

    @reported
    async def instances(self, of: TypeName, depth: int = 4, most: int = MOST_NODES) -> list[Node]:
        """Return the objects below Objects of a type, or of one derived from it, at most `depth` levels down.

        Raises Refused(`unknown_node`) when there are more than `most` objects to search.
        """
        with serving(self.url):
            async with asyncio.timeout(_SEARCH_SECONDS):
                wanted = await self._type_id(of)
                # The Server object is not a device.
                seen = {ua.NodeId(ua.ObjectIds.Server)}
                nodes: list[Node] = []
                level = {ua.NodeId(ua.ObjectIds.ObjectsFolder): "/0:Objects"}
                for _ in range(depth):
                    below = {}
                    async for above, child in self._browser.objects_below(list(level)):
                        if child.NodeId in seen:
                            continue
                        seen.add(child.NodeId)
                        if len(seen) > most:
                            raise Refused(
                                "unknown_node",
                                Text.of("{url} has more than {most} objects to look at", url=self.url, most=most),
                            )
                        there = f"{level[above]}/{child.BrowseName.to_string()}"
                        if wanted in await self._browser.bases(child.TypeDefinition):
                            nodes.append(Node(child.NodeId.to_string(), there))
                        else:
                            below[child.NodeId] = there
                    level = below
                return nodes

    @reported
    async def call(self, owner: Node, name: str, *arguments: Any) -> list[Any]:
        """Call a method of an object and return its output arguments.

        Arguments are plain Python, in the form that `read` returns. A missing argument, or None, gets the default of
        its type. Raises Refused(`unknown_node`) when there is no such method, Refused(`method_failed`) when it fails,
        Refused(`too_large`) when its answer exceeds the size limit.
        """
        with serving(self.url):
            method = self._methods.get((owner.id, name)) or await self._find_method(owner, name)
            request = ua.CallMethodRequest(ObjectId=ua.NodeId.from_string(owner.id), MethodId=method.id)
            if len(arguments) > len(method.arguments):
                raise Refused(
                    "method_failed",
                    Text.of(
                        "{name} takes {count} arguments, not {count2}",
                        name=name,
                        count=len(method.arguments),
                        count2=len(arguments),
                    ),
                )
            given = (*arguments, *(None for _ in method.arguments[len(arguments) :]))
            request.InputArguments = [
                await self._structures.variant(data_type, value, is_array=is_array)
                for (data_type, is_array), value in zip(method.arguments, given, strict=True)
            ]
            results = await self._client.uaclient.call([request])
            self.answer_count += 1
            if len(results) != 1:
                raise Refused(
                    "method_failed", Text.of("{name}: {count} results of one call", name=name, count=len(results))
                )
            (result,) = results
            if result.StatusCode.is_bad():
                # The object may have a new method of this name: find it again at the next call.
                self._methods.pop((owner.id, name), None)
                kind = "too_large" if result.StatusCode.value in _TOO_LARGE else "method_failed"
                raise Refused(kind, Text.of("{name}: {statuscode}", name=name, statuscode=result.StatusCode.name))
            outputs: list[Any] = await self._structures.plain(result.OutputArguments or [])
            return outputs

    def forget(self, owner: Node) -> None:
        """Forget the methods of an object that exists for a while only."""
        for known in [method for method in self._methods if method[0] == owner.id]:
            del self._methods[known]

    async def structure(self, of: TypeName, value: Mapping[str, Any]) -> Any:
        """Return a structure as an argument for a method that takes any subtype of an abstract structure."""
        with serving(self.url):
            return await self._structures.variant(await self._type_id(of), value)

    async def _find_method(self, owner: Node, name: str) -> _Method:
        node = (await self._below(owner)).get(name)
        if node is None:
            raise Refused("unknown_node", Text.of("{path} has no method {name}", path=owner.path, name=name))
        inputs = (await self._below(node)).get("InputArguments")
        arguments = (await self._client.get_node(inputs.id).read_value() if inputs else None) or []
        try:
            takes = [(argument.DataType, argument.ValueRank >= 1) for argument in arguments]
        except (AttributeError, TypeError):
            raise Refused(
                "unknown_node", Text.of("{path} does not say what {name} takes", path=owner.path, name=name)
            ) from None
        method = self._methods[owner.id, name] = _Method(ua.NodeId.from_string(node.id), takes)
        return method

    @asynccontextmanager
    async def watch(
        self, source: Node | None, fields: Sequence[EventField], values: Mapping[str, Node]
    ) -> AsyncIterator[AsyncIterator[Mapping[str, Any] | Refused]]:
        """Subscribe to the events of a node (by default the Server) and to changes of variables; yield both in order.

        An event has its `fields` by name, None for a missing one; `EventType` is the NodeId of its type. A change has
        only its variable, by name. A notification that cannot be decoded becomes Refused(`unreadable`), one beyond the
        size limit Refused(`too_large`). The iterator raises Unavailable when the connection is lost.
        """
        names = {node.id: name for name, node in values.items()}
        asked = partial(EquipmentRequest, "watch", (source, fields, values))
        async with AsyncExitStack() as opened:
            with report_failure(self.on_request, asked), serving(self.url):
                subscription = await opened.enter_async_context(
                    open_subscription(self._client, self.url, _EVENTS_PER_MESSAGE)
                )
                for node_id in names:
                    # Each change is reported, also one that another follows at once, where the server can do so.
                    await subscription.subscribe_data_change(
                        self._client.get_node(node_id), queuesize=_CHANGES_AT_MOST, sampling_interval=0.0
                    )
                await subscription.subscribe_events(
                    source.id if source else ua.ObjectIds.Server,
                    evfilter=await self._event_filter(fields),
                    queuesize=_EVENTS_AT_MOST,
                )
            self.on_request(asked())
            yield self._notifications(subscription, names)

    @asynccontextmanager
    async def watch_values(self, clock: Clock) -> AsyncIterator[ValueWatch]:
        """Open a subscription to values, for the length of the block."""
        async with open_subscription(self._client, self.url, _VALUES_PER_MESSAGE) as subscription:
            with serving(self.url):
                yield ValueWatch(subscription, self._resolve, self._structures.plain, clock)

    async def _resolve(self, node: str) -> ua.NodeId:
        found = await (self.find(*filter(None, node.split("/"))) if node.startswith("/") else self.node(node))
        return ua.NodeId.from_string(found.id)

    async def _notifications(
        self, subscription: Subscription, names: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any] | Refused]:
        async for element in subscription:
            match element:
                case OpcEvent(event=event):
                    yield await self._readable(event.get_event_props_as_fields_dict())
                case DataChangeEvent(node=node, value=value):
                    yield await self._readable({names[node.nodeid.to_string()]: value})
                case SkippedNotification(reason=reason):
                    yield Refused("too_large", Text.of("notifications were lost: {reason}", reason=reason))
                case _:
                    break
        raise Unavailable(Text.of("the connection to the OPC UA server {url} is lost", url=self.url))

    async def _readable(self, values: Mapping[str, Any]) -> Mapping[str, Any] | Refused:
        try:
            with serving(self.url):
                return {name: await self._structures.plain(value) for name, value in values.items()}
        except Refused as refusal:
            return refusal

    @reported
    async def is_a(self, type_id: Any, of: TypeName) -> bool:
        """Return whether a type, by its NodeId in text form, is the type `of` or derived from it.

        Raises Refused(`unreadable`) for an invalid NodeId.
        """
        event_type = _parse_node_id(type_id)
        with serving(self.url):
            return await self._type_id(of) in await self._browser.bases(event_type)

    async def _event_filter(self, fields: Sequence[EventField]) -> ua.EventFilter:
        # asyncua names BaseEventType in the clause of every field, which strict servers refuse
        # (github.com/FreeOpcUa/opcua-asyncio/issues/1968). Here each clause names the type that defines the field.
        clauses = [_clause(ua.NodeId(ua.ObjectIds.BaseEventType), ua.QualifiedName("EventType"))]
        for field in fields:
            type_id = await self._type_id(field.defined_by)
            clauses.append(_clause(type_id, ua.QualifiedName(field.name, type_id.NamespaceIndex)))
        return ua.EventFilter(SelectClauses=clauses)

    async def _type_id(self, name: TypeName) -> ua.NodeId:
        return ua.NodeId(name.number, await self._namespace_index(name.namespace_uri))

    async def _namespace_index(self, uri: str) -> int:
        if not self._namespaces:
            self._namespaces = await self._client.get_namespace_array()
        if uri not in self._namespaces:
            raise Refused("unknown_node", Text.of("{url} does not know the namespace {uri}", url=self.url, uri=uri))
        return self._namespaces.index(uri)


def _parse_node_id(node_id_text: Any) -> ua.NodeId:
    try:
        node_id = ua.NodeId.from_string(node_id_text)
        # `from_string` accepts numbers that are too large for a NodeId; the encoder rejects them.
        nodeid_to_binary(node_id)
    except (ua.UaError, AttributeError, struct.error):
        raise Refused(
            "unreadable",
            Text.of("what should be the NodeId of a type is {node_id_text!r:.200}", node_id_text=node_id_text),
        ) from None
    return node_id


def _clause(type_id: ua.NodeId, name: ua.QualifiedName) -> ua.SimpleAttributeOperand:
    return ua.SimpleAttributeOperand(TypeDefinitionId=type_id, BrowsePath=[name], AttributeId=ua.AttributeIds.Value)
