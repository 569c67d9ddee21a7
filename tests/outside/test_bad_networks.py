"""A slow and lossy network, and a full store, delay work and lose none."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, order
from tests.outside.slow_network import SlowNetwork


@pytest.mark.long
def test_jobs_end_over_a_slow_and_lossy_network(plant: Plant) -> None:
    """100 ms each way, stalls as TCP shows lost packets, and connections that break."""
    with SlowNetwork(plant.broker.port) as network:
        settings = plant.gateway.settings
        former = f"mqtt://127.0.0.1:{plant.broker.port}"
        settings.write_text(settings.read_text().replace(former, f"mqtt://127.0.0.1:{network.port}"))
        plant.gateway.stop()
        plant.gateway.start()
        for number in range(3):
            assert plant.mes.start_job(f"J{number}").status == 1
            network.cut()
        for number in range(3):
            plant.mes.wait_for_state(f"J{number}", "Ended", 60)
            assert plant.mes.states(f"J{number}") == ["Running", "Ended"]
        assert network.forwarded > 0
    assert len(set(plant.wrench.starts())) == 3


@pytest.mark.slow
def test_call_waits_while_the_store_is_full(plant: Plant) -> None:
    plant.store.cli("config", "set", "maxmemory", "1")
    correlation = plant.mes.send(METHOD.format("StoreAndStart"), order("J1"))
    plant.gateway.wait_for_status(lambda line: "store" in line.lower(), "the status names the store", 60)
    assert plant.mes.answer_to(correlation) is None
    assert plant.store.cli("exists", "microdcs-edge:joborder:J1") == "0"
    plant.store.cli("config", "set", "maxmemory", "0")
    plant.mes.client.wait(lambda: plant.mes.answer_to(correlation), "the call is answered", 60)
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert len(set(plant.wrench.starts())) == 1
