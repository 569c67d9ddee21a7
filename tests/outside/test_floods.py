"""A flood of messages takes neither memory nor time from the calls of the MES."""

import threading
import time

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import PREFIX, SCOPE

EVENT = {"specversion": "1.0", "source": "/noise", "type": "com.example.noise.v1", "subject": "station-1"}


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("topic", "payload"),
    [(f"{PREFIX}/equipment/wrench/events", "x" * 500), (f"{PREFIX}/{SCOPE}/commands", "no JSON")],
    ids=["events", "rubbish"],
)
def test_a_flood_of_qos_0_starves_no_call(plant: Plant, topic: str, payload: str) -> None:
    log = plant.gateway.log.stat().st_size
    over = threading.Event()
    flood = threading.Thread(target=_flood, args=(plant.broker.port, topic, payload, over))
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
    assert worst <= 5.0
    assert memory <= 150
    assert plant.gateway.log.stat().st_size - log < 1_000_000


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
