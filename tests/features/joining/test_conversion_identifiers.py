"""An identifier that is not a text refuses the command before the controller is asked for anything."""

from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.joining.conversion import validate_command
from edge.foundation.errors import Refused
from tests.equipment.contract import WORK
from tests.equipment.test_identifiers import NO_TEXTS


@pytest.mark.parametrize("value", NO_TEXTS)
def test_identifier_that_is_not_a_text_is_refused(value: Any) -> None:
    command = replace(WORK, parameters={"vin": value})
    with pytest.raises(Refused, match="the parameter vin has to be a text"):
        validate_command(command)
