"""Another OPC UA server is recognised by its answer to a Hello message."""

import pytest

from edge.app.opcua_hello import examine_server
from edge.model.finding import Level
from tests.app.opcua_answering import answering, only


@pytest.mark.parametrize(
    ("words", "level"), [(b"ACKF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)]
)
async def test_equipment_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        url = f"opc.tcp://localhost:{endpoint.rpartition(':')[2]}"
        finding = await only(examine_server("equipment camera", url, "jobs wait for it"))
    assert (finding.subject, finding.level) == ("equipment camera", level)
