"""HistoryServerCapabilities contains exactly what node-opcua can read (OPC 10000-11, 5.4)."""

from edge.features.telemetry.opcua.history_values import VALUES_PER_NODE
from edge.store.client import Store
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.features.telemetry.opcua.history_client import HistoryClient
from tests.uaserver.other_stack import OtherStack, node, other_stack

ROOT, OF_HISTORY, OF_SERVER = "i=11192", "i=11201", "i=2997"
CAPABILITIES, POINTS = "i=2268", "i=2737"
DATA, EVENTS, MOST_VALUES, MOST_EVENTS, SERVER_TIME = "i=11193", "i=11242", "i=11273", "i=11274", "i=19091"
SERVED = {"Average", "TimeAverage", "Minimum", "Maximum", "Count"}


async def names_below(other: OtherStack, parent: str) -> dict[str, str]:
    """Return the names of the children, with their NodeIds."""
    asked = {
        "nodeId": node(parent),
        "referenceTypeId": node("i=33"),
        "includeSubtypes": True,
        "browseDirection": 0,
        "resultMask": 63,
    }
    (result,) = (await other.send("Browse", nodesToBrowse=[asked]))["results"]
    return {reference["browseName"]["name"]: reference["nodeId"] for reference in result["references"] or ()}


async def test_capabilities_are_those_of_the_history_of_tags(history: HistoryClient) -> None:
    other = history.other
    assert (await names_below(other, CAPABILITIES))["HistoryServerCapabilities"] == f"ns=0;{ROOT}"
    assert await other.values(DATA, EVENTS, MOST_VALUES, SERVER_TIME, POINTS) == [True, True, 10_000, False, 20]
    assert (await names_below(other, OF_HISTORY)).keys() == SERVED
    served = await names_below(other, OF_SERVER)
    assert served.keys() == SERVED
    described = await other.read(*({"nodeId": node(item), "attributeId": 5} for item in served.values()))
    assert all(description["value"]["value"]["text"] for description in described), "aggregates had no description"
    below = await names_below(other, ROOT)
    changing = [name for name in below if name.startswith(("Insert", "Replace", "Update", "Delete"))]
    assert len(changing) == 10
    assert not any(await other.values(*(below[text] for text in changing)))
    assert await other.values("i=12165", "i=12166") == [1000, 1000]  # MaxNodesPerHistoryReadData, -Events
    start = 1_790_000_000_000
    assert len((await history.raw(start, start + 60_000_000))["historyData"]["dataValues"]) == VALUES_PER_NODE


async def test_history_without_samples_contains_events_only(store: Store) -> None:
    async with alarm_server(store) as server, other_stack(server.endpoint) as other:
        assert await other.values(DATA, EVENTS, MOST_VALUES, MOST_EVENTS) == [False, True, 0, 1_000]
        limits = await names_below(other, "i=11704")
        assert "MaxNodesPerHistoryReadEvents" in limits
        assert "MaxNodesPerHistoryReadData" not in limits
        assert await names_below(other, OF_HISTORY) == {}
