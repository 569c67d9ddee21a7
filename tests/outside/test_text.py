"""Text that is unreadable for a client of another vendor is not sent to this client."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD


@pytest.mark.slow
def test_a_byte_order_mark_in_an_id_does_not_disconnect_the_mes(plant: Plant) -> None:
    """A paho client ends its connection when a string that it receives holds U+FEFF."""
    correlation = plant.mes.send(METHOD.format("Clear"), {"JobOrderID": "none"}, id="\ufeffcall")
    plant.mes.client.wait(
        lambda: plant.mes.answer_to(correlation) or plant.mes.client.disconnects, "an answer or a disconnect"
    )
    assert plant.mes.client.disconnects == 0
    assert plant.mes.start_job("\ufeffJ1").status != 1
    assert plant.mes.start_job("J2").status == 1
    plant.mes.wait_for_state("J2", "Ended")
    assert plant.mes.client.disconnects == 0
