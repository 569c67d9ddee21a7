"""Performs the methods of the Server object about subscriptions (OPC 10000-5, 9.1 and 9.2)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from asyncua import ua
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.server.subscription_service import SubscriptionService

from edge.opcua.time_slices import Turn

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
