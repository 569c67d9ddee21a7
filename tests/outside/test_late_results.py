"""A late result is reported to the MES and changes no job."""

import json
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import wait_for

_TYPE = "com.github.aschamberger.microdcs.result.late.v1"


@pytest.mark.slow
def test_a_late_result_is_published_once_under_its_id(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    assert plant.mes.call("Abort", {"JobOrderID": "J1"}).status == 1
    plant.mes.wait_for_state("J1", "Aborted", 60)
    plant.wrench.release()
    plant.mes.client.wait(lambda: _late(plant), "the MES has the late result", 60)
    plant.gateway.kill()
    plant.gateway.start()
    assert plant.mes.start_job("J2").status == 1
    plant.mes.wait_for_state("J2", "Ended", 60)
    (event,) = _late(plant).values()
    assert (event["JobOrderID"], event["Data"]["torque"]["value"]) == ("J1", 85.2)
    assert plant.mes.states("J1") == ["Running", "Aborted"]


@pytest.mark.slow
def test_late_result_of_a_removed_job_is_published_in_its_scope(plant: Plant) -> None:
    """A gateway of several scopes kept it, and no MES heard of it."""
    settings = plant.gateway.settings
    settings.write_text(settings.read_text().replace("[gateway]\n", '[gateway]\nscopes = ["other", "station-1"]\n'))
    plant.gateway.stop()
    plant.gateway.start()
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    for method in ("Abort", "Clear"):
        assert plant.mes.call(method, {"JobOrderID": "J1"}).status == 1
    plant.wrench.release()
    plant.mes.client.wait(lambda: _late(plant), "the MES has the late result", 60)
    (event,) = _late(plant).values()
    assert event["JobOrderID"] == "J1"


def _late(plant: Plant) -> dict[str, dict[str, Any]]:
    receiveds = [received for received in list(plant.mes.client.received) if received.attributes.get("type") == _TYPE]
    return {received.attributes["id"]: received.data for received in receiveds}


@pytest.mark.slow
def test_gateway_that_lags_behind_a_clear_keeps_no_copy(plant: Plant) -> None:
    """It is frozen from before the answer until the MES has cleared the job; a result that no gateway had is kept."""
    lagging = plant.new_gateway("lagging", None)
    lagging.start()
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    lagging.freeze()
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert plant.mes.call("Clear", {"JobOrderID": "J1"}).status == 1
    plant.wrench.holds = True
    assert plant.mes.start_job("J2").status == 1
    plant.wrench.client.wait(lambda: len(set(plant.wrench.starts())) > 1, "the tool has the next command", 60)
    for method in ("Abort", "Clear"):
        assert plant.mes.call(method, {"JobOrderID": "J2"}).status == 1
    lagging.thaw()
    wait_for(lambda: "the job had this result" in lagging.log.read_text(), "the lagging gateway has the answer")
    plant.wrench.release()
    wait_for(lambda: _kept(plant), "the late result is kept")
    for gateway in (plant.gateway, lagging):
        # An orderly end handles first what was received.
        gateway.stop()
    assert _kept(plant) == ["J2"]


def _kept(plant: Plant) -> list[str]:
    """Return the jobs of the late results that the store keeps."""
    letters = json.loads(plant.gateway.cli("dead-letters", "list", "--json"))
    return [letter["job_order_id"] for letter in letters]
