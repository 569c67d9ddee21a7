"""A step of the wall clock drops no OPC UA client."""

import time

import pytest

from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line

pytestmark = pytest.mark.slow


def test_step_of_the_wall_clock_does_not_close_opc_ua_sessions(plant: Plant) -> None:
    with opcua_client(plant.opcua_port, "hold", "6") as reader:
        assert read_line(reader) == {"holding": True}
        for seconds in (3600.0, -3600.0, 0.0):
            plant.step_clocks(seconds)
            time.sleep(1.0)
        assert read_line(reader) == {"held": True}
