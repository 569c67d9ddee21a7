"""The server states how history is kept, as node-opcua reads it (OPC 10000-11, 5.3 and 5.7)."""

from tests.features.telemetry.opcua.history_client import HistoryClient
from tests.features.telemetry.opcua.test_history_capabilities import names_below


async def test_history_is_kept_as_steps_with_the_fields_of_events(history: HistoryClient) -> None:
    other = history.other
    below = await names_below(other, "i=32637")
    assert await other.values(below["Stepped"]) == [True]
    assert len(await names_below(other, below["AggregateConfiguration"])) == 4
    results = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderResults"
    for notifier, selected in {
        "i=2253": {"JobOrder", "AckedState"},
        "ns=8;s=station-1": {"JobOrder", "AckedState"},
        "ns=1;s=Gateway": {"AckedState"},
        results: {"JobOrder"},
    }.items():
        (value,) = await other.values((await names_below(other, notifier))["HistoricalEventFilter"])
        names = {clause["browsePath"][0]["name"] for clause in value["selectClauses"]}
        assert names >= {*selected, "EventId", "Time"}, notifier
        assert ("JobOrder" in names) == ("JobOrder" in selected)
