"""No OPC UA session stops the gateway."""

import statistics
import time

import pytest

from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.plant import METHOD, Mes, order

JOBS = 1000
CHANGES_PER_S = 10
READ_MS = 20.0


@pytest.mark.long
@pytest.mark.timeout(180)
def test_one_reading_session_does_not_stop_the_gateway(plant: Plant) -> None:
    """The most expensive Read of a list of a thousand jobs, again and again, while the MES calls."""
    calls = [plant.mes.send(METHOD.format("Store"), order(f"J{n}")) for n in range(JOBS)]
    plant.mes.client.wait(lambda: plant.mes.answer_to(calls[-1]), "every job is stored", 90)
    with opcua_client(plant.opcua_port, "flood", "1000", "12") as reader:
        assert read_line(reader) == {"flooding": True}
        delays = _call_for(plant.mes, 10.0)
        memory = plant.gateway.memory()
        reader.kill()
    assert memory <= 150
    assert max(delays) <= 1.0, statistics.quantiles(delays, n=10)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_small_reads_stay_fast_with_a_thousand_jobs(plant: Plant) -> None:
    """Ten jobs change each second, and a client of its own subscribes to the list of all thousand."""
    calls = [plant.mes.send(METHOD.format("Store"), order(f"J{n}")) for n in range(JOBS)]
    plant.mes.client.wait(lambda: plant.mes.answer_to(calls[-1]), "every job is stored", 90)
    with (
        opcua_client(plant.opcua_port, "watch", "20") as watcher,
        opcua_client(plant.opcua_port, "delays", "15") as reader,
    ):
        assert read_line(watcher) == {"watching": True}
        _change_for(plant.mes, 14.0)
        measured = read_line(reader)
        assert read_line(watcher)["changes"] >= CHANGES_PER_S * 5
    assert measured["count"] >= 300
    assert measured["p99"] <= READ_MS, measured


def _change_for(mes: Mes, seconds: float) -> None:
    """Update jobs at a steady rate."""
    started = time.monotonic()
    for number in range(int(seconds * CHANGES_PER_S)):
        mes.send(METHOD.format("Update"), order(f"J{number % JOBS}"))
        time.sleep(max(0.0, started + (number + 1) / CHANGES_PER_S - time.monotonic()))


def _call_for(mes: Mes, seconds: float) -> list[float]:
    end = time.monotonic() + seconds
    delays = []
    while time.monotonic() < end:
        delays.append(mes.call("RequestJobResponseByJobOrderID", {"JobOrderID": "J1"}, deadline=60.0).seconds)
    return delays
