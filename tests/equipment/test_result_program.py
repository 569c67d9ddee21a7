"""The program of a result is compared with the commanded one."""

import pytest

from edge.equipment.result_program import Program, difference, fits

SET_3: Program = {"parameter_set": frozenset({"3"})}
SET_4: Program = {"parameter_set": frozenset({"4"})}


@pytest.mark.parametrize(
    ("commanded", "reported", "fitting"),
    [
        ({}, SET_3, True),
        (SET_3, {}, True),
        (SET_3, SET_3, True),
        (SET_3, SET_4, False),
        (SET_3, {"job": frozenset({"3"})}, True),
        ({**SET_3, "identifier": frozenset({"V"})}, {**SET_3, "identifier": frozenset({"W"})}, False),
    ],
)
def test_program_fits_where_both_state_the_same_kind(commanded: Program, reported: Program, *, fitting: bool) -> None:
    assert fits(commanded, reported) is fitting


def test_difference_names_what_was_commanded() -> None:
    assert difference(SET_3, SET_4) == "parameter set 4 instead of 3"
