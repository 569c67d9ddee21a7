"""A GPIO chip that is missing is unreachable."""

import pytest

from edge.features.lamps.lines import open_lines
from edge.foundation.errors import Unavailable
from edge.links.connection_fault import fault_of
from edge.model.equipment_connection import ConnectionFault


def test_missing_gpio_chip_is_unreachable() -> None:
    with pytest.raises(Unavailable) as raised, open_lines("no such chip", {"red": 1}, {}):
        pytest.fail("there is such a chip")
    assert fault_of(raised.value) is ConnectionFault.UNREACHABLE
