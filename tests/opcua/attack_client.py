"""An attacking client: it sends every service with its most expensive arguments and prints one JSON line for each."""

import asyncio
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from asyncua import ua
from asyncua.ua.ua_binary import nodeid_from_binary, struct_from_binary

from edge.uaserver.namespaces import Namespace
from tests.opcua_client import patient_client

PATH = "station-1/MachineryBuildingBlocks/JobManagement"
CONTROL = ua.NodeId(f"{PATH}/JobOrderControl", Namespace.MACHINES)
LIST = ua.NodeId(f"{PATH}/JobOrderControl/JobOrderList", Namespace.MACHINES)
RESULTS = ua.NodeId(f"{PATH}/JobOrderResults", Namespace.MACHINES)
CHARTS = ua.NodeId("station-1", Namespace.CHARTS)
BASE_OBJECT = ua.NodeId(ua.ObjectIds.BaseObjectType)
DIAGNOSTICS = [2275, 2290, 3707, 3708]
HIERARCHY = ua.NodeId(ua.ObjectIds.HierarchicalReferences)


def read(count: int, ranges: Callable[[int], str | None] = lambda _: None) -> Any:
    request = ua.ReadRequest()
    request.Parameters.NodesToRead = [
        ua.ReadValueId(LIST, ua.AttributeIds.Value, IndexRange=ranges(number)) for number in range(count)
    ]
    return request


def read_of(nodes: list[int]) -> Any:
    """Return a Read request for these values, repeated up to the limit of one request."""
    request = ua.ReadRequest()
    asked = [ua.ReadValueId(ua.NodeId(node), ua.AttributeIds.Value) for node in nodes]
    request.Parameters.NodesToRead = (asked * 1000)[:1000]
    return request


def browse(node: ua.NodeId, count: int) -> Any:
    asked = ua.BrowseDescription(node, ua.BrowseDirection.Both, ua.NodeId(ua.ObjectIds.References), True, 0, 63)
    request = ua.BrowseRequest()
    request.Parameters.View.Timestamp = ua.get_win_epoch()
    request.Parameters.NodesToBrowse = [asked] * count
    return request


def translate(count: int, elements: int) -> Any:
    down = ua.RelativePathElement(HIERARCHY, False, True, ua.QualifiedName("Objects"))
    up = ua.RelativePathElement(HIERARCHY, True, True, ua.QualifiedName("Root"))
    path = ua.BrowsePath(ua.NodeId(ua.ObjectIds.RootFolder), ua.RelativePath([down, up] * (elements // 2)))
    request = ua.TranslateBrowsePathsToNodeIdsRequest()
    request.Parameters.BrowsePaths = [path] * count
    return request


def monitor(subscription: int, node: ua.NodeId, count: int) -> Any:
    request = ua.CreateMonitoredItemsRequest()
    request.Parameters.SubscriptionId = subscription
    is_source = node == RESULTS
    attribute = ua.AttributeIds.EventNotifier if is_source else ua.AttributeIds.Value
    wanted = ua.EventFilter([_field("JobOrder")] * 100, ua.ContentFilter(_where())) if is_source else None
    request.Parameters.ItemsToCreate = [
        ua.MonitoredItemCreateRequest(
            ua.ReadValueId(node, attribute),
            ua.MonitoringMode.Reporting,
            ua.MonitoringParameters(number, 0.0, wanted, 1000, True),
        )
        for number in range(count)
    ]
    return request


def _field(name: str) -> ua.SimpleAttributeOperand:
    path = [ua.QualifiedName(name, Namespace.ISA95)]
    return ua.SimpleAttributeOperand(ua.NodeId(ua.ObjectIds.BaseEventType), path, ua.AttributeIds.Value)


def _where() -> list[ua.ContentFilterElement]:
    """Return a chain of negations of the maximum length."""
    last = ua.ContentFilterElement(ua.FilterOperator.IsNull, [_field("JobOrder")])
    chain = [ua.ContentFilterElement(ua.FilterOperator.Not, [ua.ElementOperand(at + 1)]) for at in range(63)]
    return [*chain, last]


def call(method: str, argument: ua.Variant, count: int, comments: int = 0) -> Any:
    texts = ua.Variant([ua.LocalizedText("x")] * comments, ua.VariantType.LocalizedText, is_array=True)
    method_id = ua.NodeId(f"{CONTROL.Identifier}/{method}", Namespace.MACHINES)
    request = ua.CallRequest()
    request.Parameters.MethodsToCall = [ua.CallMethodRequest(CONTROL, method_id, [argument, texts])] * count
    return request


def server_call(method: int, subscription: int) -> Any:
    """Return a Call request that calls a method of the Server object four times."""
    argument = ua.Variant(subscription, ua.VariantType.UInt32)
    call = ua.CallMethodRequest(ua.NodeId(ua.ObjectIds.Server), ua.NodeId(method), [argument])
    request = ua.CallRequest()
    request.Parameters.MethodsToCall = [call] * 4
    return request


def order(parameters: int) -> ua.Variant:
    """Return a job order with this number of parameters of the minimum size."""
    name, parameter = struct.pack("<i1s", 1, b"x"), struct.pack("<Ii1sB", 0, 1, b"p", 0)
    body = struct.pack("<I", 1 << 5) + name + struct.pack("<i", parameters) + parameter * parameters
    encoding = ua.NodeId(5014, Namespace.ISA95)
    return ua.Variant(ua.ExtensionObject(encoding, body), ua.VariantType.ExtensionObject)


def requests(subscription: int) -> Iterator[tuple[str, Any]]:
    """Yield every request with its name."""
    yield "read", read(1000)
    yield "read as much as fits", read(60)
    yield "read index ranges", read(1000, lambda number: f"{number % 900}:{number % 900 + 20}")
    yield "read diagnostics", read_of(DIAGNOSTICS)
    yield "browse charts", browse(CHARTS, 500)
    yield "browse types", browse(BASE_OBJECT, 500)
    yield "translate", translate(200, 60)
    yield "monitor list", monitor(subscription, LIST, 400)
    yield "monitor events", monitor(subscription, RESULTS, 10)
    items = ua.SetMonitoringModeRequest()
    items.Parameters = ua.SetMonitoringModeParameters(subscription, ua.MonitoringMode.Disabled, list(range(1000, 1400)))
    yield "disable items", items
    triggers = ua.SetTriggeringRequest()
    triggers.Parameters = ua.SetTriggeringParameters(
        subscription, 1000, list(range(1001, 1400)), list(range(2600, 3100))
    )
    yield "set triggering", triggers
    yield "resend data", server_call(ua.ObjectIds.Server_ResendData, subscription)
    yield "get monitored items", server_call(ua.ObjectIds.Server_GetMonitoredItems, subscription)
    modified = ua.ModifySubscriptionRequest()
    modified.Parameters = ua.ModifySubscriptionParameters(subscription, 0.01, 10_000, 3000, 0, 0)
    yield "modify subscription", modified
    again = ua.SetMonitoringModeRequest()
    again.Parameters = ua.SetMonitoringModeParameters(
        subscription, ua.MonitoringMode.Reporting, list(range(1000, 1400))
    )
    yield "enable items", again
    yield "call with large orders", call("StoreAndStart", order(40_000), 1)
    yield "call often", call("StoreAndStart", order(200), 100)
    yield "call with comments", call("Start", ua.Variant("job-1", ua.VariantType.String), 1, comments=50_000)
    yield "resend data of reporting items", server_call(ua.ObjectIds.Server_ResendData, subscription)
    gone = ua.DeleteMonitoredItemsRequest()
    gone.Parameters = ua.DeleteMonitoredItemsParameters(subscription, list(range(1000, 1400)))
    yield "delete items", gone
    nodes = ua.RegisterNodesRequest()
    nodes.Parameters.NodesToRegister = [LIST] * 1000
    yield "register", nodes
    write = ua.WriteRequest()
    write.Parameters.NodesToWrite = [
        ua.WriteValue(LIST, ua.AttributeIds.Value, None, ua.DataValue(ua.Variant(1)))
    ] * 1000
    yield "write", write
    transfer = ua.TransferSubscriptionsRequest()
    transfer.Parameters.SubscriptionIds = list(range(5000))
    yield "transfer", transfer
    delete = ua.DeleteSubscriptionsRequest()
    delete.Parameters.SubscriptionIds = [*range(10_000, 15_000), subscription]
    yield "delete subscriptions", delete


async def attack(endpoint: str, rounds: int, requests: Callable[[int], Iterator[tuple[str, Any]]] = requests) -> None:
    """Send every request once per round."""
    async with patient_client(endpoint) as client:
        client.uaclient.protocol.logger.setLevel("CRITICAL")
        for _ in range(rounds):
            made = await client.uaclient.create_subscription(
                ua.CreateSubscriptionParameters(50.0, 10_000, 3000, 0, True, 0),
                lambda _: None,
            )
            for name, request in requests(made.SubscriptionId):
                started = time.monotonic()
                try:
                    data = await client.uaclient.session._send_request(request)  # noqa: SLF001
                    size = len(data)
                    nodeid_from_binary(data)
                    status = struct_from_binary(ua.ResponseHeader, data).ServiceResult.name
                except ua.UaError as error:
                    status, size = type(error).__name__, 0
                line = {"name": name, "status": status, "bytes": size, "from": started, "until": time.monotonic()}
                sys.stdout.write(json.dumps(line) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(attack(sys.argv[1], int(sys.argv[2])))
