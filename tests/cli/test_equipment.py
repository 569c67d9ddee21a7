"""`edge equipment` shows the reported equipment of all gateways and pings equipment directly."""

import asyncio
import getpass
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from edge.access.instances import process_token
from edge.config import MqttSettings
from edge.links.mqtt import open_session
from edge.model.equipment_health import EquipmentHealth, EquipmentReport
from edge.sfc.signal import Phase
from edge.store import equipment_memory, instance_leases
from edge.store.client import Store
from edge.store.equipment_memory import SafingCommand
from tests.cli.calling import Edge, Offline

TOKEN = process_token()
AT = 1_700_000_000_000
WRENCH = EquipmentHealth(
    name="wrench",
    kind="mqtt",
    connected=True,
    last_seen=AT - 1000,
    outstanding=2,
    answered=7,
    failed=1,
    last_error="the spindle\x1b[31m is jammed",
)


@pytest.fixture
async def reported(store: Store) -> None:
    """The word of a gateway that is at work."""
    report = EquipmentReport(at=AT, equipment=(WRENCH, EquipmentHealth(name="eye", kind="vision")))
    await instance_leases.register(store, ("station-1",), "edge")
    await instance_leases.acquire(store, "edge", TOKEN)
    await store.commit(equipment_memory.save_report(store.keys, "edge", report))


async def test_missing_equipment_reports_are_reported(edge: Edge) -> None:
    assert (await edge("equipment", "list")).output == "no gateway has reported equipment yet\n"
    assert json.loads((await edge("equipment", "list", "--json")).output) == []


@pytest.mark.usefixtures("reported")
async def test_equipment_is_listed_for_people_and_programs(edge: Edge) -> None:
    header, wrench, eye = (await edge("equipment", "list")).output.splitlines()
    assert header.split()[:4] == ["name", "kind", "gateway", "connected"]
    assert wrench.split()[:4] == ["wrench", "mqtt", "edge", "yes"]
    assert "the spindle [31m is jammed" in wrench
    assert "unknown" in eye
    first, second = json.loads((await edge("equipment", "list", "--json")).output)
    assert (first["name"], first["connected"], first["outstanding"]) == ("wrench", True, 2)
    assert (first["at"], first["last_seen"]) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:19.000Z")
    assert (second["connected"], second["last_error"]) == (None, "")


@pytest.mark.usefixtures("reported")
async def test_one_equipment_is_shown_completely(edge: Edge) -> None:
    shown = (await edge("equipment", "show", "wrench")).output
    assert "connected      yes" in shown
    assert "open commands  2 without an answer" in shown
    assert "7 commands, 1 of them failed" in shown
    (data,) = json.loads((await edge("equipment", "show", "wrench", "--json")).output)
    assert (data["gateway"], data["gateway_at_work"]) == ("edge", True)
    unknown = await edge("equipment", "show", "wretch")
    assert unknown.exit_code == 1
    assert "no gateway has reported equipment 'wretch'" in unknown.stderr
    assert "Did you mean 'wrench'? List the equipment: edge equipment list" in unknown.stderr


@pytest.mark.usefixtures("reported")
async def test_the_report_of_a_stopped_gateway_is_not_current(edge: Edge, store: Store) -> None:
    await instance_leases.release(store, "edge", TOKEN)
    assert "gateway away" in (await edge("equipment", "list")).output
    assert "edge, not running" in (await edge("equipment", "show", "wrench")).output


async def test_ping_reports_whether_equipment_answers(
    edge: Edge, settings_file: Path, mqtt: MqttSettings, unique: str
) -> None:
    with settings_file.open("a") as file:
        file.write(f'[mqtt]\nurl = "{mqtt.url}"\n')
        for name, url in (("wrench", mqtt.url), ("camera", "mqtt://127.0.0.1:1")):
            file.write(f'[southbound.{name}]\ntype_ids = ["{name}"]\ntopic_prefix = "{unique}"\nurl = "{url}"\n')
    async with open_session(mqtt, unique) as session:
        await session.publish(f"{unique}/wrench/presence", b"online", retain=True)
        there = await edge("equipment", "ping", "wrench")
        assert there.exit_code == 0, there.output
        assert "online at" in there.output
        began = time.perf_counter()
        both = await edge("equipment", "ping", "--json")
        lasted = time.perf_counter() - began
    assert both.exit_code == 1
    wrench, camera = json.loads(both.output)
    assert (wrench["name"], wrench["answers"], camera["answers"]) == ("wrench", True, False)
    assert 0 < wrench["response_seconds"] <= lasted
    assert camera["response_seconds"] is None
    unknown = await edge("equipment", "ping", "wretch")
    assert unknown.exit_code == 2
    assert "the settings have no [southbound.wretch]. Did you mean 'wrench'?" in unknown.stderr


@asynccontextmanager
async def busy_controller() -> AsyncIterator[int]:
    """Serve a controller with one client already: MID 0001 is declined with error 96 (Open Protocol, MID 0004)."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"00260004001         000196\0")
        await reader.read(100)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(("connected", "status"), [(True, 0), (False, 1)])
async def test_ping_of_a_controller_with_one_client_names_the_gateway(
    edge: Edge, store: Store, settings_file: Path, *, connected: bool, status: int
) -> None:
    health = EquipmentHealth(name="op", kind="openprotocol", connected=connected)
    await instance_leases.register(store, ("station-1",), "edge")
    await instance_leases.acquire(store, "edge", TOKEN)
    await store.commit(equipment_memory.save_report(store.keys, "edge", EquipmentReport(at=AT, equipment=(health,))))
    async with busy_controller() as port:
        with settings_file.open("a") as settings:
            settings.write(
                f'\n[southbound.op]\nkind = "openprotocol"\ntype_ids = ["op.v1"]\nurl = "tcp://127.0.0.1:{port}"\n'
            )
        result = await edge("equipment", "ping", "op")
    assert result.exit_code == status
    assert ("works: gateway edge is its client, and it takes no second one" in result.output) == connected
    assert "another client is connected already" in result.output


async def test_open_stop_is_released_in_the_name_of_the_user(edge: Edge, settings_file: Path, store: Store) -> None:
    with settings_file.open("a") as file:
        file.write('[southbound.wrench]\ntype_ids = ["tighten.v1"]\ntopic_prefix = "p"\n')
    open_stop = SafingCommand(
        phase=Phase.STOP,
        command_id="J1/R/tighten/1",
        type_id="tighten.v1",
        scope="station-1",
        job_id="J1",
        correlation_id="c",
        action="tighten",
        attempt=1,
        since=0,
    )
    await store.commit(equipment_memory.save_safing(store.keys, open_stop))
    released = await edge("equipment", "release", "wrench", "--reason", "air cut off")
    assert (released.exit_code, released.output) == (0, "released: stop of J1/R/tighten/1, job J1\n")
    (safing_command,) = await equipment_memory.load_all_safing(store)
    assert (safing_command.released_by, safing_command.release_reason) == (getpass.getuser(), "air cut off")
    again = await edge("equipment", "release", "wrench", "--reason", "air cut off", "--json")
    assert again.exit_code == 1
    assert (await edge("equipment", "release", "wretch", "--reason", "x")).exit_code == 2


def test_name_of_a_release_is_checked_before_the_store_is_opened(offline: Offline) -> None:
    result = offline("equipment", "release", "wrench", "--reason", "safe")
    assert (result.exit_code, "no [southbound.wrench]" in result.output) == (2, True)
