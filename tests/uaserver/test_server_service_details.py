"""Details of services that a client on another stack meets (OPC 10000-4)."""

from typing import Any

import pytest

from tests.uaserver.other_stack import Faulted, OtherStack, node, value_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

SERVER, CLOCK, LEVEL, OBJECTS, ROOT = "i=2253", "i=2258", "i=2267", "i=85", "i=84"
EVENT_NOTIFIER = 12


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("QueryFirst", {"view": {}, "nodeTypes": [], "filter": {"elements": []}}),
        ("QueryNext", {"releaseContinuationPoint": True}),
        ("HistoryUpdate", {"historyUpdateDetails": []}),
        ("FindServersOnNetwork", {"startingRecordId": 0}),
    ],
)
async def test_service_that_is_not_there_is_unsupported(
    other: OtherStack, name: str, parameters: dict[str, Any]
) -> None:
    """They were Bad_UserAccessDenied, or Bad_SessionIdInvalid."""
    with pytest.raises(Faulted, match="BadServiceUnsupported"):
        await other.send(name, **parameters)


async def references(other: OtherStack, mask: int) -> list[dict[str, Any]]:
    asked = {"nodeId": node(OBJECTS), "browseDirection": 0, "includeSubtypes": True, "nodeClassMask": 0}
    response = await other.send("Browse", requestedMaxReferencesPerNode=2, nodesToBrowse=[asked | {"resultMask": mask}])
    (result,) = response["results"]
    point = {"$": "Buffer", "hex": result["continuationPoint"]}
    (rest,) = (await other.send("BrowseNext", continuationPoints=[point]))["results"]
    found: list[dict[str, Any]] = [*result["references"], *rest["references"]]
    return found


async def test_references_have_the_requested_fields(other: OtherStack) -> None:
    """A resultMask of 0 returned everything."""
    empty, named, every = [await references(other, mask) for mask in (0, 8, 63)]
    assert [one["nodeId"] for one in empty] == [one["nodeId"] for one in every]
    assert {one["browseName"]["name"] for one in empty} == {None}
    assert {(one["referenceTypeId"], one["isForward"], one["nodeClass"]) for one in empty} == {("ns=0;i=0", False, 0)}
    assert [one["browseName"] for one in named] == [one["browseName"] for one in every]
    assert {one["typeDefinition"] for one in named} == {"ns=0;i=0"}


async def test_browse_path_with_a_null_name_is_refused(other: OtherStack) -> None:
    down = {"referenceTypeId": node("i=33"), "isInverse": False, "includeSubtypes": True}
    elements = [down, down | {"targetName": {"name": "Server"}}]
    path = {"startingNode": node(ROOT), "relativePath": {"elements": elements}}
    (result,) = (await other.send("TranslateBrowsePathsToNodeIds", browsePaths=[path]))["results"]
    assert result["statusCode"] == "BadBrowseNameInvalid"


async def test_no_subscription_to_delete_is_nothing_to_do(other: OtherStack) -> None:
    with pytest.raises(Faulted, match="BadNothingToDo"):
        await other.send("DeleteSubscriptions", subscriptionIds=[])


async def test_negative_deadband_is_refused(other: OtherStack) -> None:
    subscription = await other.subscription()
    dead = {"$": "DataChangeFilter", "trigger": 1, "deadbandType": 1, "deadbandValue": -1.0}
    (result,) = await other.monitor(subscription, value_of(LEVEL, parameters={"filter": dead}))
    assert result["statusCode"] == "BadDeadbandFilterInvalid"


async def test_longer_sampling_interval_is_revised_to_itself(other: OtherStack) -> None:
    subscription = await other.subscription()
    asked = [value_of(CLOCK, parameters={"samplingInterval": interval}) for interval in (5000, 0, -1)]
    results = await other.monitor(subscription, *asked)
    assert [result["revisedSamplingInterval"] for result in results] == [5000, 50, 50]


def events(*names: str | None, kind: str = "i=2041") -> dict[str, Any]:
    clauses = [{"typeDefinitionId": node(kind), "browsePath": [{"name": name}], "attributeId": 13} for name in names]
    return {"$": "EventFilter", "selectClauses": clauses, "whereClause": {"elements": []}}


async def test_node_that_sends_no_events_is_not_monitored_for_them(other: OtherStack) -> None:
    subscription = await other.subscription()
    item = {"nodeId": node(OBJECTS), "attributeId": EVENT_NOTIFIER, "parameters": {"filter": events("Message")}}
    (result,) = await other.monitor(subscription, item)
    assert result["statusCode"] == "BadNotSupported"


async def test_unknown_fields_of_events_are_named(other: OtherStack) -> None:
    subscription = await other.subscription()

    async def monitored(wanted: dict[str, Any]) -> dict[str, Any]:
        item = {"nodeId": node(SERVER), "attributeId": EVENT_NOTIFIER, "parameters": {"filter": wanted}}
        (result,) = await other.monitor(subscription, item)
        return result

    result = await monitored(events("Message", "Nonsense", None))
    assert result["statusCode"] == "Good"
    assert result["filterResult"]["selectClauseResults"] == ["Good", "BadNodeIdUnknown", "BadBrowseNameInvalid"]
    result = await monitored(events("Message", kind=OBJECTS))
    assert result["filterResult"]["selectClauseResults"] == ["BadTypeDefinitionInvalid"]


async def test_endpoints_are_filtered_by_their_profile(other: OtherStack) -> None:
    binary = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary"
    every = (await other.send("GetEndpoints", profileUris=[]))["endpoints"]
    assert (await other.send("GetEndpoints", profileUris=[binary]))["endpoints"] == every
    assert (await other.send("GetEndpoints", profileUris=["urn:other"]))["endpoints"] == []
