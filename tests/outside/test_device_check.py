"""The test of devices finds what a device does wrong, by the device's own log of its work."""

import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside.mqtt_client import MqttClient
from tests.outside.mqtt_device import DeviceFault, MqttDevice
from tests.outside.servers import EDGE, PREFIX, Broker, ended

TOPIC = f"{PREFIX}/equipment/wrench"
_WORK_S = {DeviceFault.WORKS_AGAIN: 0.18, DeviceFault.WORKS_TWICE_AT_ONCE: 0.18}
"""The duration of the work where it has to be found within 0.2 s."""

TYPE_ID = "com.example.station.tighten.v1"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker."""
    running = Broker(tmp_path / "broker")
    with ended(running):
        running.start()
        yield running


def check(broker: Broker, *arguments: str) -> dict[str, Any]:
    """Return the report of the test of devices."""
    address = ("--url", f"mqtt://127.0.0.1:{broker.port}", "--prefix", f"{PREFIX}/equipment", "--name", "wrench")
    command = [str(EDGE), "sim", "device", *address, "--type", TYPE_ID, "--answer-within", "2", "--json", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    report: dict[str, Any] = json.loads(ran.stdout)
    assert ran.returncode == (0 if report["passed"] else 1)
    return report


@contextlib.contextmanager
def device(broker: Broker, fault: DeviceFault, *, lock: bool) -> Iterator[MqttDevice]:
    tool = MqttDevice(broker.port, TOPIC, fault, lock=lock, work_s=_WORK_S.get(fault, 0.5))
    tool.open()
    with contextlib.closing(tool):
        yield tool


def grades(report: dict[str, Any]) -> dict[str, str]:
    """Return the findings that are not right, by check."""
    return {finding["check"]: finding["grade"] for finding in report["findings"] if finding["grade"] != "ok"}


@pytest.mark.slow
@pytest.mark.parametrize("lock", [False, True])
def test_correct_device_passes_the_strict_check(broker: Broker, *, lock: bool) -> None:
    with device(broker, DeviceFault.NONE, lock=lock) as tool:
        report = check(broker, "--strict", *(["--lock"] if lock else []))
    assert report["passed"], report
    assert len(tool.begun) == 4
    assert len(tool.ended) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (DeviceFault.IGNORES_STOPS, {"stop": "note"}),
        (DeviceFault.GOES_ON_AFTER_A_STOP, {"stop": "failed"}),
        (DeviceFault.WORKS_AGAIN, {"repeated start": "note"}),
        (DeviceFault.WORKS_TWICE_AT_ONCE, {"repeated start at work": "note"}),
        (DeviceFault.IGNORES_THE_LOCK, {"start without permission": "failed"}),
        (DeviceFault.IGNORES_OTHER_PARAMETERS, {"start of a known id with other parameters": "note"}),
    ],
)
def test_fault_of_a_device_fails_the_strict_check(broker: Broker, fault: DeviceFault, expected: dict[str, str]) -> None:
    with device(broker, fault, lock=True) as tool:
        report = check(broker, "--strict", "--lock")
    assert grades(report) == expected, (report, tool.begun)
    assert not report["passed"]
    repeated = [command for command, times in Counter(tool.begun).items() if times > 1]
    assert bool(repeated) == (fault in {DeviceFault.WORKS_AGAIN, DeviceFault.WORKS_TWICE_AT_ONCE})


def test_permission_of_a_device_is_as_before_the_check(broker: Broker) -> None:
    client = MqttClient(broker.port, "gateway")
    client.connect()
    with contextlib.closing(client), device(broker, DeviceFault.NONE, lock=True):
        client.publish(f"{TOPIC}/enabled", b"false", {}, retain=True)
        check(broker)
        late = MqttClient(broker.port, "late")
        late.connect()
        with contextlib.closing(late):
            late.subscribe(f"{TOPIC}/enabled")
            late.wait(lambda: late.received, "the retained permission")
            assert late.received[0].payload == b"false"
