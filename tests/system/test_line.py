"""The page two-machines-and-a-witness works as written: a running job survives the machine of the primary."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from edge.config import MqttSettings
from edge.foundation.errors import Unavailable
from tests.app.running import WRENCH_TYPES
from tests.integration.plant import PUSHING, SCOPE, Plant, opened_plant, order
from tests.system.conftest import PREFIX, ROOT, SUITE
from tests.system.line import ASK_SENTINEL, STEPS, STORE, Line, copy_secrets, until
from tests.system.machine import Machine, Place, Switch

pytestmark = [pytest.mark.system, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

FOLDER = ROOT / "build" / "system" / SUITE
EQUIPMENT = f"""\
[northbound]
topic_prefix = "{PREFIX}"
[southbound.wrench]
type_ids = {json.dumps(WRENCH_TYPES)}
topic_prefix = "{PREFIX}"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def line(archive: Path, repository: Path) -> AsyncIterator[Line]:
    """Three machines, on which nothing of the page is done."""
    async with Switch() as switch:
        machines = []
        for number, name in enumerate(("gateway-1", "gateway-2", "witness")):
            place = Place(switch, number, name)
            machine = Machine.unpack(archive, FOLDER / name / "root", repository, place)
            machines.append(machine)
            (machine.root / "etc/apt/sources.list.d/microdcs-edge.sources").write_text(
                f"Types: deb\nURIs: file:///shared\nSuites: {SUITE}\nComponents: main\n"
                "Signed-By: /shared/microdcs-edge.asc\n"
            )
        try:
            await asyncio.gather(*(item.boot() for item in machines))
            only_ours = "-o Dir::Etc::sourcelist=sources.list.d/microdcs-edge.sources -o Dir::Etc::sourceparts=-"
            for element in machines[:2]:
                await element.run(f"apt-get update {only_ours} -o APT::Get::List-Cleanup=0")
            yield Line(machines)
        finally:
            for one in machines:
                await one.cut_power()
                one.remove()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plant(line: Line) -> AsyncIterator[Plant]:
    """MES and equipment at the broker of the line."""
    secrets = line.machines[2].root / "etc/line"
    password = (secrets / "mes.password").read_text().strip()
    url = f"mqtts://{line.machines[2].address}:8883"
    settings = MqttSettings(url=url, ca_file=str(secrets / "ca.pem"), username="mes", password=password)
    async with opened_plant(settings, PREFIX) as plant:
        yield plant


async def ready(machine: Machine) -> bool:
    _, status = await machine.call("systemctl show -P StatusText microdcs-edge")
    return bool(re.match(r"\d+ jobs? at work", status))


async def knows_all(machine: Machine) -> bool:
    """Return whether the sentinel of a machine knows the two others."""
    return "OK 3 usable" in (await machine.call(f"{ASK_SENTINEL} ckquorum line"))[1]


async def connected(plant: Plant) -> bool:
    """Return whether MES and equipment are connected to the broker."""
    return plant.connected


async def start_job(plant: Plant, job_order_id: str) -> None:
    """Start a job whose first command the wrench does not answer yet."""
    await until(partial(connected, plant), "the plant is connected")
    plant.wrench.released.clear()
    known = len(plant.wrench.commands)

    async def configured() -> bool:
        try:
            await plant.configure(PUSHING)
            await plant.mes.call(SCOPE, "StoreAndStart", order(job_order_id))
        except Unavailable:
            return False
        return True

    await until(configured, "the job is stored")

    async def commanded() -> bool:
        return len(plant.wrench.commands) > known

    await until(commanded, "the wrench has a command")


async def finish_job(plant: Plant, job_order_id: str) -> float:
    """Answer the command at the wrench; return the seconds until the MES has the result."""
    await until(partial(connected, plant), "the plant is connected")

    async def released() -> bool:
        try:
            await plant.wrench.release()
        except Unavailable:  # a connection of before a power cut
            return False
        return True

    await until(released, "the wrench has answered")

    async def ended() -> bool:
        return plant.heard.stands(f"result/{job_order_id}") == "Ended"

    return await until(ended, f"{job_order_id} has ended")


async def test_commands_of_the_page_set_up_a_line(line: Line) -> None:
    for name, where in STEPS:
        for machine in line.at(where):
            if name == "Check the store":
                await until(partial(knows_all, machine), f"the sentinel at {machine.address} knows all")
            if name == "Check":
                await until(partial(ready, machine), f"the gateway at {machine.address} is ready")
            printed = await _run(machine, line.commands(f"{name}: {where}", machine))
            print(f"--- {name}: {machine.address}\n{printed}")  # noqa: T201 - shown when a test fails
            if name == "Check the store":
                assert "OK 3 usable Sentinels" in printed
            if name == "Certificates and passwords":
                copy_secrets(line)
            if name == "Gateway":
                await machine.run(f"cat > /etc/microdcs-edge/conf.d/60-equipment.toml <<'END'\n{EQUIPMENT}END")
                await machine.run("chgrp microdcs-edge /etc/microdcs-edge/conf.d/60-equipment.toml")
                await machine.run("systemctl restart microdcs-edge")
    assert await line.roles() == ["master", "slave"]


async def _run(machine: Machine, commands: str) -> str:
    """Run the commands of a step; `edge doctor` ends with status 1 when it warns."""
    status, printed = await machine.call(commands.replace("edge doctor", "edge doctor || [ $? = 1 ]"))
    log = (await machine.call("journalctl --unit microdcs-edge --output cat --lines 20"))[1] if status else ""
    assert status == 0, f"{printed}\n{log}"
    return printed


async def test_store_and_sentinels_take_neither_strangers_nor_clear_text(line: Line) -> None:
    for port in (6379, 26379):
        cli = f"{STORE}-cli -h {line.machines[0].address} -p {port}"
        assert "NOAUTH" in (await line.machines[0].call(f"{cli} --tls --cacert /etc/line/ca.pem ping"))[1]
        assert "PONG" not in (await line.machines[0].call(f"timeout 5 {cli} ping"))[1]


async def test_job_continues_when_the_machine_of_the_primary_is_lost(line: Line, plant: Plant) -> None:
    await start_job(plant, "J-LOST")
    lost = await line.primary()
    await lost.cut_power()
    took = await finish_job(plant, "J-LOST")
    print(f"the job ended {took:.1f} s after the loss of the machine")  # noqa: T201 - shown when a test fails
    # The failover itself, the start of the inside, and the take-over of the work of the lost gateway.
    assert took < 30
    assert {action: len(ids) for action, ids in plant.wrench.ids().items()} == {"position": 1, "tighten": 1}


async def test_lost_machine_returns_as_a_replica(line: Line, plant: Plant) -> None:
    (lost,) = [machine for machine in line.machines[:2] if machine is not await line.primary()]
    await lost.boot()

    async def joined() -> bool:
        return sorted(await line.roles()) == ["master", "slave"] and await ready(lost)

    await until(joined, "the machine has joined")
    await start_job(plant, "J-BACK")
    await finish_job(plant, "J-BACK")


async def test_job_continues_over_a_switch_over(line: Line, plant: Plant) -> None:
    before = await line.primary()
    await start_job(plant, "J-SWITCH")

    async def well() -> bool:
        return (await before.call("edge store status"))[0] == 0

    await until(well, "nothing needs attention")
    await before.run("edge store switch-over")
    assert await line.primary() is not before
    await finish_job(plant, "J-SWITCH")


async def test_work_waits_while_the_witness_is_away(line: Line, plant: Plant) -> None:
    await start_job(plant, "J-WITNESS")
    await line.machines[2].cut_power()
    for machine in line.machines[:2]:
        assert "J-WITNESS" in await machine.run("edge jobs list")
    await line.machines[2].boot()
    await finish_job(plant, "J-WITNESS")


async def test_line_continues_after_a_power_cut_of_all_machines(line: Line, plant: Plant) -> None:
    await start_job(plant, "J-DARK")
    await asyncio.sleep(1.5)  # what is younger than a second may be lost: appendfsync everysec
    for dark in line.machines:
        await dark.cut_power()
    await asyncio.gather(*(machine.boot() for machine in line.machines))
    await finish_job(plant, "J-DARK")


async def test_stores_with_zeros_at_their_ends_start_again_by_themselves(line: Line, plant: Plant) -> None:
    """A power cut of all machines left zeros at the ends of both files, and the line stood until a person came."""
    await start_job(plant, "J-ZEROS")
    await asyncio.sleep(1.5)  # as above
    for dark in line.machines:
        await dark.cut_power()
    for machine in line.machines[:2]:
        files = (machine.root / f"var/lib/{STORE}/line/appendonlydir").glob("*.incr.aof")
        with max(files, key=lambda file: file.stat().st_mtime_ns).open("ab") as file:
            file.write(bytes(512))
    await asyncio.gather(*(machine.boot() for machine in line.machines))
    await finish_job(plant, "J-ZEROS")
    for machine in line.machines[:2]:
        assert "512 bytes cut off" in await machine.run(f"journalctl --unit {STORE}-server@line --boot --no-pager")
        assert "store repaired" in await machine.run("edge doctor || true")
        # The gateway may not read the files of the store, and reads the report.
        name = (await machine.run("hostname")).strip()
        shown = f"edge alarms list --json | grep 'gateway.store_repaired.*{name}'"
        await machine.run(f'timeout 60 sh -c "until {shown}; do sleep 0.5; done"')
        await machine.run("rm /var/lib/microdcs-edge-line/*.json")


async def test_data_node_without_the_list_of_its_files_does_not_start_empty(line: Line) -> None:
    """An empty primary that is back before Sentinel has noticed empties its replicas."""
    (replica,) = [machine for machine in line.machines[:2] if machine is not await line.primary()]
    manifest, unit = f"/var/lib/{STORE}/line/appendonlydir/appendonly.aof.manifest", f"{STORE}-server@line"
    await replica.run(f"systemctl stop {unit} && mv {manifest} /opt/manifest")
    await replica.run(f"! systemctl start {unit} && systemctl stop {unit}")
    assert "has no manifest" in await replica.run(f"journalctl --unit {unit} --boot --no-pager")
    await replica.run(f"mv /opt/manifest {manifest} && systemctl reset-failed {unit} && systemctl start {unit}")

    async def joined() -> bool:
        return sorted(await line.roles()) == ["master", "slave"]

    await until(joined, "the replica has joined")
