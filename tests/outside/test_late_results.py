"""A late result is reported to the MES and changes no job."""

from typing import Any

import pytest

from tests.outside.conftest import Plant

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


def _late(plant: Plant) -> dict[str, dict[str, Any]]:
    found = [each for each in list(plant.mes.client.received) if each.attributes.get("type") == _TYPE]
    return {each.attributes["id"]: each.data for each in found}
