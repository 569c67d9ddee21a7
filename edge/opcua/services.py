"""The services of many operations: the type of their parameters, and what makes the response.

A Call request is read here: asyncua decodes arguments with classes that it keeps for the whole process under their
namespace *index*. With a client to a camera in the same process, it would decode our orders by the camera's types
(github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1700, 1800). Our own codec has no shared state.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.common.utils import Buffer, ServiceError
from msgspec import Struct

from edge.opcua.answer_encoding import Values
from edge.opcua.binary import BoundedBuffer, DecodeError, read_length, read_node_id, read_variant
from edge.opcua.limits import METHOD_CALLS
from edge.opcua.server_session import ServerSession


class Service(Struct, frozen=True):
    """One service: the type of its parameters, and the function that makes the response."""

    parameters: type
    respond: Callable[[ServerSession, Any], Awaitable[Any]]


async def _read(session: ServerSession, params: ua.ReadParameters) -> Any:
    return Values(await session.read(params))


async def _write(session: ServerSession, params: ua.WriteParameters) -> Any:
    return _with_results(ua.WriteResponse(), await session.write(params))


async def _history_read(session: ServerSession, params: ua.HistoryReadParameters) -> Any:
    return _with_results(ua.HistoryReadResponse(), await session.history_read(params))


async def _browse(session: ServerSession, params: ua.BrowseParameters) -> Any:
    return _with_results(ua.BrowseResponse(), await session.browse(params))


async def _browse_next(session: ServerSession, params: ua.BrowseNextParameters) -> Any:
    response = ua.BrowseNextResponse()
    response.Parameters.Results = await session.browse_next(params)
    return response


async def _translate(session: ServerSession, params: ua.TranslateBrowsePathsToNodeIdsParameters) -> Any:
    response = ua.TranslateBrowsePathsToNodeIdsResponse()
    return _with_results(response, await session.translate_browsepaths_to_nodeids(params.BrowsePaths))


async def _register(session: ServerSession, params: ua.RegisterNodesParameters) -> Any:
    response = ua.RegisterNodesResponse()
    response.Parameters.RegisteredNodeIds = await session.register_nodes(params.NodesToRegister)
    return response


async def _unregister(session: ServerSession, params: ua.UnregisterNodesParameters) -> Any:
    await session.unregister_nodes(params.NodesToUnregister)
    return ua.UnregisterNodesResponse()


async def _create_items(session: ServerSession, params: ua.CreateMonitoredItemsParameters) -> Any:
    return _with_results(ua.CreateMonitoredItemsResponse(), await session.create_monitored_items(params))


async def _modify_items(session: ServerSession, params: ua.ModifyMonitoredItemsParameters) -> Any:
    return _with_results(ua.ModifyMonitoredItemsResponse(), await session.modify_monitored_items(params))


async def _delete_items(session: ServerSession, params: ua.DeleteMonitoredItemsParameters) -> Any:
    return _with_results(ua.DeleteMonitoredItemsResponse(), await session.delete_monitored_items(params))


async def _set_monitoring_mode(session: ServerSession, params: ua.SetMonitoringModeParameters) -> Any:
    response = ua.SetMonitoringModeResponse()
    response.Parameters.Results = await session.set_monitoring_mode(params)
    return response


async def _create_subscription(session: ServerSession, params: ua.CreateSubscriptionParameters) -> Any:
    return _with_parameters(ua.CreateSubscriptionResponse(), await session.create_subscription(params))


async def _modify_subscription(session: ServerSession, params: ua.ModifySubscriptionParameters) -> Any:
    return _with_parameters(ua.ModifySubscriptionResponse(), session.modify_subscription(params))


async def _delete_subscriptions(session: ServerSession, params: ua.DeleteSubscriptionsParameters) -> Any:
    return _with_results(ua.DeleteSubscriptionsResponse(), session.delete_subscriptions(params.SubscriptionIds))


async def _set_publishing_mode(session: ServerSession, params: ua.SetPublishingModeParameters) -> Any:
    response = ua.SetPublishingModeResponse()
    response.Parameters.Results = session.set_publishing_mode(params)
    return response


async def _transfer_subscriptions(session: ServerSession, params: ua.TransferSubscriptionsParameters) -> Any:
    response = ua.TransferSubscriptionsResponse()
    response.Parameters.Results = session.transfer_subscriptions(params)
    return response


async def _republish(session: ServerSession, params: ua.RepublishParameters) -> Any:
    return session.republish(params)


async def _set_triggering(session: ServerSession, params: ua.SetTriggeringParameters) -> Any:
    return _with_parameters(ua.SetTriggeringResponse(), session.set_triggering(params))


def _with_parameters(response: Any, parameters: Any) -> Any:
    response.Parameters = parameters
    return response


def _with_results(response: Any, results: Any) -> Any:
    response.Results = results
    return response


def _id(name: str) -> ua.NodeId:
    return ua.NodeId(getattr(ua.ObjectIds, f"{name}Request_Encoding_DefaultBinary"))


SERVICES: Mapping[ua.NodeId, Service] = MappingProxyType(
    {
        _id("Read"): Service(ua.ReadParameters, _read),
        _id("Write"): Service(ua.WriteParameters, _write),
        _id("HistoryRead"): Service(ua.HistoryReadParameters, _history_read),
        _id("Browse"): Service(ua.BrowseParameters, _browse),
        _id("BrowseNext"): Service(ua.BrowseNextParameters, _browse_next),
        _id("TranslateBrowsePathsToNodeIds"): Service(ua.TranslateBrowsePathsToNodeIdsParameters, _translate),
        _id("RegisterNodes"): Service(ua.RegisterNodesParameters, _register),
        _id("UnregisterNodes"): Service(ua.UnregisterNodesParameters, _unregister),
        _id("CreateMonitoredItems"): Service(ua.CreateMonitoredItemsParameters, _create_items),
        _id("ModifyMonitoredItems"): Service(ua.ModifyMonitoredItemsParameters, _modify_items),
        _id("DeleteMonitoredItems"): Service(ua.DeleteMonitoredItemsParameters, _delete_items),
        _id("CreateSubscription"): Service(ua.CreateSubscriptionParameters, _create_subscription),
        _id("ModifySubscription"): Service(ua.ModifySubscriptionParameters, _modify_subscription),
        _id("SetPublishingMode"): Service(ua.SetPublishingModeParameters, _set_publishing_mode),
        _id("TransferSubscriptions"): Service(ua.TransferSubscriptionsParameters, _transfer_subscriptions),
        _id("Republish"): Service(ua.RepublishParameters, _republish),
        _id("DeleteSubscriptions"): Service(ua.DeleteSubscriptionsParameters, _delete_subscriptions),
        _id("SetTriggering"): Service(ua.SetTriggeringParameters, _set_triggering),
        _id("SetMonitoringMode"): Service(ua.SetMonitoringModeParameters, _set_monitoring_mode),
    }
)

CALL, PUBLISH = _id("Call"), _id("Publish")


def read_calls(body: Buffer) -> list[ua.CallMethodRequest]:
    """Read the body of a Call request; a structure among the arguments stays as the bytes it came in.

    Raises ServiceError when it is malformed or calls too many methods at once.
    """
    try:
        data = BoundedBuffer(body.read(len(body)))
        count = read_length(data)
        if count > METHOD_CALLS:
            raise ServiceError(ua.StatusCodes.BadTooManyOperations)
        return [_read_call(data) for _ in range(count)]
    except DecodeError as error:
        raise ServiceError(ua.StatusCodes.BadDecodingError) from error


def _read_call(body: BoundedBuffer) -> ua.CallMethodRequest:
    object_id, method_id = read_node_id(body), read_node_id(body)
    arguments = [read_variant(body) for _ in range(read_length(body))]
    return ua.CallMethodRequest(ObjectId=object_id, MethodId=method_id, InputArguments=arguments)
