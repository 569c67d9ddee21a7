"""Life cycle of a gateway from `apt install` to `apt purge`; each test continues the previous one."""

import asyncio
import json
import platform
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from asyncua import ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256

from edge.foundation.errors import Unavailable
from edge.model.isa95 import JobOrder, WorkMaster
from edge.uaserver.encoding import extension_object
from tests.app.running import CAMERA_TYPES, WRENCH_TYPES
from tests.integration.plant import PUSHING, SCOPE, Plant, order
from tests.opcua_client import patient_client
from tests.passwords import PASSWORD
from tests.system.conftest import PREFIX
from tests.system.machine import Machine
from tests.uaserver.clients import Application, make_application
from tests.uaserver.running import UA, Space

pytestmark = [pytest.mark.system, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(360)]

UNIT = "microdcs-edge"
LINE = f"""\
[northbound]
topic_prefix = "{PREFIX}"
[southbound.wrench]
type_ids = {json.dumps(WRENCH_TYPES)}
topic_prefix = "{PREFIX}"
[southbound.camera]
type_ids = {json.dumps(CAMERA_TYPES)}
topic_prefix = "{PREFIX}"
"""
# The launcher, with a way to hang: a handler of a signal runs in the event loop's thread.
HANGING = """\
import signal, sys, time
sys.path.insert(0, "/usr/lib/microdcs-edge")
signal.signal(signal.SIGUSR1, lambda *_: time.sleep(3600))
from edge.cli import main
main()
"""
WATCHED = """\
[Service]
ExecStart=
ExecStart=/usr/bin/python3 -I /opt/hanging.py run
WatchdogSec=3
RestartSec=500ms
"""

# A certificate that ended a moment after it began.
EXPIRED = """\
import sys, datetime, pathlib
sys.path.insert(0, "/usr/lib/microdcs-edge")
from edge.uaserver import certificates
pki, valid_for = pathlib.Path("/var/lib/microdcs-edge/pki"), datetime.timedelta(seconds=-1)
certificates.renew(pki, "urn:gateway:microdcs-edge:edge", ["gateway"], valid_for)
"""
STORE = "/var/lib/redis-microdcs"
SMALL_DISK = f"""\
systemctl stop {UNIT} redis-server@microdcs
cp -a {STORE} /opt/store
mount -t tmpfs -o size=4m tmpfs {STORE}
cp -a /opt/store/. {STORE}
systemctl start {UNIT}
"""
FULL_DISK = f"dd if=/dev/zero of={STORE}/fill bs=1k"
SQUATTER = f"""\
systemctl stop {UNIT}
systemd-run --quiet --unit=squatter python3 -m http.server 4840
until ss -Hltn sport = :4840 | grep -q .; do sleep 0.1; done
systemctl start {UNIT}
"""
TROUBLES = {
    "broker gone": (
        "systemctl stop mosquitto",
        "broker unavailable: ",
        "mqtt not connected",
        "systemctl start mosquitto",
    ),
    "store gone": (
        "systemctl stop redis-server@microdcs",
        "Redis does not answer",
        "store unavailable, retrying",
        "systemctl start redis-server@microdcs",
    ),
    "disk full": (SMALL_DISK + FULL_DISK, "Redis cannot write to its disk", "No space left", f"rm {STORE}/fill"),
    "certificate expired": (
        f"python3 /opt/expired.py; systemctl restart {UNIT}",
        "OPC UA certificate: it has expired",
        "OPC UA certificate needs renewal",
        f"edge opcua renew; systemctl restart {UNIT}",
    ),
    "port taken": (SQUATTER, "cannot listen on opc.tcp://", "cannot listen on opc.tcp://", "systemctl stop squatter"),
}
"""What does it -> what the status says, what the log says, and what mends it."""


async def until(condition: Callable[[], Awaitable[object]], deadline: float = 90.0) -> None:
    """Wait for a condition of the machine."""
    end = time.monotonic() + deadline
    while not await condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        await asyncio.sleep(0.1)


async def shown(machine: Machine, unit_property: str) -> str:
    return await machine.run(f"systemctl show {UNIT} --value --property {unit_property}")


async def process(machine: Machine) -> int:
    return int(await shown(machine, "MainPID"))


async def until_ready(machine: Machine, *, other_than: int = 0) -> None:
    async def ready() -> bool:
        return await shown(machine, "ActiveState") == "active" and await process(machine) not in {0, other_than}

    await until(ready)


async def until_connected(plant: Plant) -> None:
    async def connected() -> bool:
        return plant.connected

    await until(connected)


async def configure(plant: Plant) -> None:
    """Store the Work Master with the recipe, once the MES has reached the station."""

    async def configured() -> bool:
        try:
            await plant.configure(PUSHING)
        except Unavailable:
            return False
        return True

    await until(configured)


async def start_job(plant: Plant, job_order_id: str) -> None:
    """Start a job whose first command the wrench does not answer yet."""
    await until_connected(plant)
    plant.wrench.released.clear()
    known = len(plant.wrench.commands)
    await configure(plant)
    await plant.mes.call(SCOPE, "StoreAndStart", order(job_order_id))

    async def commanded() -> bool:
        return len(plant.wrench.commands) > known

    await until(commanded)


async def finish_job(plant: Plant, job_order_id: str) -> None:
    await until_connected(plant)
    await plant.wrench.release()

    async def ended() -> bool:
        return plant.heard.stands(f"result/{job_order_id}") == "Ended"

    await until(ended)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    return make_application(tmp_path_factory.mktemp("client"))


@asynccontextmanager
async def client_of(machine: Machine, application: Application) -> AsyncIterator[Space]:
    """An OPC UA client outside, whose engineer knows the machine's certificate."""
    client = patient_client(f"opc.tcp://{machine.address}:4840")
    client.application_uri = application.uri
    server = (machine.root / "var/lib/microdcs-edge/pki/own.der").read_bytes()
    files = application.directory / "own.der", application.directory / "own.pem"
    await client.set_security(
        SecurityPolicyBasic256Sha256, *files, server_certificate=server, mode=ua.MessageSecurityMode.SignAndEncrypt
    )
    client.set_user("erika")
    client.set_password(PASSWORD)
    async with client:
        await client.load_data_type_definitions()
        # Its own namespaces bear the name of the computer.
        ours = [uri.replace("urn:gateway:", f"urn:{platform.node()}:") for uri in await client.get_namespace_array()]
        yield Space(client, ours)


async def test_apt_installs_from_a_signed_repository_and_starts_no_unit(
    machine: Machine, versions: tuple[str, str]
) -> None:
    only_ours = "-o Dir::Etc::sourcelist=sources.list.d/microdcs-edge.sources -o Dir::Etc::sourceparts=-"
    await machine.run(f"apt-get update {only_ours} -o APT::Get::List-Cleanup=0")
    printed = await machine.run(f"apt-get install --yes microdcs-edge={versions[0]}")
    assert "not starting it" in printed
    _, enabled = await machine.call(f"systemctl is-enabled {UNIT}")
    assert enabled == "disabled"
    assert await process(machine) == 0
    _, store = await machine.call("systemctl is-active redis-server@microdcs")
    assert store == "inactive"
    # Debian's own instance would run for nothing.
    assert await machine.run("systemctl list-units --all --plain --no-legend 'redis*'") == ""
    assert await machine.run("command -v redis-check-rdb mosquitto")


async def test_systemd_unit_is_valid_and_its_sandbox_is_tight(machine: Machine) -> None:
    assert UNIT not in await machine.run(f"systemd-analyze --man=no verify {UNIT}.service 2>&1 || true")
    printed = await machine.run(f"systemd-analyze security --no-pager {UNIT} | tail -1")
    exposure = re.search(r": (\d\.\d) ", printed)
    assert exposure
    assert float(exposure[1]) <= 1.5


async def test_package_has_manual_pages_sbom_and_compiled_modules(machine: Machine) -> None:
    for page in ("man1/edge.1", "man5/edge.toml.5", "man8/microdcs-edge.8"):
        assert (machine.root / f"usr/share/man/{page}.gz").exists()
    parts = json.loads(await machine.run("zcat /usr/share/doc/microdcs-edge/sbom.cdx.json.gz"))
    lock = await machine.run("zcat /usr/share/doc/microdcs-edge/runtime.lock.gz")
    locked = set(re.findall(r"^([\w.-]+==[\w.]+)", lock, re.MULTILINE))
    assert {f"{component['name']}=={component['version']}" for component in parts["components"]} == locked
    assert {p.suffix for p in machine.root.glob("usr/lib/microdcs-edge/edge/__pycache__/*")} == {".pyc"}


async def test_invalid_settings_end_the_unit_with_every_problem_reported(machine: Machine) -> None:
    faulty = machine.root / "etc/microdcs-edge/conf.d/00-faulty.toml"
    faulty.write_text('[gateway]\nscopes = []\n[mqtt]\nurl = "http://broker"\n')
    status, _ = await machine.call(f"systemctl start {UNIT}")
    assert status != 0
    printed = (await machine.call(f"systemctl status --full --no-pager {UNIT}"))[1]
    assert "gateway.scopes" in printed
    assert "mqtt.url" in printed
    assert "gateway.scopes" in await shown(machine, "StatusText")
    assert await shown(machine, "NRestarts") == "0"
    assert await shown(machine, "ExecMainStatus") == "2"
    faulty.unlink()


async def test_enabled_unit_is_ready_once_the_gateway_serves(machine: Machine) -> None:
    (machine.root / "etc/microdcs-edge/conf.d/10-line.toml").write_text(LINE)
    await machine.run(f"systemctl enable --now {UNIT}")
    assert "OPC UA opc.tcp://" in await shown(machine, "StatusText")
    await machine.run(f"bash -c '</dev/tcp/{machine.address}/4840'")
    printed = await machine.run("redis-cli -s /run/redis-microdcs/redis.sock ping")
    assert printed == "PONG"
    assert "NOPERM" in await machine.run("redis-cli -s /run/redis-microdcs/redis.sock flushall")


async def test_remote_opc_ua_client_runs_a_job(machine: Machine, plant: Plant, application: Application) -> None:
    (machine.root / "opt/client.der").write_bytes(application.certificate)
    assert machine.address in await machine.run("edge opcua trust /opt/client.der && edge opcua list")
    await machine.run(f"echo {PASSWORD} | edge opcua password erika --role engineer --password-stdin")
    await configure(plant)
    await plant.wrench.release()
    async with client_of(machine, application) as space:
        owner = await (await space.member("JobOrderControl", "JobOrderList")).get_parent()
        method = await owner.get_child([space.name("StoreAndStart", UA + "ISA95-JOBCONTROL_V2/")])
        job_order = JobOrder(job_order_id="J-OPC", work_master_id=(WorkMaster(id="WM-1"),))
        assert (
            await owner.call_method(
                method.nodeid,
                ua.Variant(extension_object(job_order), ua.VariantType.ExtensionObject),
                ua.Variant([], ua.VariantType.LocalizedText, is_array=True),
            )
            == 1
        )

        async def ended() -> bool:
            responses = await (await space.response_list()).read_value()
            return [response.JobState[0].StateText.Text for response in responses or ()] == ["Ended"]

        await until(ended)


async def test_unit_status_reports_jobs_and_health(machine: Machine, plant: Plant) -> None:
    await start_job(plant, "J-STATUS")

    async def reported() -> bool:
        return (await shown(machine, "StatusText")).startswith("1 job at work; store ")

    await until(reported)
    await finish_job(plant, "J-STATUS")
    log = await machine.run("journalctl --identifier microdcs-edge --output cat")
    assert "ready" in log
    # Its sandbox lets it ask the kernel.
    assert "cannot be told whether the clock" not in log


async def test_unreadable_settings_advise_to_use_root(machine: Machine) -> None:
    status, printed = await machine.call("setpriv --reuid=65534 --regid=65534 --clear-groups edge jobs list")
    assert status == 2
    assert "sudo" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_fault_is_reported_by_status_doctor_and_log_until_corrected(machine: Machine, trouble: str) -> None:
    cause, in_status, in_log, remedy = TROUBLES[trouble]
    (machine.root / "opt/expired.py").write_text(EXPIRED)
    since = await machine.run("date +%s")
    await machine.call(cause)

    async def reported() -> bool:
        return in_status in await shown(machine, "StatusText")

    async def well() -> bool:
        return bool(re.match(r"\d+ jobs? at work", await shown(machine, "StatusText")))

    await until(reported)
    _, found = await machine.call("edge doctor")
    assert re.search("^failing ", found, re.MULTILINE), found
    assert in_log in await machine.run(f"journalctl --unit {UNIT} --since @{since} --output cat")
    await machine.run(remedy)
    await until(well)
    if trouble == "disk full":
        await machine.run(f"systemctl stop {UNIT} redis-server@microdcs && umount {STORE} && systemctl start {UNIT}")


async def test_killed_gateway_is_restarted(machine: Machine) -> None:
    before = await process(machine)
    await machine.run(f"kill -KILL {before}")
    await until_ready(machine, other_than=before)


@pytest.mark.parametrize("how", ["STOP", "USR1"], ids=["stopped by a signal", "its event loop hangs"])
async def test_hanging_gateway_is_restarted_by_the_watchdog(machine: Machine, how: str) -> None:
    (machine.root / "opt/hanging.py").write_text(HANGING)
    await machine.run(f"mkdir -p /run/systemd/system/{UNIT}.service.d")
    await machine.run(f"cat > /run/systemd/system/{UNIT}.service.d/watched.conf <<'.'\n{WATCHED}.\n")
    await machine.run(f"systemctl daemon-reload && systemctl restart {UNIT}")
    before = await process(machine)
    await machine.run(f"kill -{how} {before}")
    await until_ready(machine, other_than=before)
    assert await machine.run(f"journalctl --unit {UNIT} --grep 'Watchdog timeout' --lines 1 --quiet")
    await machine.run(f"rm /run/systemd/system/{UNIT}.service.d/watched.conf && systemctl daemon-reload")
    await machine.run(f"systemctl restart {UNIT}")


async def test_power_cut_during_a_job_only_delays_the_job(machine: Machine, plant: Plant) -> None:
    await start_job(plant, "J-POWER")
    await asyncio.sleep(1.5)  # what is younger than a second may be lost: appendfsync everysec
    await machine.cut_power()
    await machine.boot()
    await until_ready(machine)
    await finish_job(plant, "J-POWER")
    assert {action: len(ids) for action, ids in plant.wrench.ids().items()}


async def test_upgrade_keeps_the_running_job_and_edited_files(
    machine: Machine, plant: Plant, versions: tuple[str, str]
) -> None:
    await start_job(plant, "J-UPGRADE")
    with (machine.root / "etc/microdcs-edge/edge.toml").open("a") as file:
        file.write("# ours\n")
    before = await process(machine)
    await machine.run(f"apt-get install --yes microdcs-edge={versions[1]}")
    await until_ready(machine, other_than=before)
    assert (machine.root / "etc/microdcs-edge/edge.toml").read_text().endswith("# ours\n")
    assert await machine.run(f"systemctl is-enabled {UNIT}") == "enabled"
    assert versions[1].split("+")[0] in await machine.run("edge --version")
    await finish_job(plant, "J-UPGRADE")


async def test_downgrade_prints_a_warning_and_starts_the_gateway(machine: Machine, versions: tuple[str, str]) -> None:
    printed = await machine.run(f"apt-get install --yes --allow-downgrades microdcs-edge={versions[0]}")
    assert f"older than the installed {versions[1]}" in printed
    await until_ready(machine)


@pytest.mark.parametrize("options", [("--volatile=overlay",), ("--read-only", "--tmpfs=/var:mode=755")], ids=" ".join)
async def test_gateway_runs_on_a_volatile_root_file_system(
    machine: Machine, plant: Plant, options: tuple[str, ...]
) -> None:
    await machine.power_off()
    await machine.boot(*options)
    await until_ready(machine)
    await start_job(plant, "J-READ-ONLY")
    await finish_job(plant, "J-READ-ONLY")


async def test_removal_stops_the_gateway_and_purge_removes_all_files(machine: Machine) -> None:
    await machine.power_off()
    await machine.boot()
    await until_ready(machine)
    before = await process(machine)
    removed = await machine.run("apt-get remove --yes microdcs-edge")
    assert "Failed" not in removed
    stores = "redis-server@microdcs valkey-server@microdcs"
    assert set((await machine.call(f"systemctl is-active {stores}"))[1].splitlines()) == {"inactive"}
    status, _ = await machine.call(f"kill -0 {before}")
    assert status != 0
    assert (machine.root / "etc/microdcs-edge/edge.toml").exists()
    await machine.run("apt-get purge --yes microdcs-edge")
    left = await machine.run("find /etc /opt /usr /var -name '*microdcs*' -not -path '*/apt/*'")
    assert left.splitlines() == []
