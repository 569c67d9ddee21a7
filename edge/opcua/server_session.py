"""Sessions with random tokens, owned subscriptions and bounded requests.

asyncua numbers tokens and subscriptions from a small number on, and does not check their owner.
"""

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence, Sized
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from asyncua import ua
from asyncua.common.utils import ServiceError

from edge.opcua.access import Caller, bounded_locales, calling, reading_in
from edge.opcua.answer_encoding import BrowseNextResults, BrowseResults, EncodedMessage
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
from edge.opcua.view_service import BrowseParameters, View, encode_results

if TYPE_CHECKING:
    from edge.opcua.server_core import ServerCore

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
    subscription = session.subscription(argument.Value)
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


_NONCE_BYTES = 32


class ServerSession:
    """A session created over one channel, used over that channel or another one of the same client."""

    def __init__(self, core: "ServerCore", number: int, address: str, connection: SessionConnection) -> None:
        self.session_id = ua.NodeId(number, 1)
        self.auth_token = ua.NodeId(secrets.token_bytes(32), 0, ua.NodeIdType.ByteString)
        self.nonce = b""
        """The last one, which the client signs next."""
        self.is_activated = False
        self.is_closed = False
        self.timeout_s = 0.0
        self.connection = connection
        self.caller: Caller | None = None
        self.locales: tuple[str, ...] = ()
        self.certificate = b""
        self.address = address
        self.user_key = address
        """Whose use of the server counts together: a user, or the address of anonymous sessions."""
        self.account: Account = core.turns.account(self.user_key)
        self.record = SessionRecord()
        self.publish_requests = PublishRequests()
        self._core = core
        self._limits: ServerLimits = core.limits
        self._view = View(core.aspace, core.reference_types)
        self._active_at = asyncio.get_running_loop().time()
        self._timer: asyncio.TimerHandle | None = None

    def is_usable_on(self, channel: ServerChannel, *, has_moved: bool) -> bool:
        """Return whether it may be activated on a channel: its own, or later an encrypted one of the same client."""
        if self.is_closed or not has_moved:
            return not self.is_closed
        return self.is_activated and channel.is_encrypted and channel.certificate == self.certificate

    def has_same_client(self, other: "ServerSession") -> bool:
        """Return whether both belong to the same user of the same application, as far as proved."""
        return bool(self.certificate) and (self.certificate, self.caller) == (other.certificate, other.caller)

    async def create(
        self, params: ua.CreateSessionParameters, local: tuple[str, int] | None = None
    ) -> ua.CreateSessionResult:
        """Answer CreateSession if the client is the application of the channel; `local` is the address it reached."""
        channel = self.connection.channel
        self.record.asked = params
        if channel.is_encrypted:
            self.certificate = channel.certificate
            check_application(channel.certificate, params)
        # NaN would become the delay of a timer, and an event loop that sorts timers by NaN finds none in time.
        timeout_ms = clamp(
            params.RequestedSessionTimeout or 0.0, self._core.min_session_timeout_ms, self._core.max_session_timeout_ms
        )
        self.timeout_s = timeout_ms / 1000
        self.nonce = secrets.token_bytes(_NONCE_BYTES)
        self._watch(self._core.activation_s)
        endpoints = ua.GetEndpointsParameters(EndpointUrl=params.EndpointUrl)
        self._core.note_session()
        return ua.CreateSessionResult(
            SessionId=self.session_id,
            AuthenticationToken=self.auth_token,
            RevisedSessionTimeout=timeout_ms,
            ServerNonce=self.nonce,
            ServerEndpoints=await self._core.get_endpoints(endpoints, local),
            MaxRequestMessageSize=REQUEST_BYTES,
        )

    def activate(self, caller: Caller, locales: Sequence[str] = ()) -> ua.ActivateSessionResult:
        """Activate the session for `caller`; without LocaleIds it keeps those of its first activation."""
        self.locales = bounded_locales(locales) or self.locales
        self.touch()
        if not self.is_activated:
            self.is_activated = True
            self._watch(self.timeout_s)
        self.nonce = secrets.token_bytes(_NONCE_BYTES)
        self.caller = caller
        self.address = caller.address
        self.user_key = f"user {caller.name}" if caller.name else caller.address
        self.account = self._core.turns.account(self.user_key)
        return ua.ActivateSessionResult(ServerNonce=self.nonce)

    def touch(self) -> None:
        """Restart the timeout: the client has sent a request."""
        self._active_at = asyncio.get_running_loop().time()

    def _watch(self, silence_s: float) -> None:
        """Close the session when its client is silent for so long."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self._active_at + silence_s, self._check_silence, silence_s)

    def _check_silence(self, silence_s: float) -> None:
        if self._active_at + silence_s > asyncio.get_running_loop().time():
            self._watch(silence_s)
            return
        self._core.counts.timeouts += 1
        self.close()

    def close(self) -> None:
        """Close the session with its subscriptions: no other session can take them over."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._core.forget_session(self)
        for subscription in self.owned_subscriptions():
            self._core.subscriptions.delete(subscription.id)

    async def read(self, params: ua.ReadParameters, turn: Turn) -> list[ua.DataValue]:
        """Read attributes; the value of UserExecutable depends on the caller."""
        self._check_count("MaxNodesPerRead", params.NodesToRead)
        if params.MaxAge < 0:
            raise ServiceError(ua.StatusCodes.BadMaxAgeInvalid)
        check_timestamps(params.TimestampsToReturn)
        await self._prepare((item.NodeId for item in params.NodesToRead), turn)
        stamps = Stamps(params.TimestampsToReturn, datetime.now(UTC))
        results = []
        with reading_in(self.locales):
            for item in params.NodesToRead:
                results.append(stamps.apply(self._read(item), item.AttributeId))
                await turn.step()
        return results

    def _read(self, item: ua.ReadValueId) -> ua.DataValue:
        if (refused := self._refusal(item)) is not None:
            return refused
        value = read_item(self._core.aspace, item)
        if (localized := self._core.localized.get(item.NodeId)) and item.AttributeId == ua.AttributeIds.Value:
            return localized_value(value, localized, self.locales)
        if not item.IndexRange and item.AttributeId == ua.AttributeIds.UserExecutable and value.StatusCode.is_good():
            return ua.DataValue(ua.Variant(self._may_call(item.NodeId), ua.VariantType.Boolean))
        return value

    def _refusal(self, item: ua.ReadValueId) -> ua.DataValue | None:
        """Return the answer about a value that the caller may not read; None for all others."""
        return None if self.may_read(item.NodeId) else refused_value(item.AttributeId)

    def may_read(self, node_id: ua.NodeId) -> bool:
        """Return whether the caller may read the value of a node, now and in the past."""
        caller, channel = self.caller, self.connection.channel
        if caller is None:
            return False
        for may_read in self._core.read_checks:  # noqa: SIM110 - a generator would take a tenth of a large Read
            if not may_read(node_id, caller, channel):
                return False
        return True

    async def _prepare(self, nodes: Iterable[ua.NodeId], turn: Turn) -> None:
        """Wait for what has to be computed before these nodes are read."""
        preparations = self._core.preparations
        for prepare in {preparations[node] for node in nodes if node in preparations}:
            await turn.wait(prepare())

    async def write(self, params: ua.WriteParameters, _turn: Turn) -> list[ua.StatusCode]:
        """Refuse: some official nodes, such as JobOrderResponseList, are declared writable, and no client may write."""
        self._check_count("MaxNodesPerWrite", params.NodesToWrite)
        return [ua.StatusCode(ua.StatusCodes.BadUserAccessDenied) for _ in params.NodesToWrite]

    async def history_read(self, params: ua.HistoryReadParameters, turn: Turn) -> list[ua.HistoryReadResult]:
        """Read history."""
        self._check_count("MaxNodesPerRead", params.NodesToRead)
        return await self._core.history.read(params, self, turn)

    async def browse(self, params: BrowseParameters, turn: Turn) -> BrowseResults:
        """Follow references."""
        self._check_count("MaxNodesPerBrowse", params.NodesToBrowse)
        return BrowseResults(await encode_results(await self._view.browse(params, turn), turn))

    async def browse_next(self, parameters: ua.BrowseNextParameters, turn: Turn) -> BrowseNextResults:
        """Follow the references that a Browse left, or release them."""
        self._check_count("MaxNodesPerBrowse", parameters.ContinuationPoints)
        results = await self._view.browse_next(parameters, turn)
        return BrowseNextResults(await encode_results(results, turn))

    async def register_nodes(self, params: ua.RegisterNodesParameters, _turn: Turn) -> ua.RegisterNodesResult:
        """Return the same NodeIds: registration would not make access faster."""
        self._check_count("MaxNodesPerRegisterNodes", params.NodesToRegister)
        return ua.RegisterNodesResult(params.NodesToRegister)

    async def unregister_nodes(self, params: ua.UnregisterNodesParameters, _turn: Turn) -> None:
        """Check the request; no node was registered."""
        self._check_count("MaxNodesPerRegisterNodes", params.NodesToUnregister)

    async def translate(
        self, params: ua.TranslateBrowsePathsToNodeIdsParameters, turn: Turn
    ) -> list[ua.BrowsePathResult]:
        """Follow browse paths; an invalid one does not affect the others."""
        self._check_count("MaxNodesPerTranslateBrowsePathsToNodeIds", params.BrowsePaths)
        return [await self._view.translate(path, turn) for path in params.BrowsePaths]

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
        self._core.access.record_call(caller, self._method_name(request.MethodId), request, result)
        return result

    async def _perform(self, request: ua.CallMethodRequest) -> ua.CallMethodResult:
        for extension in self._core.method_extensions:
            if extension.serves(request):
                return await extension.call(request, self)
        if (name := method_of(request)) is None:
            return await self._core.call_method(request)
        async with self._core.turns.work(self.account) as turn:
            return await perform(name, request.InputArguments, self, turn)

    def _may_call(self, method: ua.NodeId) -> bool:
        return self.caller is not None and self._core.access.may_call(self.caller, self._method_name(method))

    def _method_name(self, method: ua.NodeId) -> str:
        return browse_name(self._core.aspace, method)

    def owned_subscriptions(self) -> list[ClientSubscription]:
        """Return the subscriptions of this session."""
        return self._core.subscriptions.owned_by(self)

    def subscription(self, number: int) -> ClientSubscription | None:
        """Return a subscription, which may be that of another session."""
        return self._core.subscriptions.get(number)

    async def create_subscription(
        self, params: ua.CreateSubscriptionParameters, _turn: Turn
    ) -> ua.CreateSubscriptionResult:
        """Create a subscription."""
        if len(self.owned_subscriptions()) >= self._limits.subscriptions_of_session:
            raise ServiceError(ua.StatusCodes.BadTooManySubscriptions)
        self._core.make_room_for_subscription(self)
        self._core.counts.subscriptions += 1
        return self._core.subscriptions.create(self, params)

    async def modify_subscription(
        self, params: ua.ModifySubscriptionParameters, _turn: Turn
    ) -> ua.ModifySubscriptionResult:
        """Change the interval and lifetime of a subscription."""
        return self._own(params.SubscriptionId).modify(params, self._limits.min_publishing_interval_ms)

    async def delete_subscriptions(self, params: ua.DeleteSubscriptionsParameters, _turn: Turn) -> list[ua.StatusCode]:
        """End subscriptions."""
        ids = params.SubscriptionIds
        check_count(self._limits.subscriptions, ids)
        return [
            self._core.subscriptions.delete(number) if self._owned(number) else unknown_subscription() for number in ids
        ]

    async def set_publishing_mode(self, params: ua.SetPublishingModeParameters, _turn: Turn) -> list[ua.StatusCode]:
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

    async def transfer_subscriptions(
        self, params: ua.TransferSubscriptionsParameters, _turn: Turn
    ) -> list[ua.TransferResult]:
        """Transfer subscriptions from another session of the same user and application (OPC 10000-4, 5.14.7)."""
        check_count(self._limits.subscriptions, params.SubscriptionIds)
        return [self._transfer(number) for number in params.SubscriptionIds]

    def _transfer(self, number: int) -> ua.TransferResult:
        subscription = self.subscription(number)
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

    async def republish(self, params: ua.RepublishParameters, _turn: Turn) -> EncodedMessage:
        """Return notifications again that were not acknowledged."""
        return self._own(params.SubscriptionId).message(params.RetransmitSequenceNumber)

    async def create_monitored_items(
        self, params: ua.CreateMonitoredItemsParameters, turn: Turn
    ) -> list[ua.MonitoredItemCreateResult]:
        """Monitor values and events."""
        subscription = self._own_with(params.SubscriptionId, params.ItemsToCreate)
        check_timestamps(params.TimestampsToReturn)
        there = sum(len(other.items) for other in self.owned_subscriptions())
        if there + len(params.ItemsToCreate) > self._limits.monitored_items_of_session:
            raise ServiceError(ua.StatusCodes.BadTooManyMonitoredItems)
        nodes = [item.ItemToMonitor.NodeId for item in params.ItemsToCreate]
        await self._prepare(nodes, turn)
        results = []
        for item in params.ItemsToCreate:
            if (refused := self._refusal(item.ItemToMonitor)) is not None:
                results.append(ua.MonitoredItemCreateResult(StatusCode=refused.StatusCode))
            else:
                results.append(
                    await subscription.items.create(item, params.TimestampsToReturn, subscription.interval_ms)
                )
            await turn.step()
        await self._prepare(nodes, turn)  # it has changed before it was monitored
        return results

    async def modify_monitored_items(
        self, params: ua.ModifyMonitoredItemsParameters, turn: Turn
    ) -> list[ua.MonitoredItemModifyResult]:
        """Change how values and events are monitored."""
        subscription = self._own_with(params.SubscriptionId, params.ItemsToModify)
        check_timestamps(params.TimestampsToReturn)
        results = []
        for item in params.ItemsToModify:
            results.append(subscription.items.modify(item, params.TimestampsToReturn, subscription.interval_ms))
            await turn.step()
        return results

    async def delete_monitored_items(
        self, params: ua.DeleteMonitoredItemsParameters, turn: Turn
    ) -> list[ua.StatusCode]:
        """Delete monitored items."""
        items = self._own_with(params.SubscriptionId, params.MonitoredItemIds).items
        results = []
        for item in params.MonitoredItemIds:
            results.append(items.delete(item))
            await turn.step()
        return results

    async def set_monitoring_mode(self, params: ua.SetMonitoringModeParameters, turn: Turn) -> list[ua.StatusCode]:
        """Set the monitoring mode of items."""
        items = self._own_with(params.SubscriptionId, params.MonitoredItemIds).items
        results = []
        for item in params.MonitoredItemIds:
            results.append(await items.set_mode(params.MonitoringMode, item))
            await turn.step()
        return results

    async def set_triggering(self, params: ua.SetTriggeringParameters, _turn: Turn) -> ua.SetTriggeringResult:
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
        subscription = self.subscription(number)
        return subscription if subscription is not None and subscription.session is self else None

    def _own(self, number: int) -> ClientSubscription:
        if (subscription := self._owned(number)) is None:
            raise ServiceError(ua.StatusCodes.BadSubscriptionIdInvalid)
        return subscription
