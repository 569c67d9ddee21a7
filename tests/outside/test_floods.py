"""A flood of messages takes neither memory nor time from the calls of the MES."""

import threading
import time

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import PREFIX

EVENT = {"specversion": "1.0", "source": "/noise", "type": "com.example.noise.v1", "subject": "station-1"}


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_flood_of_qos_0_starves_no_call(plant: Plant) -> None:
    log = plant.gateway.log.stat().st_size
    over = threading.Event()
    flood = threading.Thread(target=_flood, args=(plant.broker.port, over))
    flood.start()
    try:
        worst, memory, end = 0.0, 0.0, time.monotonic() + 20
        while time.monotonic() < end:
            answer = plant.mes.call("RequestJobResponseByJobOrderID", {"JobOrderID": "none"}, deadline=60)
            worst = max(worst, answer.seconds)
            memory = max(memory, plant.gateway.memory())
    finally:
        over.set()
        flood.join()
    assert worst <= 5.0
    assert memory <= 150
    assert plant.gateway.log.stat().st_size - log < 1_000_000


def _flood(port: int, over: threading.Event) -> None:
    client = MqttClient(port, "noise")
    client.connect()
    number = 0
    while not over.is_set():
        for _ in range(500):
            number += 1
            client.publish(f"{PREFIX}/equipment/wrench/events", "x" * 500, EVENT | {"id": str(number)}, qos=0)
        # About 10,000 messages a second: what a device with a defect can send.
        over.wait(0.05)
    client.close()
