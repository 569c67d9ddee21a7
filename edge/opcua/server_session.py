"""Sessions with random tokens, owned subscriptions and bounded requests.

asyncua numbers tokens and subscriptions from a small number on, and does not check their owner.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence, Sized
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.internal_session import InternalSession, SessionState

from edge.opcua.access import Caller, bounded_locales, calling, reading_in
from edge.opcua.answer_encoding import EncodedMessage
from edge.opcua.limits import (
    REQUEST_BYTES,
    ServerLimits,
    check_application,
    check_count,
    clamp,
    unknown_subscription,
)
from edge.opcua.request_counts import SessionRecord
from edge.opcua.server_channel import ServerChannel
from edge.opcua.subscriptions import ClientSubscription, PublishRequests, SessionConnection
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
    method: str, arguments: Sequence[ua.Variant], session: "ServerSession", turn: Turn
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
    subscription = session.iserver.subscriptions.get(argument.Value)
    if subscription is None:
        return _bad(ua.StatusCodes.BadSubscriptionIdInvalid)
    if subscription.session is not session:
        return _bad(ua.StatusCodes.BadUserAccessDenied)
    if method == RESEND_DATA:
        await subscription.items.resend(turn)
        return ua.CallMethodResult()
    outputs = [ua.Variant(handles, ua.VariantType.UInt32, is_array=True) for handles in subscription.items.handles()]
    return ua.CallMethodResult(OutputArguments=outputs)


def _bad(code: int) -> ua.CallMethodResult:
    return ua.CallMethodResult(StatusCode=ua.StatusCode(code))


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
        self.publish_requests = PublishRequests()
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
        await super().close_session(delete_subs=False)
        for subscription in self.owned_subscriptions():
            self.iserver.subscriptions.delete(subscription.id)

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
            return await perform(name, request.InputArguments, self, turn)

    def _may_call(self, method: ua.NodeId) -> bool:
        return self.caller is not None and self.iserver.access.may_call(self.caller, self._method_name(method))

    def _method_name(self, method: ua.NodeId) -> str:
        return browse_name(self.aspace, method)

    def owned_subscriptions(self) -> list[ClientSubscription]:
        """Return the subscriptions of this session."""
        owned: list[ClientSubscription] = self.iserver.subscriptions.owned_by(self)
        return owned

    async def create_subscription(self, params: ua.CreateSubscriptionParameters) -> ua.CreateSubscriptionResult:
        """Create a subscription."""
        if len(self.owned_subscriptions()) >= self._limits.subscriptions_of_session:
            raise ServiceError(ua.StatusCodes.BadTooManySubscriptions)
        await self.iserver.make_room_for_subscription(self)
        self.iserver.counts.subscriptions += 1
        return self.iserver.subscriptions.create(self, params)

    def modify_subscription(self, params: ua.ModifySubscriptionParameters) -> ua.ModifySubscriptionResult:
        """Change the interval and lifetime of a subscription."""
        return self._own(params.SubscriptionId).modify(params, self._limits.min_publishing_interval_ms)

    def delete_subscriptions(self, ids: Sequence[int]) -> list[ua.StatusCode]:
        """End subscriptions."""
        check_count(self._limits.subscriptions, ids)
        return [
            self.iserver.subscriptions.delete(number) if self._owned(number) else unknown_subscription()
            for number in ids
        ]

    def set_publishing_mode(self, params: ua.SetPublishingModeParameters) -> list[ua.StatusCode]:
        """Enable or disable publishing of subscriptions."""
        check_count(self._limits.subscriptions, params.SubscriptionIds)
        results = []
        for number in params.SubscriptionIds:
            subscription = self._owned(number)
            results.append(ua.StatusCode() if subscription else unknown_subscription())
            if subscription is not None:
                subscription.is_enabled = params.PublishingEnabled
                subscription.counts.count_mode(enabled=params.PublishingEnabled)
        return results

    def transfer_subscriptions(self, params: ua.TransferSubscriptionsParameters) -> list[ua.TransferResult]:
        """Transfer subscriptions from another session of the same user and application (OPC 10000-4, 5.14.7)."""
        check_count(self._limits.subscriptions, params.SubscriptionIds)
        return [self._transfer(number) for number in params.SubscriptionIds]

    def _transfer(self, number: int) -> ua.TransferResult:
        subscription: ClientSubscription | None = self.iserver.subscriptions.get(number)
        if subscription is None:
            return ua.TransferResult(StatusCode=unknown_subscription())
        subscription.counts.transfer_requests += 1
        owner = subscription.session
        if not isinstance(owner, ServerSession) or not owner.has_same_client(self):
            return ua.TransferResult(StatusCode=ua.StatusCode(ua.StatusCodes.BadUserAccessDenied))
        subscription.move(self)
        subscription.counts.transferred += 1
        return ua.TransferResult(AvailableSequenceNumbers=sorted(subscription.unacknowledged))

    def acknowledge(self, acknowledgements: Sequence[ua.SubscriptionAcknowledgement]) -> list[ua.StatusCode]:
        """Forget the messages that the client has. Raises ServiceError without a subscription."""
        if not self.owned_subscriptions():
            raise ServiceError(ua.StatusCodes.BadNoSubscription)
        results = []
        for item in acknowledgements:
            subscription = self._owned(item.SubscriptionId)
            results.append(subscription.acknowledge(item.SequenceNumber) if subscription else unknown_subscription())
        return results

    def republish(self, params: ua.RepublishParameters) -> EncodedMessage:
        """Return notifications again that were not acknowledged."""
        return self._own(params.SubscriptionId).message(params.RetransmitSequenceNumber)

    async def create_monitored_items(
        self, params: ua.CreateMonitoredItemsParameters
    ) -> list[ua.MonitoredItemCreateResult]:
        """Monitor values and events."""
        subscription = self._own_with(params.SubscriptionId, params.ItemsToCreate)
        check_timestamps(params.TimestampsToReturn)
        there = sum(len(other.items) for other in self.owned_subscriptions())
        if there + len(params.ItemsToCreate) > self._limits.monitored_items_of_session:
            raise ServiceError(ua.StatusCodes.BadTooManyMonitoredItems)
        results = []
        for item in params.ItemsToCreate:
            if (refused := self._refusal(item.ItemToMonitor)) is not None:
                results.append(ua.MonitoredItemCreateResult(StatusCode=refused.StatusCode))
            else:
                results.append(
                    await subscription.items.create(item, params.TimestampsToReturn, subscription.interval_ms)
                )
            await self._step()
        return results

    async def modify_monitored_items(
        self, params: ua.ModifyMonitoredItemsParameters
    ) -> list[ua.MonitoredItemModifyResult]:
        """Change how values and events are monitored."""
        subscription = self._own_with(params.SubscriptionId, params.ItemsToModify)
        check_timestamps(params.TimestampsToReturn)
        results = []
        for item in params.ItemsToModify:
            results.append(subscription.items.modify(item, params.TimestampsToReturn, subscription.interval_ms))
            await self._step()
        return results

    async def delete_monitored_items(self, params: ua.DeleteMonitoredItemsParameters) -> list[ua.StatusCode]:
        """Delete monitored items."""
        items = self._own_with(params.SubscriptionId, params.MonitoredItemIds).items
        results = []
        for item in params.MonitoredItemIds:
            results.append(items.delete(item))
            await self._step()
        return results

    async def set_monitoring_mode(self, params: ua.SetMonitoringModeParameters) -> list[ua.StatusCode]:
        """Set the monitoring mode of items."""
        items = self._own_with(params.SubscriptionId, params.MonitoredItemIds).items
        results = []
        for item in params.MonitoredItemIds:
            results.append(await items.set_mode(params.MonitoringMode, item))
            await self._step()
        return results

    def set_triggering(self, params: ua.SetTriggeringParameters) -> ua.SetTriggeringResult:
        """Link items to the item that triggers their reports."""
        items = self._own_with(params.SubscriptionId, [*params.LinksToAdd, *params.LinksToRemove]).items
        return items.set_triggering(params.TriggeringItemId, params.LinksToAdd, params.LinksToRemove)

    def _own_with(self, number: int, operations: Sized) -> ClientSubscription:
        subscription = self._own(number)
        self._check_count("MaxMonitoredItemsPerCall", operations)
        return subscription

    def _check_count(self, limit: str, operations: Sized | None) -> None:
        check_count(self._limits.operations[limit], operations)

    def _owned(self, number: int) -> ClientSubscription | None:
        subscription: ClientSubscription | None = self.iserver.subscriptions.get(number)
        return subscription if subscription is not None and subscription.session is self else None

    def _own(self, number: int) -> ClientSubscription:
        if (subscription := self._owned(number)) is None:
            raise ServiceError(ua.StatusCodes.BadSubscriptionIdInvalid)
        return subscription

    def _channel(self) -> ServerChannel:
        if self.connection is None:
            raise ServiceError(ua.StatusCodes.BadInternalError)
        return self.connection.channel
