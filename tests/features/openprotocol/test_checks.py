"""Controllers with Open Protocol are examined without changing anything."""

import asyncio

import pytest

from edge.features.openprotocol.checks import examine_controller
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.openprotocol.simulated.controller import open_openprotocol_controller
from edge.model.finding import Level, PublicHealthFinding, public_form


async def examined(port: int) -> PublicHealthFinding:
    settings = OpenProtocolSettings(kind="openprotocol", type_ids=("t",), url=f"tcp://127.0.0.1:{port}")
    (finding,) = [public_form(item) async for item in examine_controller("wrench", settings)]
    return finding


async def test_controller_is_identified() -> None:
    async with open_openprotocol_controller("station 7", supplier="BRC") as controller:
        finding = await examined(controller.server.port)
        assert {mid_frame.mid for mid_frame in controller.server.received} == {Mid.START, Mid.STOP}
    assert finding.level is Level.OK
    assert "Bosch Rexroth, 'station 7', revision 6" in finding.found


async def test_unavailable_controller_is_reported() -> None:
    async with open_openprotocol_controller() as controller:
        port = controller.server.port
    finding = await examined(port)
    assert (finding.level, "cannot connect" in finding.found) == (Level.FAILING, True)


@pytest.mark.parametrize(
    ("answer", "level", "text"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Level.FAILING, "is not a number"),
        (b"00260004001         000196\0", Level.OK, "is the gateway, or why the gateway is not connected"),
        (b"00260004001         000116\0", Level.FAILING, "busy"),
    ],
)
async def test_other_answers_are_explained(answer: bytes, level: Level, text: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(100):
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        finding = await examined(server.sockets[0].getsockname()[1])
    assert (finding.level, text in finding.found) == (level, True)
