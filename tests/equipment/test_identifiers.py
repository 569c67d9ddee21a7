"""Identifiers are texts: any other value refuses the command before a device is asked for anything."""

from typing import Any

import pytest
from msgspec.structs import replace

from edge.equipment.identifiers import identifier, validate_identifiers, validate_named_identifiers
from edge.foundation.errors import Refused
from tests.equipment.contract import WORK

NO_TEXTS = [7, 0, 1.5, True, False, [], ["V1"], {"vin": "V1"}]


@pytest.mark.parametrize("value", NO_TEXTS)
def test_identifier_that_is_not_a_text_is_refused(value: Any) -> None:
    command = replace(WORK, parameters={"vin": value})
    with pytest.raises(Refused, match="the parameter vin has to be a text, not "):
        validate_identifiers(command, ("part_id", "vin"))
    assert identifier(command, "vin") == ""


@pytest.mark.parametrize(("parameters", "found"), [({}, ""), ({"vin": None}, ""), ({"vin": " V1 "}, "V1")])
def test_absent_identifier_is_empty(parameters: dict[str, Any], found: str) -> None:
    command = replace(WORK, parameters=parameters)
    validate_identifiers(command, ("vin",))
    assert identifier(command, "vin") == found


@pytest.mark.parametrize("value", [1.5, True, ["R-7"], {"a": "b"}])
def test_named_identifier_of_another_type_is_refused(value: Any) -> None:
    command = replace(WORK, parameters={"identifiers": {"Rotor": value}})
    with pytest.raises(Refused, match="Rotor of the parameter identifiers has to be a text"):
        validate_named_identifiers(command, "identifiers")


@pytest.mark.parametrize("identifiers", [{}, {"Rotor": "R-7"}, {"Cell": 7}, {"None": None}])
def test_named_identifiers_are_texts_or_whole_numbers(identifiers: dict[str, Any]) -> None:
    validate_named_identifiers(replace(WORK, parameters={"identifiers": identifiers}), "identifiers")


def test_identifiers_that_are_not_an_object_are_refused() -> None:
    with pytest.raises(Refused, match="has to be an object"):
        validate_named_identifiers(replace(WORK, parameters={"identifiers": "R-7"}), "identifiers")
