"""Each kind of reason has an advice, and an unknown one the general advice."""

import pytest

from edge.app.connection_advice import connection_advice
from edge.model.equipment_connection import ConnectionFault

GENERAL = "Switch it on and check its connection."


@pytest.mark.parametrize(
    "fault", [connection_fault for connection_fault in ConnectionFault if connection_fault is not ConnectionFault.OTHER]
)
def test_kind_of_reason_has_its_own_advice(fault: ConnectionFault) -> None:
    assert connection_advice(fault) != GENERAL
    assert connection_advice(fault).endswith(".")


@pytest.mark.parametrize("fault", ["", "other", "a kind of a later release"])
def test_other_reason_has_the_general_advice(fault: str) -> None:
    assert connection_advice(fault) == GENERAL
