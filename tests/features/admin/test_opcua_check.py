"""The connections of the OPC UA server are examined by connecting, its announcement by its file."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from edge.config import OpcuaSettings, Settings
from edge.features.admin.opcua_check import examine_announcement, examine_listener, examine_port, examine_server
from edge.features.opcua_extras import mdns_file
from edge.model.finding import HealthFinding, Level
from tests.free_ports import free_port


@asynccontextmanager
async def answering(words: bytes) -> AsyncIterator[str]:
    """Listen and answer every client with these bytes; return the endpoint."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(words)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"opc.tcp://0.0.0.0:{server.sockets[0].getsockname()[1]}"


async def only(findings: AsyncIterator[HealthFinding]) -> HealthFinding:
    (finding,) = [each async for each in findings]
    return finding


@pytest.mark.parametrize(
    ("words", "level"),
    [(b"ACKF", Level.OK), (b"ERRF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)],
)
async def test_opcua_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        assert (await only(examine_port(OpcuaSettings(endpoint=endpoint)))).level is level


@pytest.mark.parametrize(
    ("words", "level"), [(b"ACKF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)]
)
async def test_equipment_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        url = f"opc.tcp://localhost:{endpoint.rpartition(':')[2]}"
        finding = await only(examine_server("equipment camera", url, "jobs wait for it"))
    assert (finding.subject, finding.level) == ("equipment camera", level)


async def test_listening_client_is_examined_by_connecting() -> None:
    async with answering(b"") as endpoint:
        url = f"opc.tcp://localhost:{endpoint.rpartition(':')[2]}"
        assert (await only(examine_listener("OPC UA client", url))).level is Level.OK
    finding = await only(examine_listener("OPC UA client", f"opc.tcp://127.0.0.1:{free_port()}"))
    assert (finding.level, "no client listens" in finding.found) == (Level.WARNING, True)


async def test_client_with_an_invalid_host_name_is_reported() -> None:
    finding = await only(examine_listener("OPC UA client", "opc.tcp://a..b"))
    assert (finding.level, "no client listens" in finding.found) == (Level.WARNING, True)


async def test_missing_or_outdated_announcement_is_reported(tmp_path: Path) -> None:
    settings = Settings(opcua=OpcuaSettings(advertise=True))
    services, reported = tmp_path / "services", []
    for act in (
        lambda: None,
        services.mkdir,
        lambda: mdns_file.update_service_file(settings, services),
        lambda: (services / "microdcs-edge.service").write_text("old"),
    ):
        act()
        reported.append((await only(examine_announcement(settings, services))).level)
    assert reported == [Level.WARNING, Level.WARNING, Level.OK, Level.WARNING]


async def test_closed_port_may_be_of_a_gateway_that_waits_for_its_store() -> None:
    """It said that the gateway does not run, and to install it, while it ran and opened its store again."""
    finding = await only(examine_port(OpcuaSettings(endpoint=f"opc.tcp://127.0.0.1:{free_port()}")))
    assert finding.level is Level.WARNING
    assert "no gateway serves there" in finding.found
    assert finding.advice.startswith("A gateway that runs opens it as soon as it has its store.")


async def test_disabled_server_is_ok() -> None:
    assert (await only(examine_port(OpcuaSettings(endpoint="")))).level is Level.OK


async def test_address_without_an_interface_is_reported() -> None:
    """The doctor advised to stop another program where an address had not come yet."""
    # TEST-NET-1 (RFC 5737): no machine has it.
    finding = await only(examine_port(OpcuaSettings(endpoint="opc.tcp://192.0.2.1:4840")))
    assert (finding.level, finding.found) == (
        Level.FAILING,
        "no interface of this machine has the address of opc.tcp://192.0.2.1:4840",
    )
