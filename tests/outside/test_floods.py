"""A flood of messages neither exhausts memory nor delays the calls of the MES."""

import contextlib
import functools
import json
import statistics
import subprocess
import threading
import time
import uuid
from collections.abc import Callable

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.plant import METHOD, TIGHTEN
from tests.outside.servers import PREFIX, SCOPE, wait_for

LARGE = json.dumps({"values": list(range(40_000))})
"""About 260 KB, which decoded take many times that."""
COMMANDS = f"{PREFIX}/{SCOPE}/commands"
EVENT = {"specversion": "1.0", "source": "/noise", "type": "com.example.noise.v1", "subject": "station-1"}


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("topic", "payload"),
    [(f"{PREFIX}/equipment/wrench/events", "x" * 500), (COMMANDS, "no JSON")],
    ids=["events", "rubbish"],
)
def test_flood_of_qos_0_messages_does_not_delay_calls(plant: Plant, topic: str, payload: str) -> None:
    log = plant.gateway.log.stat().st_size
    worst, memory = _call_during(plant, functools.partial(_flood, plant.broker.port, topic, payload))
    assert worst <= 5.0
    assert memory <= 150
    assert plant.gateway.log.stat().st_size - log < 1_000_000


@pytest.mark.long
@pytest.mark.timeout(180)
def test_flood_of_large_qos_1_events_uses_bounded_memory(plant: Plant) -> None:
    topic = f"{PREFIX}/equipment/wrench/events"
    worst, memory = _call_during(plant, functools.partial(_flood_qos_1, plant.broker.port, topic))
    assert worst <= 5.0
    assert memory <= 150


@pytest.mark.long
@pytest.mark.timeout(180)
def test_repeated_call_is_answered_during_a_qos_1_flood_of_its_topic(plant: Plant) -> None:
    """The broker drops what its queue cannot hold, calls of the MES too: the MES repeats its call under the same id.

    Chance decides which message finds a place in the queue, so a single call may need any number of repeats.
    """
    command = ["mosquitto_pub", "-V", "5", "-p", str(plant.broker.port), "-q", "1", "-l", "-t", COMMANDS]
    with subprocess.Popen(["yes", "no JSON"], stdout=subprocess.PIPE) as lines:
        with subprocess.Popen(command, stdin=lines.stdout) as flood:
            repeats = [_repeat_call(plant) for _ in range(20)]
            memory = plant.gateway.memory()
            flood.kill()
        lines.kill()
    assert statistics.mean(repeats) <= 5
    assert memory <= 150


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "causation", ["", "none-{}/run/tighten/1", "manual-{}"], ids=["result", "gone job", "stranger"]
)
def test_jobs_run_during_a_flood_of_unsolicited_answers(plant: Plant, causation: str) -> None:
    """The answers are counted, some are stored apart from the dead letters, and the log has a line a minute."""
    plant.store.cli("xadd", "microdcs-edge:sfc:work:station-1", "*", "not", "readable")
    wait_for(lambda: "unreadable" in plant.gateway.cli("dead-letters", "list"), "a dead letter from before")
    lines = _lines(plant)
    over = threading.Event()
    flood = threading.Thread(target=_flood_answers, args=(plant.broker.port, causation, over))
    flood.start()
    durations: list[float] = []
    try:
        end = time.monotonic() + 12
        while time.monotonic() < end:
            job, began = f"J{len(durations)}", time.monotonic()
            assert plant.mes.start_job(job).status == 1
            plant.mes.wait_for_state(job, "Ended", 60)
            durations.append(time.monotonic() - began)
        memory = plant.gateway.memory()
        plant.gateway.wait_for_status(lambda line: "unsolicited answers at wrench" in line, "the status names it")
        wait_for(lambda: "gateway.answers_flooded" in plant.gateway.cli("alarms", "list"), "the alarm names it")
    finally:
        over.set()
        flood.join()
    assert max(durations) <= 5.0
    assert memory <= 150
    assert _lines(plant) - lines < 100 + 2 * len(durations)
    assert "unreadable" in plant.gateway.cli("dead-letters", "list")
    wait_for(lambda: _unsolicited(plant) > 1000, "the answers are counted")


def _lines(plant: Plant) -> int:
    return len(plant.gateway.log.read_text().splitlines())


def _unsolicited(plant: Plant) -> int:
    (wrench,) = json.loads(plant.gateway.cli("equipment", "list", "--json"))
    return int(wrench["unsolicited"])


def _flood_answers(port: int, causation: str, over: threading.Event) -> None:
    """Send results that no command asked for, as fast as the broker takes them."""
    client = MqttClient(port, "noise")
    client.connect()
    number = 0
    while not over.is_set():
        for _ in range(100):
            number += 1
            named = {"causationid": causation.format(number)} if causation else {}
            answer = {"specversion": "1.0", "source": "/noise", "type": TIGHTEN, "id": str(number)} | named
            client.publish(f"{PREFIX}/equipment/wrench/answers", '{"torque": 1}', answer, confirm=None)
        client.publish(f"{PREFIX}/equipment/wrench/answers", "", {"id": f"last {number}"}, confirm=60)
    client.close()


def _repeat_call(plant: Plant) -> int:
    """Send a call each second under one id until it is answered; return how often it was sent."""
    began, key, sent = time.monotonic(), str(uuid.uuid4()), []
    while True:
        sent.append(plant.mes.send(METHOD.format("RequestJobResponseByJobOrderID"), {"JobOrderID": "none"}, id=key))
        with contextlib.suppress(AssertionError):
            plant.mes.client.wait(lambda: any(plant.mes.answer_to(data) for data in sent), "an answer", 1.0)
            return len(sent)
        assert time.monotonic() - began < 60, "the call is not answered"


def _call_during(plant: Plant, flood_until: Callable[[threading.Event], None]) -> tuple[float, float]:
    """Call for 12 s during a flood; return the longest time in seconds and the most memory in MB."""
    over = threading.Event()
    flood = threading.Thread(target=flood_until, args=(over,))
    flood.start()
    try:
        worst, memory, end = 0.0, 0.0, time.monotonic() + 12
        while time.monotonic() < end:
            answer = plant.mes.call("RequestJobResponseByJobOrderID", {"JobOrderID": "none"}, deadline=60)
            worst = max(worst, answer.seconds)
            memory = max(memory, plant.gateway.memory())
    finally:
        over.set()
        flood.join()
    return worst, memory


def _flood_qos_1(port: int, topic: str, over: threading.Event) -> None:
    client = MqttClient(port, "noise")
    client.connect()
    number = 0
    while not over.is_set():
        # Few wait for the broker at once: the sender takes no memory of the machine.
        for _ in range(20):
            number += 1
            client.publish(topic, LARGE, EVENT | {"id": str(number)}, confirm=None)
        client.publish(topic, LARGE, EVENT | {"id": f"last {number}"}, confirm=60)
    client.close()


def _flood(port: int, topic: str, payload: str, over: threading.Event) -> None:
    client = MqttClient(port, "noise")
    client.connect()
    number = 0
    while not over.is_set():
        for _ in range(500):
            number += 1
            client.publish(topic, payload, EVENT | {"id": str(number)}, qos=0)
        # About 10,000 messages a second: what a device with a defect can send.
        over.wait(0.05)
    client.close()
