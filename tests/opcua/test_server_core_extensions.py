"""Without telemetry, reading history is refused."""

from asyncua import ua

from edge.opcua.server_core import NoHistory
from edge.opcua.time_slices import Turns


async def test_history_is_refused_for_each_node() -> None:
    params = ua.HistoryReadParameters(NodesToRead=[ua.HistoryReadValueId()] * 3)
    turns = Turns()
    async with turns.work(turns.account("client")) as turn:
        results = await NoHistory().read(params, None, turn)
    turns.close()
    assert [result.StatusCode.name for result in results] == ["BadHistoryOperationUnsupported"] * 3
