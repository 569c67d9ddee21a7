"""Clients that listen, and the announcement of the server, are examined."""

from pathlib import Path

from edge.config import OpcuaSettings, Settings
from edge.features.opcua_extras import commands as advertise
from edge.features.opcua_extras.checks import examine_announcement, examine_listener
from edge.model.finding import Level
from tests.app.opcua_answering import answering, only
from tests.free_ports import free_port


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
        lambda: advertise.update_service_file(settings, services),
        lambda: (services / "microdcs-edge.service").write_text("old"),
    ):
        act()
        reported.append((await only(examine_announcement(settings, services))).level)
    assert reported == [Level.WARNING, Level.WARNING, Level.OK, Level.WARNING]
