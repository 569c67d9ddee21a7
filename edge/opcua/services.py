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
from edge.opcua.time_slices import Turn
from edge.opcua.view_service import BrowseParameters


class Service(Struct, frozen=True):
    """One service: the type of its parameters, what a session does in a turn, what makes the response of the result."""

    parameters: type
    perform: Callable[[ServerSession, Any, Turn], Awaitable[Any]]
    respond: Callable[[Any], Any]


def _results(response: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return what puts results into a response; some responses have them in their parameters."""

    def respond(results: Any) -> Any:
        made = response()
        (made.Parameters if hasattr(made, "Parameters") else made).Results = results
        return made

    return respond


def _parameters(response: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda parameters: response(Parameters=parameters)


def _nothing(response: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda _: response()


def _as_it_is(answer: Any) -> Any:
    return answer


def _id(name: str) -> ua.NodeId:
    return ua.NodeId(getattr(ua.ObjectIds, f"{name}Request_Encoding_DefaultBinary"))


_S = ServerSession
_TABLE: Mapping[str, tuple[Callable[[ServerSession, Any, Turn], Awaitable[Any]], Callable[[Any], Any]]] = {
    "Read": (_S.read, Values),
    "Write": (_S.write, _results(ua.WriteResponse)),
    "HistoryRead": (_S.history_read, _results(ua.HistoryReadResponse)),
    "Browse": (_S.browse, _as_it_is),
    "BrowseNext": (_S.browse_next, _as_it_is),
    "TranslateBrowsePathsToNodeIds": (_S.translate, _results(ua.TranslateBrowsePathsToNodeIdsResponse)),
    "RegisterNodes": (_S.register_nodes, _parameters(ua.RegisterNodesResponse)),
    "UnregisterNodes": (_S.unregister_nodes, _nothing(ua.UnregisterNodesResponse)),
    "CreateSubscription": (_S.create_subscription, _parameters(ua.CreateSubscriptionResponse)),
    "ModifySubscription": (_S.modify_subscription, _parameters(ua.ModifySubscriptionResponse)),
    "SetPublishingMode": (_S.set_publishing_mode, _results(ua.SetPublishingModeResponse)),
    "TransferSubscriptions": (_S.transfer_subscriptions, _results(ua.TransferSubscriptionsResponse)),
    "DeleteSubscriptions": (_S.delete_subscriptions, _results(ua.DeleteSubscriptionsResponse)),
    "Republish": (_S.republish, _as_it_is),
    "CreateMonitoredItems": (_S.create_monitored_items, _results(ua.CreateMonitoredItemsResponse)),
    "ModifyMonitoredItems": (_S.modify_monitored_items, _results(ua.ModifyMonitoredItemsResponse)),
    "DeleteMonitoredItems": (_S.delete_monitored_items, _results(ua.DeleteMonitoredItemsResponse)),
    "SetMonitoringMode": (_S.set_monitoring_mode, _results(ua.SetMonitoringModeResponse)),
    "SetTriggering": (_S.set_triggering, _parameters(ua.SetTriggeringResponse)),
}
_OWN_PARAMETERS: Mapping[str, type] = {"Browse": BrowseParameters}
SERVICES: Mapping[ua.NodeId, Service] = MappingProxyType(
    {
        _id(name): Service(_OWN_PARAMETERS.get(name) or getattr(ua, f"{name}Parameters"), perform, respond)
        for name, (perform, respond) in _TABLE.items()
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
