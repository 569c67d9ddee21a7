"""Scopes are added and removed while the gateway runs."""

import os
import signal

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, Mes, order
from tests.outside.servers import wait_for


@pytest.mark.slow
def test_scopes_are_added_and_removed_without_a_restart(plant: Plant) -> None:
    settings, pid = plant.gateway.settings, plant.gateway.pid
    former = settings.read_text()
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    settings.write_text(former.replace("[gateway]\n", '[gateway]\nscopes = ["station-1", "station-2"]\n'))
    os.kill(pid, signal.SIGHUP)
    wait_for(lambda: plant.gateway.log.read_text().count('"ready"') == 2, "both scopes are served", 60)
    second = Mes(plant.broker.port, "mes-2", scope="station-2")
    second.open()
    second.configure()
    plant.wrench.release()
    assert second.start_job("S2").status == 1
    second.wait_for_state("S2", "Ended", 60)
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert plant.gateway.pid == pid
    settings.write_text("[gateway]\nscopes = []\n")
    os.kill(pid, signal.SIGHUP)
    wait_for(lambda: "settings not applied" in plant.gateway.log.read_text(), "the fault is logged", 60)
    assert plant.mes.start_job("J2").status == 1
    settings.write_text(former)
    os.kill(pid, signal.SIGHUP)
    wait_for(lambda: plant.gateway.log.read_text().count('"ready"') == 3, "the scope is gone", 60)
    plant.mes.wait_for_state("J2", "Ended", 60)
    correlation = second.send(METHOD.format("StoreAndStart"), order("S3"))
    plant.mes.start_job("J3")
    plant.mes.wait_for_state("J3", "Ended", 60)
    assert second.answer_to(correlation) is None
    second.client.close()
