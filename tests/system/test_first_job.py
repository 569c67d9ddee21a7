"""The page *From apt install to the first job* works as written, in fewer than ten steps."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256

from tests.opcua_client import patient_client
from tests.system.machine import Machine
from tests.uaserver.clients import Application, make_application

pytestmark = [pytest.mark.system, pytest.mark.timeout(420)]
in_session = pytest.mark.asyncio(loop_scope="session")
"""The loop of the machine."""

PAGE = (Path(__file__).parents[2] / "docs/how-to/first-job.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^## (\d+)\. (.*)$", PAGE, re.MULTILINE)
LISTS = ("JobOrderControl/JobOrderList", "JobOrderResults/JobOrderResponseList")


def commands(step: int) -> str:
    """Return the commands of a step, as they stand on the page."""
    text = PAGE.split(f"\n## {step}. ")[1].split("\n## ")[0]
    return "set -e\ncd /root\n" + "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))


async def run(machine: Machine, step: int) -> str:
    """Run the commands of a step; `edge doctor` ends with status 1, as no application is trusted yet."""
    status, output = await machine.call(commands(step))
    assert status in ({0, 1} if "edge doctor" in commands(step) else {0}), output
    return output


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    return make_application(tmp_path_factory.mktemp("client"))


@asynccontextmanager
async def anonymous(machine: Machine, application: Application) -> AsyncIterator[Client]:
    client = patient_client(f"opc.tcp://{machine.address}:4840")
    client.application_uri = application.uri
    server = (machine.root / "var/lib/microdcs-edge/pki/own.der").read_bytes()
    files = application.directory / "own.der", application.directory / "own.pem"
    await client.set_security(
        SecurityPolicyBasic256Sha256, *files, server_certificate=server, mode=ua.MessageSecurityMode.SignAndEncrypt
    )
    async with client:
        yield client


def test_page_has_fewer_than_ten_steps() -> None:
    assert [int(number) for number, _ in STEPS] == list(range(1, len(STEPS) + 1))
    assert len(STEPS) < 10


@in_session
async def test_commands_of_the_page_lead_to_a_job(machine: Machine) -> None:
    # The repository is where the page expects it, and the broker as Debian installs it.
    ours = "/etc/apt/sources.list.d/microdcs-edge.sources /etc/mosquitto/conf.d/plant.conf"
    await machine.run(f"mkdir -p /media/usb && ln -s /shared /media/usb/repo && rm {ours}")
    outputs = {step: await run(machine, step) for step in range(1, 8)}
    assert "written: /etc/microdcs-edge/conf.d/50-site.toml" in outputs[2]
    assert "wrench" in outputs[4]
    assert '"ReturnStatus":1' in outputs[7].replace(" ", "")
    for job in ("BOLT-1", "BOLT-2"):
        shown = json.loads(await machine.run(f"edge jobs show {job} --json"))
        assert "Ended" in json.dumps(shown)


@in_session
async def test_opcua_client_sees_the_job_once_it_is_trusted(machine: Machine, application: Application) -> None:
    with pytest.raises((ConnectionError, ua.UaError, TimeoutError)):
        async with anonymous(machine, application):
            pass
    await run(machine, 8)
    (rejected,) = json.loads(await machine.run("edge opcua list --json"))["rejected"]
    await machine.run(f"edge opcua trust {rejected['thumbprint'][:6]}")
    async with anonymous(machine, application) as client:
        await client.load_data_type_definitions()
        node = client.nodes.objects
        for name in ("Machines", "station-1", "MachineryBuildingBlocks", "JobManagement"):
            node = await child(node, name)
        for path in LISTS:
            found = node
            for name in path.split("/"):
                found = await child(found, name)
            text = str(await found.read_value())
            assert "BOLT-1" in text
            assert "BOLT-2" in text


MEMBERS = (
    "jobs list",
    "jobs show BOLT-1",
    "jobs why BOLT-1",
    "jobs watch BOLT-1",
    "jobs export /tmp/jobs.json",
    "station show",
    "equipment list",
    "refused",
    "dead-letters list",
    "alarms list",
    "tags list",
    "flows list",
    "check settings /etc/microdcs-edge/edge.toml",
    "opcua list",
    "record --help",
)
"""What a member of the group does without root."""


@in_session
async def test_member_of_the_group_needs_no_root(machine: Machine) -> None:
    await machine.run("useradd --groups microdcs-edge erik")
    for text in MEMBERS:
        status, printed = await machine.call(f"runuser --user erik -- edge {text}")
        assert (text, status) == (text, 0), printed
    _, examined = await machine.call("runuser --user erik -- edge doctor --json")
    failing = [finding for finding in json.loads(examined)["findings"] if finding["level"] == "failing"]
    assert failing == []
    _, denied = await machine.call("runuser --user erik -- edge opcua trust 3F86A0")
    assert "no certificate" in denied


@in_session
async def test_password_readable_by_root_only_does_not_stop_member_or_service(machine: Machine) -> None:
    settings = machine.root / "etc/microdcs-edge/conf.d/55-login.toml"
    await machine.run("echo sesame > /etc/microdcs-edge/passwords/mqtt && chmod 600 /etc/microdcs-edge/passwords/mqtt")
    for name in ("password_mqtt", "/etc/microdcs-edge/passwords/mqtt"):
        settings.write_text(f'[mqtt]\nusername = "edge"\npassword_file = "{name}"\n')
        await machine.run("edge check settings /etc/microdcs-edge/edge.toml && systemctl restart microdcs-edge")
        assert "BOLT-1" in await machine.run("runuser --user erik -- edge jobs list")
    await machine.run("mv /etc/microdcs-edge/passwords/mqtt /etc/microdcs-edge/broker.password")
    settings.write_text('[mqtt]\nusername = "edge"\npassword_file = "/etc/microdcs-edge/broker.password"\n')
    problem = "/etc/microdcs-edge/broker.password: microdcs-edge may not read it; move it to"
    status, checked = await machine.call("edge check settings /etc/microdcs-edge/edge.toml")
    assert (status, problem in checked) == (2, True), checked
    assert problem in (await machine.call("edge doctor"))[1]
    settings.unlink()
    await machine.run("systemctl restart microdcs-edge")


@in_session
async def test_unprivileged_user_runs_demo_and_simulation_from_the_package(machine: Machine) -> None:
    await machine.run("useradd --create-home anna")
    demo = await machine.run("runuser --user anna -- sh -c 'cd && edge demo'")
    assert "DEMO OK" in demo
    assert (machine.root / "home/anna/edge-demo.svg").read_text().startswith("<svg")
    recipe = "/usr/lib/microdcs-edge/edge/features/simulator/recipes/rear-axle.json"
    simulated = await machine.run(f"runuser --user anna -- edge simulate {recipe} --live --speed 100")
    assert "start tighten #1" in simulated
    assert "waits for an event com.example.station.qa_result.v1" in simulated


@in_session
async def test_settings_unreadable_by_the_service_are_reported_to_root(machine: Machine) -> None:
    (machine.root / "etc/microdcs-edge/conf.d/60-private.toml").write_text('[gateway]\nname = "edge"\n')
    await machine.run("chmod 600 /etc/microdcs-edge/conf.d/60-private.toml")
    denied = "/etc/microdcs-edge/conf.d/60-private.toml: microdcs-edge may not read it"
    status, checked = await machine.call("edge check settings /etc/microdcs-edge/edge.toml")
    assert (status, denied in checked) == (2, True), checked
    _, examined = await machine.call("edge doctor")
    assert denied in examined
    status, _ = await machine.call("systemctl restart microdcs-edge")
    assert status != 0
    remedy = checked.partition("permit it: ")[2].splitlines()[0]
    assert "no problems" in await machine.run(f"{remedy} && edge check settings /etc/microdcs-edge/edge.toml")
    await machine.run("systemctl restart microdcs-edge")


async def child(node: object, name: str) -> object:
    """Return the child of this browse name, in whichever namespace."""
    for value in await node.get_children():  # type: ignore[attr-defined]
        if (await value.read_browse_name()).Name == name:
            return value
    raise AssertionError(f"there is no {name}")
