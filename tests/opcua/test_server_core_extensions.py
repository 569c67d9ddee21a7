"""Without telemetry, reading history is refused."""

from asyncua import ua

from edge.opcua.server_core import NoHistory


async def test_history_is_refused_for_each_node() -> None:
    params = ua.HistoryReadParameters(NodesToRead=[ua.HistoryReadValueId()] * 3)
    results = await NoHistory().read(params, None)
    assert [result.StatusCode.name for result in results] == ["BadHistoryOperationUnsupported"] * 3
