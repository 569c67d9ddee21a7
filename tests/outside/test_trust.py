"""Messages of one client have no effect on other clients."""

import json

from tests.outside.conftest import Plant
from tests.outside.plant import COMMANDS, METHOD
from tests.outside.servers import PREFIX


def test_a_call_is_not_answered_to_equipment(plant: Plant) -> None:
    call = {"specversion": "1.0", "id": "c1", "source": "/mes", "type": METHOD.format("Clear"), "subject": "station-1"}
    plant.mes.client.publish(
        COMMANDS, json.dumps({"JobOrderID": "none"}), call, response_topic=f"{PREFIX}/equipment/wrench/commands"
    )
    _require_silence_to_the_wrench(plant)


def _require_silence_to_the_wrench(plant: Plant) -> None:
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    assert [command.attributes.get("phase") for command in plant.wrench.commands] == ["start"]
