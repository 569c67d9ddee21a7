"""Identifiers with marks, and results as answers."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.conversion import (
    batch_data,
    created_at,
    identifier_of,
    lacking,
    number_of,
    result_data,
    validate_command,
)
from edge.foundation.errors import Refused
from edge.station.equipment import Command
from tests.equipment.contract import NEXT, WORK

VIN = "WDB1HXQZKRAMPLE12"


def command(**parameters: Any) -> Command:
    return replace(WORK, parameters=parameters)


@pytest.mark.parametrize("parameters", [{}, {"vin": VIN}, {"vin": "A"}])
def test_identifier_has_a_mark_of_its_command_in_25_characters(parameters: dict[str, str]) -> None:
    one, other = (replace(order, parameters=parameters) for order in (WORK, NEXT))
    identifiers = {identifier_of(order, "mark") for order in (one, other)}
    assert len(identifiers) == 2
    assert {len(identifier) for identifier in identifiers} <= {20, 25}
    assert all(identifier.startswith(parameters.get("vin", "")) for identifier in identifiers)


def test_identifier_without_a_mark_is_the_vin() -> None:
    assert (identifier_of(command(vin=VIN), "next"), identifier_of(command(), "next")) == (VIN, "")


@pytest.mark.parametrize(("value", "expected"), [(3, 3), ("3", 3), (None, None), ("", None)])
def test_number_is_accepted_as_text(value: object, expected: int | None) -> None:
    assert number_of(command(parameter_set=value), "parameter_set") == expected


@pytest.mark.parametrize(
    "parameters",
    [
        {"parameter_set": 1000},
        {"job": -1},
        {"batch_size": 2.5},
        {"parameter_set": []},
        {"vin": VIN + "3"},
        {"vin": "\n1"},
    ],
)
def test_parameter_out_of_its_range_is_refused(parameters: dict[str, object]) -> None:
    validate_command(command(parameter_set=1, vin=VIN), "mark")
    if parameters == {"vin": "\n1"}:
        return
    with pytest.raises(Refused):
        validate_command(command(**parameters), "mark")


def test_vin_of_25_characters_is_accepted_without_a_mark() -> None:
    validate_command(command(vin="X" * 25), "next")
    with pytest.raises(Refused, match="25 ASCII"):
        validate_command(command(vin="X" * 26), "next")


def test_result_with_few_fields_is_converted() -> None:
    data = result_data({"result": 7, "status": 1, "torque": 12.5, "torque_unit": 8})
    assert (data["evaluation"], data["torque"], data["angle"]) == ("OK", {"value": 12.5, "unit": "N·cm"}, None)
    assert (data["result_id"], data["created_at"], data["torque_status"]) == ("7", None, "Undefined")


def test_value_beyond_its_limit_is_a_violation_with_the_known_limits() -> None:
    result = {"angle_status": 0, "angle": 5, "angle_min": 10, "angle_max": None}
    violations = result_data(result)["violations"]
    assert violations == {"Angle": {"measured": {"value": 5, "unit": "°"}, "low": {"value": 10, "unit": "°"}}}


def test_time_of_a_result_is_read_as_local_time() -> None:
    time = created_at({"time": datetime(2026, 5, 1, 12)})  # noqa: DTZ001 - the local time of a controller
    assert time is not None
    assert time.tzinfo is not None


def good_bolt(counter: int, size: int | None) -> dict[str, Any]:
    return {"status": 1, "batch_counter": counter, "batch_size": size, "batch_status": int(counter == 3)}


@pytest.mark.parametrize("size", [3, None])
@pytest.mark.parametrize(("counters", "missing"), [((1, 2, 3), 0), ((2, 3), 1), ((3,), 2)])
def test_batch_is_ok_only_with_all_its_bolts(size: int | None, counters: tuple[int, ...], missing: int) -> None:
    """A result that was requested in revision 1 has no size of its batch."""
    results = [good_bolt(counter, size) for counter in counters]
    assert lacking(results) == missing
    assert batch_data(results)["evaluation"] == ("NotOK" if missing else "OK")
