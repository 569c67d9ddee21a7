"""A client from another vendor (node-opcua) uses every function over an encrypted channel, with a password."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from edge.model.isa95 import IdCall, JobOrder, JobOrderAndState, JobStatusEvent, LocalizedText, OrderCall, ReturnStatus
from edge.model.job_state import METHODS, RESPONSE_METHODS, JobState
from edge.uaserver.server import UaServer
from tests.passwords import PASSWORD
from tests.uaserver.clients import Application, make_application, make_settings, with_users
from tests.uaserver.running import MACHINES, Station, entry, response, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
WITHIN_S = 60
POLICIES = ("Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss")

CONTROL, RESULTS = "JobOrderControl", "JobOrderResults"


class OtherMake:
    """The process of the client: one request at a time, with the notifications received meanwhile."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._heard: list[dict[str, Any]] = []

    async def ask(self, what: str, **parameters: Any) -> Any:
        """Send a request to the process and return its answer."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([what, parameters]).encode() + b"\n")
        while "done" not in (line := await self._next()):
            self._heard.append(line)
        assert line["done"] == what, line
        assert "error" not in line, line
        return line["answer"]

    async def hear(self, kind: str) -> Any:
        """Wait for the next notification of a kind."""
        while True:
            for line in self._heard:
                if kind in line:
                    self._heard.remove(line)
                    return line
            self._heard.append(await self._next())

    async def _next(self) -> dict[str, Any]:
        assert self._process.stdout
        assert self._process.stderr
        async with asyncio.timeout(WITHIN_S):
            line = await self._process.stdout.readline()
            assert line, (await self._process.stderr.read()).decode()[-2000:]
            found: dict[str, Any] = json.loads(line)
            return found


def take_apart(directory: Path) -> None:
    """Write key and certificate to separate files, as node-opcua requires."""
    key, marker, certificate = (directory / "own.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    (directory / "key.pem").write_text(key)
    (directory / "certificate.pem").write_text(marker + certificate)


@contextlib.asynccontextmanager
async def other_make(endpoint: str, application: Application, **others: Any) -> AsyncIterator[OtherMake]:
    installed = ROOT / ".node" / "node_modules"
    assert installed.is_dir(), "run make setup: it installs node-opcua-client"
    options = {
        "endpoint": endpoint,
        "policy": POLICIES[0],
        "applicationUri": application.uri,
        "certificate": str(application.directory / "certificate.pem"),
        "key": str(application.directory / "key.pem"),
        "pki": str(application.directory / "node"),
        "user": "engineer",
        "password": PASSWORD,
        **others,
    }
    if not (application.directory / "certificate.pem").exists():
        take_apart(application.directory)
    process = await asyncio.create_subprocess_exec(
        "node",
        ROOT / "tests" / "uaserver" / "node" / "client.js",
        json.dumps(options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(installed)},
    )
    try:
        client = OtherMake(process)
        first = await client._next()  # noqa: SLF001 - the first line is not an answer to a request
        assert first == {"done": "connected"}, first
        yield client
        assert process.stdin
        process.stdin.close()
        async with asyncio.timeout(WITHIN_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture(scope="module")
def station() -> Station:
    return Station()


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    return make_application(tmp_path_factory.mktemp("other-make"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(
    tmp_path_factory: pytest.TempPathFactory, station: Station, application: Application
) -> AsyncIterator[UaServer]:
    settings = with_users(make_settings(tmp_path_factory.mktemp("seen")))
    application.trusted_by(settings)
    async with served(settings, MACHINES[:1], station) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other(seen: UaServer, application: Application) -> AsyncIterator[OtherMake]:
    async with other_make(seen.endpoint, application) as client:
        yield client


@pytest.mark.parametrize("policy", POLICIES[1:])
async def test_node_opcua_has_the_role_of_its_user_with_every_policy(
    other: OtherMake, station: Station, policy: str
) -> None:
    station.reset()
    observer = await other.ask("enter", policy=policy, user="observer")
    assert (await other.ask("read", at=observer, part=CONTROL, name="JobOrderList"))["status"] == "Good"
    answer = await other.ask("call", at=observer, part=CONTROL, name="Abort", id="job-1", comment=[])
    assert answer["status"] == "BadUserAccessDenied"
    assert station.calls == []


async def test_node_opcua_finds_all_members_by_browsing(other: OtherMake) -> None:
    assert set(await other.ask("browse", part=CONTROL)) >= {*METHODS, "JobOrderList", "WorkMaster"}
    assert set(await other.ask("browse", part=RESULTS)) >= {*RESPONSE_METHODS, "JobOrderResponseList"}


async def test_node_opcua_reads_job_orders_with_every_known_field(other: OtherMake, seen: UaServer) -> None:
    seen.show("station-1", entry("job-1"), None)
    read = await other.ask("read", part=CONTROL, name="JobOrderList")
    (shown,) = read["value"]
    assert shown["jobOrder"]["jobOrderID"] == "job-1"
    assert "rear-axle" in shown["jobOrder"]["workMasterID"][0].values()
    assert shown["state"][0]["stateText"]["text"] == "AllowedToStart"
    seen.hide("station-1", "job-1")


async def test_a_list_of_many_mebibytes_is_read_or_refused_as_too_large(other: OtherMake, seen: UaServer) -> None:
    names = [f"job-{number}" for number in range(17)]
    for name in names:
        text = LocalizedText(text="x" * 2**20)
        order = JobOrder(job_order_id=name, description=(text,))
        seen.show("station-1", JobOrderAndState(job_order=order, state=entry(name).state), None)
    with pytest.raises(AssertionError, match="BadResponseTooLarge"):
        await other.ask("read", part=CONTROL, name="JobOrderList")
    read = await other.ask("read", part=CONTROL, name="JobOrderList", range="0:14", counted=True)
    assert read == {"status": "Good", "value": 15}
    for name in names:
        seen.hide("station-1", name)


async def test_node_opcua_reads_the_inactive_state_of_the_receiver(other: OtherMake) -> None:
    assert (await other.ask("read", part=CONTROL, name="CurrentState"))["status"] == "BadStateNotActive"


async def test_node_opcua_receives_changes_and_events(other: OtherMake, seen: UaServer) -> None:
    assert await other.ask("subscribe", part=RESULTS, name="JobOrderResponseList") == "Good"
    assert (await other.hear("changed"))["value"] in (None, [])
    assert await other.ask("listen") == "Good"
    job_order_and_state = entry("job-2", JobState.ENDED)
    seen.show("station-1", job_order_and_state, response("job-2"))
    changed = await other.hear("changed")
    assert [value["jobOrderID"] for value in changed["value"]] == ["job-2"]
    assert changed["value"][0]["jobResponseData"][0]["value"]["value"] == 42.5
    event = JobStatusEvent(
        job_order=job_order_and_state.job_order, job_state=job_order_and_state.state, job_response=response("job-2")
    )
    await seen.publish_event("station-1", event, datetime(2026, 1, 2, tzinfo=UTC))
    *_, order, state, heard = (await other.hear("event"))["event"]
    assert order["jobOrderID"] == heard["jobOrderID"] == "job-2"
    assert state[0]["stateText"]["text"] == "Ended"
    seen.hide("station-1", "job-2")


@pytest.mark.parametrize("name", METHODS)
async def test_node_opcua_calls_every_method_of_the_receiver(other: OtherMake, station: Station, name: str) -> None:
    station.reset()
    takes_order = name in {"Store", "StoreAndStart", "Update"}
    about = {"order": {"jobOrderID": "job-1", "priority": 7}} if takes_order else {"id": "job-1"}
    answer = await other.ask("call", part=CONTROL, name=name, comment=["by hand"], **about)
    assert answer["status"] == "Good"
    assert [int(half) for half in answer["outputs"][0]] == [0, ReturnStatus.NO_ERROR]  # UInt64: high, low
    (call,) = station.calls
    comment = call.arguments.comment
    assert comment
    assert comment[0].text == "by hand"
    match call.arguments:
        case OrderCall(job_order=order):
            texts = [text.text for text in order.description or ()]
            assert (order.job_order_id, order.priority, texts) == ("job-1", 7, ["of another make"])
        case IdCall(job_order_id=job_order_id):
            assert job_order_id == "job-1"


async def test_node_opcua_receives_the_return_status_of_a_refused_call(other: OtherMake, station: Station) -> None:
    station.reset()
    station.status = ReturnStatus.UNKNOWN_JOB_ORDER_ID
    answer = await other.ask("call", part=CONTROL, name="Start", id="nowhere", comment=[])
    assert answer["status"].startswith("Uncertain")
    assert int(answer["outputs"][0][1]) == ReturnStatus.UNKNOWN_JOB_ORDER_ID


async def test_node_opcua_requests_job_responses(other: OtherMake, station: Station) -> None:
    station.reset()
    station.responses = (response("job-1"), response("job-2"))
    answer = await other.ask("call", part=RESULTS, name="RequestJobResponseByJobOrderID", id="job-1")
    assert answer["outputs"][0]["jobOrderID"] == "job-1"
    ended = {"browsePath": {"elements": []}, "stateText": {"text": "Ended"}, "stateNumber": 5}
    answer = await other.ask("call", part=RESULTS, name="RequestJobResponseByJobOrderState", states=[ended])
    assert [output["jobOrderID"] for output in answer["outputs"][0]] == ["job-1", "job-2"]


async def test_node_opcua_writes_are_refused(other: OtherMake) -> None:
    refused = await other.ask("write", part=CONTROL, name="MaxDownloadableJobOrders")
    assert refused in {"BadUserAccessDenied", "BadNotWritable"}


async def test_a_wrong_password_is_refused(other: OtherMake) -> None:
    with pytest.raises(AssertionError, match="BadUserAccessDenied"):
        await other.ask("enter", user="nobody")
