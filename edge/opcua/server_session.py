"""Sessions with random tokens, owned subscriptions and bounded requests.

asyncua numbers tokens and subscriptions from a small number on, and does not check their owner.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Sized
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.internal_session import InternalSession, SessionState
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.server.subscription_service import SubscriptionService

from edge.opcua.access import Caller, bounded_locales, calling, reading_in
from edge.opcua.limits import (
    REQUEST_BYTES,
    ServerLimits,
    check_application,
    check_count,
    clamp,
    clamp_monitoring,
    unknown_subscription,
)
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.publishing import SessionConnection, modify, publish_for, republish, revise, start_publishing
from edge.opcua.request_counts import SessionRecord
from edge.opcua.server_channel import ServerChannel
from edge.opcua.time_slices import Account, Pacer, Turn
from edge.opcua.value_reads import Stamps, browse_name, check_timestamps, localized_value, read_item, refused_value
from edge.opcua.view_service import View

GET_MONITORED_ITEMS = "GetMonitoredItems"
RESEND_DATA = "ResendData"

_SERVER = ua.NodeId(ua.ObjectIds.Server)
_METHODS: Mapping[ua.NodeId, str] = MappingProxyType(
    {
        ua.NodeId(ua.ObjectIds.Server_GetMonitoredItems): GET_MONITORED_ITEMS,
        ua.NodeId(ua.ObjectIds.ServerType_GetMonitoredItems): GET_MONITORED_ITEMS,
        ua.NodeId(ua.ObjectIds.Server_ResendData): RESEND_DATA,
        ua.NodeId(ua.ObjectIds.ServerType_ResendData): RESEND_DATA,
    }
)


def method_of(request: ua.CallMethodRequest) -> str | None:
    """Return the name of the method that a request calls on the Server object; None for any other."""
    return _METHODS.get(request.MethodId) if request.ObjectId == _SERVER else None


async def perform(
    method: str, arguments: Sequence[ua.Variant], session_id: ua.NodeId, service: SubscriptionService, turn: Turn
) -> ua.CallMethodResult:
    """Perform a method of the Server object for a session."""
    if len(arguments) != 1:
        few = not arguments
        return _bad(ua.StatusCodes.BadArgumentsMissing if few else ua.StatusCodes.BadTooManyArguments)
    (argument,) = arguments
    if argument.VariantType is not ua.VariantType.UInt32 or argument.is_array:
        mismatch = ua.StatusCode(ua.StatusCodes.BadTypeMismatch)
        invalid = ua.StatusCode(ua.StatusCodes.BadInvalidArgument)
        return ua.CallMethodResult(StatusCode=invalid, InputArgumentResults=[mismatch])
    subscription: InternalSubscription | None = service.subscriptions.get(argument.Value)
    if subscription is None:
        return _bad(ua.StatusCodes.BadSubscriptionIdInvalid)
    if subscription.session_id != session_id:
        return _bad(ua.StatusCodes.BadUserAccessDenied)
    items = subscription.monitored_item_srv
    if method == RESEND_DATA:
        await items.resend(turn)
        return ua.CallMethodResult()
    outputs = [ua.Variant(handles, ua.VariantType.UInt32, is_array=True) for handles in items.handles()]
    return ua.CallMethodResult(OutputArguments=outputs)


def _bad(code: int) -> ua.CallMethodResult:
    return ua.CallMethodResult(StatusCode=ua.StatusCode(code))


_O = TypeVar("_O")
_R = TypeVar("_R")


class ServerSession(InternalSession):
    """A session created over one channel, used over that channel or another one of the same client."""

    def __init__(self, internal_server: Any, name: Any) -> None:
        # The constructor enters the session into the server's table under its token: set the real token first.
        super().__init__(
            internal_server, internal_server.aspace, internal_server.subscription_service, str(name), external=False
        )
        self.external = True
        self._limits: ServerLimits = internal_server.limits
        self._timeout_task: asyncio.Task[None] | None = None
        self.auth_token = ua.NodeId(secrets.token_bytes(32), 0, ua.NodeIdType.ByteString)
        self.iserver.register_external_session(self)
        self.connection: SessionConnection | None = None
        self.caller: Caller | None = None
        self.locales: tuple[str, ...] = ()
        self.certificate = b""
        self.address = str(name[0]) if name else ""
        self.user_key = self.address
        """Whose use of the server counts together: a user, or the address of anonymous sessions."""
        self.account: Account = internal_server.turns.account(self.user_key)
        self.record = SessionRecord()
        self.turn: Turn | None = None
        """The turn of the request that is being served."""
        self._view = View(self.aspace, self.iserver.reference_types)

    def is_closed(self) -> bool:
        """Return whether it has ended."""
        return bool(self.state is SessionState.Closed)

    def is_usable_on(self, channel: ServerChannel, *, has_moved: bool) -> bool:
        """Return whether it may be activated on a channel: its own, or later an encrypted one of the same client."""
        if self.is_closed() or not has_moved:
            return not self.is_closed()
        return self.is_activated() and channel.is_encrypted and channel.certificate == self.certificate

    def has_same_client(self, other: "ServerSession") -> bool:
        """Return whether both belong to the same user of the same application, as far as proved."""
        return bool(self.certificate) and (self.certificate, self.caller) == (other.certificate, other.caller)

    async def create_session(
        self, params: ua.CreateSessionParameters, sockname: tuple[str, int] | None = None
    ) -> ua.CreateSessionResult:
        """Answer CreateSession if the client is the application of the channel."""
        channel = self._channel()
        self.record.asked = params
        if channel.is_encrypted:
            self.certificate = channel.certificate
            check_application(channel.certificate, params)
        # NaN would become the delay of a timer, and an event loop that sorts timers by NaN finds none in time.
        params.RequestedSessionTimeout = clamp(
            params.RequestedSessionTimeout or 0.0,
            self.iserver.min_session_timeout_ms,
            self.iserver.max_session_timeout_ms,
        )
        result = await super().create_session(params, sockname)
        # asyncua cancels this attribute when the session ends; its own task is restarted by each GetEndpoints.
        self._timeout_task = asyncio.create_task(self._end_unless_activated(), name="opcua session activation")
        result.MaxRequestMessageSize = REQUEST_BYTES
        await self.iserver.catch_up()
        return result

    def activate(self, caller: Caller, locales: Sequence[str] = ()) -> ua.ActivateSessionResult:
        """Activate the session for `caller`; without LocaleIds it keeps those of its first activation."""
        self.locales = bounded_locales(locales) or self.locales
        if not self.is_activated() and self._timeout_task is not None:
            self._timeout_task.cancel()
            self._timeout_task = None  # asyncua puts its own there, and ends either with the session
        anonymous = ua.ActivateSessionParameters(UserIdentityToken=ua.AnonymousIdentityToken())
        result = super().activate_session(anonymous, None)
        self.user = User(role=UserRole.User, name=caller.name)
        self.caller = caller
        self.address = caller.address
        self.user_key = f"user {caller.name}" if caller.name else caller.address
        self.account = self.iserver.turns.account(self.user_key)
        return result

    async def close_session(self, delete_subs: bool = True) -> None:  # noqa: FBT001, FBT002 - asyncua's signature
        """Close the session with its subscriptions: no other session can take them over."""
        if not self.is_closed() and asyncio.current_task() is self._timeout_task:
            self.iserver.counts.timeouts += 1
        await super().close_session(delete_subs=True)

    async def _end_unless_activated(self) -> None:
        await asyncio.sleep(self.iserver.activation_s)
        await self.close_session()

    async def read(self, params: ua.ReadParameters) -> list[ua.DataValue]:
        """Read attributes; the value of UserExecutable depends on the caller."""
        self._check_count("MaxNodesPerRead", params.NodesToRead)
        if params.MaxAge < 0:
            raise ServiceError(ua.StatusCodes.BadMaxAgeInvalid)
        check_timestamps(params.TimestampsToReturn)
        stamps = Stamps(params.TimestampsToReturn, datetime.now(UTC))
        results = []
        with reading_in(self.locales):
            for item in params.NodesToRead:
                results.append(stamps.apply(self._read(item), item.AttributeId))
                await self._step()
        return results

    def _read(self, item: ua.ReadValueId) -> ua.DataValue:
        if (refused := self._refusal(item)) is not None:
            return refused
        value = read_item(self.aspace, item)
        if (localized := self.iserver.localized.get(item.NodeId)) and item.AttributeId == ua.AttributeIds.Value:
            return localized_value(value, localized, self.locales)
        if not item.IndexRange and item.AttributeId == ua.AttributeIds.UserExecutable and value.StatusCode.is_good():
            return ua.DataValue(ua.Variant(self._may_call(item.NodeId), ua.VariantType.Boolean))
        return value

    def _refusal(self, item: ua.ReadValueId) -> ua.DataValue | None:
        """Return the answer about a value that the caller may not read; None for all others."""
        may_read = self.iserver.restricted.get(item.NodeId)
        if may_read is None or (self.caller and may_read(self.caller, self._channel().peer)):
            return None
        return refused_value(item.AttributeId)

    async def _step(self) -> None:
        if self.turn is not None:
            await self.turn.step()

    async def write(self, params: ua.WriteParameters) -> list[ua.StatusCode]:
        """Write attributes."""
        self._check_count("MaxNodesPerWrite", params.NodesToWrite)
        return await super().write(params)

    async def history_read(self, params: ua.HistoryReadParameters) -> list[ua.HistoryReadResult]:
        """Read history."""
        self._check_count("MaxNodesPerRead", params.NodesToRead)
        return await self.iserver.history.read(params, self)

    async def browse(self, params: ua.BrowseParameters) -> list[ua.BrowseResult]:
        """Follow references."""
        self._check_count("MaxNodesPerBrowse", params.NodesToBrowse)
        return await self._view.browse(params, self._current_turn())

    async def browse_next(self, parameters: ua.BrowseNextParameters) -> list[ua.BrowseResult]:
        """Follow the references that a Browse left, or release them."""
        self._check_count("MaxNodesPerBrowse", parameters.ContinuationPoints)
        return await self._view.browse_next(parameters, self._current_turn())

    def _current_turn(self) -> Turn:
        if self.turn is None:
            raise ServiceError(ua.StatusCodes.BadInternalError)
        return self.turn

    async def register_nodes(self, nodes: list[ua.NodeId]) -> list[ua.NodeId]:
        """Return the same NodeIds: registration would not make access faster."""
        self._check_count("MaxNodesPerRegisterNodes", nodes)
        return nodes

    async def unregister_nodes(self, nodes: list[ua.NodeId]) -> None:
        """Check the request; no node was registered."""
        self._check_count("MaxNodesPerRegisterNodes", nodes)

    async def translate_browsepaths_to_nodeids(self, params: list[ua.BrowsePath]) -> list[ua.BrowsePathResult]:
        """Follow browse paths; an invalid one does not affect the others."""
        self._check_count("MaxNodesPerTranslateBrowsePathsToNodeIds", params)
        return [await self._view.translate(path, self._current_turn()) for path in params]

    async def call(self, params: list[ua.CallMethodRequest]) -> list[ua.CallMethodResult]:
        """Call methods as the user of the session, and record each call."""
        self._check_count("MaxNodesPerMethodCall", params)
        pacer = Pacer()
        results = []
        for request in params:
            results.append(await self._call(request))
            await pacer.step()
        return results

    async def _call(self, request: ua.CallMethodRequest) -> ua.CallMethodResult:
        caller = self.caller
        if caller is None:
            raise ServiceError(ua.StatusCodes.BadSessionNotActivated)
        with calling(caller, self.locales):
            result = await self._perform(request)
        self.iserver.access.record_call(caller, self._method_name(request.MethodId), request, result)
        return result

    async def _perform(self, request: ua.CallMethodRequest) -> ua.CallMethodResult:
        for extension in self.iserver.method_extensions:
            if extension.serves(request):
                return await extension.call(request, self)
        if (name := method_of(request)) is None:
            return (await super().call([request]))[0]
        async with self.iserver.turns.work(self.account) as turn:
            return await perform(name, request.InputArguments, self.session_id, self.subscription_service, turn)

    def _may_call(self, method: ua.NodeId) -> bool:
        return self.caller is not None and self.iserver.access.may_call(self.caller, self._method_name(method))

    def _method_name(self, method: ua.NodeId) -> str:
        return browse_name(self.aspace, method)

    def owned_subscriptions(self) -> list[InternalSubscription]:
        """Return the subscriptions of this session."""
        every = self.subscription_service.subscriptions.values()
        return [subscription for subscription in every if subscription.session_id == self.session_id]

    async def create_subscription(
        self,
        params: ua.CreateSubscriptionParameters,
        callback: Callable[..., Any],
        request_callback: Callable[..., Any] | None = None,
    ) -> ua.CreateSubscriptionResult:
        """Create a subscription with a bounded publishing interval and lifetime."""
        if len(self.owned_subscriptions()) >= self._limits.subscriptions_of_session:
            raise ServiceError(ua.StatusCodes.BadTooManySubscriptions)
        await self.iserver.make_room_for_subscription(self)
        revise(params, self._limits.min_publishing_interval_ms)
        result = await super().create_subscription(params, callback, request_callback)
        subscription = self.subscription_service.subscriptions[result.SubscriptionId]
        subscription.monitored_item_srv = MonitoredItems(
            subscription, self.aspace, params.MaxNotificationsPerPublish, self._limits
        )
        subscription.monitored_item_srv.counts.priority = params.Priority
        start_publishing(subscription, self, self.iserver.turns)
        self.iserver.counts.subscriptions += 1
        return result

    def modify_subscription(self, params: ua.ModifySubscriptionParameters) -> ua.ModifySubscriptionResult:
        """Change the interval and lifetime of a subscription."""
        self._check_own(params.SubscriptionId)
        subscription = self.subscription_service.subscriptions[params.SubscriptionId]
        return modify(subscription, params, self._limits.min_publishing_interval_ms)

    async def delete_subscriptions(self, ids: list[int]) -> list[ua.StatusCode]:
        """End subscriptions."""
        if len(ids) > self._limits.subscriptions:
            raise ServiceError(ua.StatusCodes.BadTooManyOperations)
        own = self._own(ids)
        results = dict(zip(own, await super().delete_subscriptions(own), strict=True))
        return [results.get(identifier, unknown_subscription()) for identifier in ids]

    async def set_publishing_mode(self, params: ua.SetPublishingModeParameters) -> list[ua.StatusCode]:
        """Enable or disable publishing of subscriptions."""
        asked = params.SubscriptionIds
        check_count(self._limits.subscriptions, asked)
        params.SubscriptionIds = own = self._own(asked)
        results = dict(zip(own, await super().set_publishing_mode(params), strict=True))
        for number in own:
            self._items(number).counts.count_mode(enabled=params.PublishingEnabled)
        return [results.get(value, unknown_subscription()) for value in asked]

    async def transfer_subscriptions(
        self, params: ua.TransferSubscriptionsParameters, callback: Callable[..., Any]
    ) -> list[ua.TransferResult]:
        """Transfer subscriptions from another session of the same user and application (OPC 10000-4, 5.14.7)."""
        check_count(self._limits.subscriptions, params.SubscriptionIds)
        return [await self._transfer(identifier, callback) for identifier in params.SubscriptionIds]

    async def _transfer(self, subscription_id: int, callback: Callable[..., Any]) -> ua.TransferResult:
        subscription = self.subscription_service.subscriptions.get(subscription_id)
        owner = subscription and self.iserver.session_of(subscription.session_id)
        if subscription is None or not isinstance(owner, ServerSession):
            return ua.TransferResult(StatusCode=unknown_subscription())
        subscription.monitored_item_srv.counts.transfer_requests += 1
        if self.connection is None or not owner.has_same_client(self):
            return ua.TransferResult(StatusCode=ua.StatusCode(ua.StatusCodes.BadUserAccessDenied))
        one = ua.TransferSubscriptionsParameters(SubscriptionIds=[subscription_id])
        (result,) = await super().transfer_subscriptions(one, callback)
        subscription.monitored_item_srv.counts.transferred += 1
        publish_for(subscription, self, self.iserver.turns)
        subscription.pub_request_callback = self.connection.get_publish_request  # asyncua leaves it with the old one
        return result

    def publish(self, acks: Sequence[ua.SubscriptionAcknowledgement] | None = None) -> tuple[int, list[ua.StatusCode]]:
        """Acknowledge notifications and request more."""
        if not self.owned_subscriptions():
            raise ServiceError(ua.StatusCodes.BadNoSubscription)
        results = [unknown_subscription() for _ in acks or ()]
        for at, ack in enumerate(acks or ()):
            if self._owns(ack.SubscriptionId):
                _, (results[at],) = super().publish([ack])
        return len(self.owned_subscriptions()), results

    def republish(self, params: ua.RepublishParameters) -> ua.NotificationMessage:
        """Return notifications again that were not acknowledged."""
        self._check_own(params.SubscriptionId)
        return republish(self.subscription_service.subscriptions[params.SubscriptionId], params)

    async def create_monitored_items(
        self, params: ua.CreateMonitoredItemsParameters
    ) -> list[ua.MonitoredItemCreateResult]:
        """Monitor values and events."""
        self._checked_items(params.SubscriptionId, params.ItemsToCreate)
        check_timestamps(params.TimestampsToReturn)
        services = [subscription.monitored_item_srv for subscription in self.owned_subscriptions()]
        there = sum(len(service._monitored_items) for service in services)  # noqa: SLF001
        if there + len(params.ItemsToCreate) > self._limits.monitored_items_of_session:
            raise ServiceError(ua.StatusCodes.BadTooManyMonitoredItems)

        async def one(item: ua.MonitoredItemCreateRequest) -> list[ua.MonitoredItemCreateResult]:
            clamp_monitoring(item.RequestedParameters, self._limits)
            if (refused := self._refusal(item.ItemToMonitor)) is not None:
                return [ua.MonitoredItemCreateResult(StatusCode=refused.StatusCode)]
            asked = ua.CreateMonitoredItemsParameters(params.SubscriptionId, params.TimestampsToReturn, [item])
            return list(await InternalSession.create_monitored_items(self, asked))

        return await self._one_by_one(params.ItemsToCreate, one)

    async def modify_monitored_items(
        self, params: ua.ModifyMonitoredItemsParameters
    ) -> list[ua.MonitoredItemModifyResult]:
        """Change how values and events are monitored."""
        self._checked_items(params.SubscriptionId, params.ItemsToModify)
        check_timestamps(params.TimestampsToReturn)

        async def one(item: ua.MonitoredItemModifyRequest) -> list[ua.MonitoredItemModifyResult]:
            clamp_monitoring(item.RequestedParameters, self._limits)
            asked = ua.ModifyMonitoredItemsParameters(params.SubscriptionId, params.TimestampsToReturn, [item])
            return list(await InternalSession.modify_monitored_items(self, asked))

        return await self._one_by_one(params.ItemsToModify, one)

    async def delete_monitored_items(self, params: ua.DeleteMonitoredItemsParameters) -> list[ua.StatusCode]:
        """Delete monitored items."""
        items = self._checked_items(params.SubscriptionId, params.MonitoredItemIds)

        async def one(item: int) -> list[ua.StatusCode]:
            return list(items.delete_monitored_items([item]))

        return await self._one_by_one(params.MonitoredItemIds, one)

    async def set_monitoring_mode(self, params: ua.SetMonitoringModeParameters) -> list[ua.StatusCode]:
        """Set the monitoring mode of items."""
        items = self._checked_items(params.SubscriptionId, params.MonitoredItemIds)
        mode = params.MonitoringMode
        return await self._one_by_one(params.MonitoredItemIds, lambda item: items.set_monitoring_mode(mode, [item]))

    async def _one_by_one(self, operations: Iterable[_O], perform: Callable[[_O], Awaitable[list[_R]]]) -> list[_R]:
        results: list[_R] = []
        for operation in operations:
            results += await perform(operation)
            await self._step()
        return results

    async def set_triggering(self, params: ua.SetTriggeringParameters) -> ua.SetTriggeringResult:
        """Link items to the item that triggers their reports."""
        items = self._checked_items(params.SubscriptionId, [*params.LinksToAdd, *params.LinksToRemove])
        return items.set_triggering(params.TriggeringItemId, params.LinksToAdd, params.LinksToRemove)

    def _items(self, subscription_id: int) -> MonitoredItems:
        return self.subscription_service.subscriptions[subscription_id].monitored_item_srv

    def _checked_items(self, subscription_id: int, operations: Sized) -> MonitoredItems:
        self._check_own(subscription_id)
        self._check_count("MaxMonitoredItemsPerCall", operations)
        return self._items(subscription_id)

    def _check_count(self, limit: str, operations: Sized | None) -> None:
        check_count(self._limits.operations[limit], operations)

    def _own(self, ids: Iterable[int]) -> list[int]:
        return [fromkey for fromkey in dict.fromkeys(ids) if self._owns(fromkey)]

    def _owns(self, subscription_id: int) -> bool:
        subscription = self.subscription_service.subscriptions.get(subscription_id)
        return subscription is not None and bool(subscription.session_id == self.session_id)

    def _check_own(self, subscription_id: int) -> None:
        if not self._owns(subscription_id):
            raise ServiceError(ua.StatusCodes.BadSubscriptionIdInvalid)

    def _channel(self) -> ServerChannel:
        if self.connection is None:
            raise ServiceError(ua.StatusCodes.BadInternalError)
        return self.connection.channel
