"""Differences between the makes of controllers."""

from edge.features.openprotocol.makes import MAKES, make_of
from edge.features.openprotocol.protocol.result_fields import LIGHT_REVISION


def test_make_is_found_by_its_supplier_code() -> None:
    assert make_of({"supplier": "ACT"}).name == "Atlas Copco"
    assert make_of({"supplier": "GHM"}).result_revisions == (LIGHT_REVISION,)


def test_unknown_supplier_gets_the_default() -> None:
    for controller in ({}, {"supplier": ""}, {"supplier": "XYZ"}):
        make = make_of(controller)
        assert (make.name, make.alarms, make.result_revisions[-1]) == ("unknown make", True, 1)


def test_keep_alive_interval_is_below_the_controller_timeout() -> None:
    assert all(0 < controller_make.keep_alive <= 7 for controller_make in MAKES.values())
