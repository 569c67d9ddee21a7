"""What keeps equipment from its work: a missing connection before a problem that it reports."""

import pytest

from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth

SILENT = ConnectionState(connected=False, fault=ConnectionFault.SILENT, reason="no answer in time")


@pytest.mark.parametrize(
    ("connected", "connection", "obstacle"),
    [
        (False, SILENT, str(SILENT.text)),
        (False, ConnectionState(), "not connected"),
        (True, ConnectionState(connected=True), "locked"),
        (None, ConnectionState(), "locked"),
    ],
    ids=["reason", "report of an earlier version", "connected", "unknown"],
)
def test_obstacle_is_the_missing_connection_before_a_problem(
    *, connected: bool | None, connection: ConnectionState, obstacle: str
) -> None:
    health = EquipmentHealth(name="w", kind="mqtt", connected=connected, connection=connection, problem="locked")
    assert str(health.obstacle) == obstacle
