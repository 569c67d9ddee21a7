"""A code reader reports an event for each code, once, and starts a job for a code without a waiting job."""

import asyncio
import os
import pty
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.equipment.connected_equipment import ConnectedEquipment
from edge.equipment.device import UnreadableEventError
from edge.features.readers.equipment import decode_code, open_reader
from edge.features.readers.scanned_job import ScannedJob
from edge.features.readers.settings import ReaderSettings
from edge.foundation.errors import Unavailable
from edge.model.equipment_traffic import TrafficKind
from edge.station.equipment import Task
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, WORK
from tests.equipment.recording_station import RecordingStation


class Scanner:
    """A reader that is a TCP server, under control of a test."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0

    async def accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)

    def scan(self, *codes: str) -> None:
        for code in codes:
            self.send(f"{code}\r\n".encode())

    def send(self, raw: bytes) -> None:
        self.writers[-1].write(raw)


class Reading:
    """A station, the started jobs, and the time in milliseconds."""

    def __init__(self) -> None:
        self.station = RecordingStation()
        self.jobs: list[ScannedJob] = []
        self.now = 0

    async def start(self, job: ScannedJob) -> None:
        self.jobs.append(job)

    @property
    def codes(self) -> list[str]:
        return [event.data["code"] for event in self.station.events]


@asynccontextmanager
async def scanner() -> AsyncIterator[Scanner]:
    device = Scanner()
    async with await asyncio.start_server(device.accept, "127.0.0.1", 0) as server:
        device.port = server.sockets[0].getsockname()[1]
        yield device
        for writer in device.writers:
            writer.close()


@asynccontextmanager
async def opened(wait_until: WaitUntil, url: str, **keys: Any) -> AsyncIterator[tuple[Reading, ConnectedEquipment]]:
    one = Reading()
    settings = ReaderSettings(kind="reader", type_ids=("scanned.v1",), url=url, **keys)
    start, time_s = one.start, lambda: one.now / 1000
    async with open_reader("scanner", settings, one.station, SCOPES, start, time_s=time_s) as equipment:
        await wait_until(lambda: equipment.connected)
        yield one, equipment


@asynccontextmanager
async def reading(wait_until: WaitUntil, url: str, **keys: Any) -> AsyncIterator[Reading]:
    async with opened(wait_until, url, **keys) as (one, _):
        yield one


@given(st.binary(min_size=1, max_size=20), st.sampled_from(["utf-8", "latin-1", "cp1252"]))
def test_any_bytes_are_a_code_without_loss_or_unreadable(line: bytes, encoding: str) -> None:
    match decode_code(line, encoding):
        case UnreadableEventError(payload=payload):
            assert payload == line
        case str(code):
            assert "\ufffd" not in code
            assert code.encode(encoding) == line.removeprefix(b"\xef\xbb\xbf" if encoding == "utf-8" else b"").strip(
                b" "
            )


async def test_code_is_an_event_of_its_scope(wait_until: WaitUntil) -> None:
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}") as one:
        await wait_until(lambda: device.writers)
        device.scan("A1", "B2")
        await wait_until(lambda: one.codes == ["A1", "B2"])
        event = one.station.events[0]
    assert (event.type_id, event.scope, event.data) == ("scanned.v1", SCOPES[0], {"code": "A1"})
    assert event.source.endswith("scanner")
    assert one.jobs == []


async def test_code_waits_for_the_store(wait_until: WaitUntil) -> None:
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}") as one:
        await wait_until(lambda: device.writers)
        one.station.failures = [Unavailable("the store is away")]
        device.scan("A1")
        await wait_until(lambda: one.codes == ["A1"])
        assert len(device.writers) == 1


async def test_repeated_code_is_reported_once_within_the_dedupe_time(wait_until: WaitUntil) -> None:
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", dedupe=2.0) as one:
        await wait_until(lambda: device.writers)
        for now in (0, 1500, 3000):
            one.now = now
            device.scan("A1", f"at {now}")
            await wait_until(lambda now=now: f"at {now}" in one.codes)
        one.now = 5000
        device.scan("A1")
        await wait_until(lambda: one.codes.count("A1") == 2)


async def test_groups_of_the_pattern_are_data_and_other_codes_are_refused(wait_until: WaitUntil) -> None:
    pattern = r"(?P<vin>\w{4})-(?P<color>\d+)?"
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", pattern=pattern) as one:
        await wait_until(lambda: device.writers)
        device.scan("garbage", "WDB1-7", "WDB2-")
        await wait_until(lambda: len(one.station.events) == 2)
    assert [event.data for event in one.station.events] == [
        {"code": "WDB1-7", "vin": "WDB1", "color": "7"},
        {"code": "WDB2-", "vin": "WDB2"},
    ]
    assert [refused.kind for refused in one.station.refused] == ["unreadable"]


@pytest.mark.parametrize("used", [True, False])
async def test_code_starts_a_job_unless_a_job_waits_for_it(wait_until: WaitUntil, *, used: bool) -> None:
    keys = {"starts": "work_master", "work_master": "WM-1"}
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", **keys) as one:
        one.station.task = Task("J1", "scan", {}) if used else None
        await wait_until(lambda: device.writers)
        device.scan("A1", "end")
        await wait_until(lambda: "end" in one.codes)
        await wait_until(lambda: used or len(one.jobs) == 2)
    found = [(job.job_order_id, job.work_master, job.parameters) for job in one.jobs][:1]
    assert found == ([] if used else [("A1", "WM-1", {"code": "A1"})])


async def test_code_in_another_encoding_is_refused_with_its_bytes(wait_until: WaitUntil) -> None:
    keys = {"starts": "work_master", "work_master": "WM-1"}
    async with scanner() as device, opened(wait_until, f"tcp://127.0.0.1:{device.port}", **keys) as (one, equipment):
        await wait_until(lambda: device.writers)
        device.send(b"\xdcML-8\r\n")
        await wait_until(lambda: one.station.refused)
        assert "0xDC" in str(equipment.problem)
        device.send("ÜML-\ufffd\r\n".encode())
        await wait_until(lambda: len(one.station.refused) == 2)
        assert "replaced" in str(equipment.problem)
        device.send(b"\xef\xbb\xbf\xc3\x9cML-8\r\n")
        await wait_until(lambda: one.jobs)
        assert equipment.problem == ""
    assert [(refused.kind, refused.payload) for refused in one.station.refused] == [
        ("unreadable", b"\xdcML-8"),
        ("unreadable", "ÜML-\ufffd".encode()),
    ]
    assert [job.job_order_id for job in one.jobs] == ["ÜML-8"]


@pytest.mark.parametrize(
    ("encoding", "raw", "code"),
    [("latin-1", b"\xdcML", "ÜML"), ("cp1252", b"10 \x80", "10 €"), ("cp1252", b"\x81", "")],
)
async def test_code_is_read_in_the_encoding_of_the_settings(
    wait_until: WaitUntil, encoding: str, raw: bytes, code: str
) -> None:
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", encoding=encoding) as one:
        await wait_until(lambda: device.writers)
        device.send(raw + b"\r\nend\r\n")
        await wait_until(lambda: "end" in one.codes)
    assert one.codes == ([code, "end"] if code else ["end"])


GS1_CODE = "]d20109501101530003\x1d21SER1\x1d10AB-123"
GS1_KEYS = {"starts": "work_master", "work_master": "WM-1"}


@pytest.mark.parametrize(
    ("keys", "job_id"),
    [
        ({}, "]d20109501101530003%1D21SER1%1D10AB-123"),
        ({"gs1": "auto", "job_id": "gs1_21"}, "SER1"),
        ({"pattern": "(?s).*\x1d10(?P<batch>[^\x1d]+).*", "job_id": "batch"}, "AB-123"),
    ],
)
async def test_gs1_code_starts_a_job(wait_until: WaitUntil, keys: dict[str, str], job_id: str) -> None:
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", **GS1_KEYS, **keys) as one:
        await wait_until(lambda: device.writers)
        device.scan(GS1_CODE)
        await wait_until(lambda: one.jobs)
    assert [job.job_order_id for job in one.jobs] == [job_id]
    assert one.jobs[0].parameters["code"] == GS1_CODE
    identifiers = {name: value for name, value in one.jobs[0].parameters.items() if name.startswith("gs1_")}
    expected = {"gs1_01": "09501101530003", "gs1_21": "SER1", "gs1_10": "AB-123"}
    assert identifiers == (expected if "gs1" in keys else {})


async def test_code_that_is_not_gs1_is_refused_only_when_required(wait_until: WaitUntil) -> None:
    for gs1, codes in (("auto", ["VIN-7", "10AB"]), ("required", ["10AB"])):
        async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", gs1=gs1) as one:
            await wait_until(lambda: device.writers)
            device.scan("VIN-7", "10AB")
            await wait_until(lambda: "10AB" in one.codes)
        assert one.codes == codes


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("10AB", "has no gs1_21"),
        ("010950110153000421SER1", "(01) has a wrong check digit: '09501101530004'"),
    ],
)
async def test_code_that_names_no_job_is_refused_with_the_reason(wait_until: WaitUntil, code: str, reason: str) -> None:
    keys = GS1_KEYS | {"gs1": "auto", "job_id": "gs1_21"}
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}", **keys) as one:
        await wait_until(lambda: device.writers)
        device.scan(code)
        await wait_until(lambda: one.station.refused)
    assert one.jobs == []
    assert reason in str(one.station.refused[0].reason)


async def test_silent_reader_is_connected_again(wait_until: WaitUntil) -> None:
    keys = {"silence": 0.3, "ignore": ("HB", "NOREAD")}
    async with scanner() as device, opened(wait_until, f"tcp://127.0.0.1:{device.port}", **keys) as (one, equipment):
        await wait_until(lambda: device.writers)
        device.scan("HB", "NOREAD", "A1")
        await wait_until(lambda: len(device.writers) == 2)
        await wait_until(lambda: equipment.connection_count == 2)
        assert one.codes == ["A1"]
        assert str(equipment.problem).endswith("has sent nothing for 0.3 s")

        def is_heard() -> bool:
            device.send(b"\r\n")
            return equipment.problem == ""

        await wait_until(is_heard)
    lost = [str(content) for kind, content in one.station.traffic if kind is TrafficKind.LOST]
    assert lost[0] == f"127.0.0.1:{device.port} has sent nothing for 0.3 s"


async def test_disconnected_reader_is_reconnected(wait_until: WaitUntil) -> None:
    async with scanner() as device, reading(wait_until, f"tcp://127.0.0.1:{device.port}") as one:
        await wait_until(lambda: device.writers)
        device.writers[0].close()
        await wait_until(lambda: len(device.writers) == 2)
        device.scan("A1")
        await wait_until(lambda: one.codes == ["A1"])


async def test_codes_of_a_serial_port_are_events(wait_until: WaitUntil) -> None:
    ours, port = pty.openpty()
    tty.setraw(ours)
    url = f"serial://{os.ttyname(port)}"
    try:
        async with reading(wait_until, url, framing="stx") as one:
            os.write(ours, b"\x02RFID-0815\x03")
            await wait_until(lambda: one.codes == ["RFID-0815"])
    finally:
        os.close(ours)
        os.close(port)


async def test_command_is_refused(wait_until: WaitUntil) -> None:
    recording_station = RecordingStation()
    async with scanner() as device:
        settings = ReaderSettings(kind="reader", type_ids=("scanned.v1",), url=f"tcp://127.0.0.1:{device.port}")
        async with open_reader("scanner", settings, recording_station, SCOPES) as equipment:
            await wait_until(lambda: equipment.connected)
            assert equipment.problem == ""
            await equipment.send(WORK)
            await wait_until(lambda: recording_station.answers)
            await equipment.stop(WORK)
    assert recording_station.answers[0].error
    assert "pull_event" in str(recording_station.answers[0].error)


async def test_gateway_without_jobs_refuses_to_start_one(wait_until: WaitUntil) -> None:
    recording_station = RecordingStation()
    async with scanner() as device:
        url = f"tcp://127.0.0.1:{device.port}"
        settings = ReaderSettings(kind="reader", type_ids=("scanned.v1",), url=url, starts="order")
        async with open_reader("scanner", settings, recording_station, SCOPES) as equipment:
            await wait_until(lambda: equipment.connected and device.writers)
            device.scan("A1")
            await wait_until(lambda: recording_station.refused)
    assert "starts no jobs" in str(recording_station.refused[0].reason)
