"""A unit is found by its usual spellings."""

import pytest

from edge.model.engineering_unit import CEFACT, UNITS, engineering_unit


@pytest.mark.parametrize(
    ("symbol", "code", "number", "shown"),
    [
        ("Nm", "NU", 20053, "N·m"),
        ("N·m", "NU", 20053, "N·m"),
        ("N*m", "NU", 20053, "N·m"),
        ("N m", "NU", 20053, "N·m"),
        ("deg", "DD", 17476, "°"),
        ("°C", "CEL", 4408652, "°C"),
        ("mm", "MMT", 5066068, "mm"),
        ("rpm", "RPM", 5394509, "r/min"),
        ("%", "P1", 20529, "%"),
        ("s", "SEC", 5457219, "s"),
        ("bar", "BAR", 4342098, "bar"),
        ("\N{GREEK SMALL LETTER MU}m", "4H", 13384, "\N{MICRO SIGN}m"),
        ("k\N{OHM SIGN}", "", -1, "k\N{OHM SIGN}"),
        ("\N{OHM SIGN}", "OHM", 5195853, "\N{GREEK CAPITAL LETTER OMEGA}"),
        ("furlong", "", -1, "furlong"),
        ("NM", "", -1, "NM"),
    ],
)
def test_symbol_resolves_to_the_code_of_its_unit(symbol: str, code: str, number: int, shown: str) -> None:
    unit = engineering_unit(symbol)
    assert unit.unit_id == number
    assert unit.namespace_uri == (CEFACT if code else "")
    assert unit.display_name
    assert unit.display_name.text == shown
    if code:
        assert number.to_bytes(3).lstrip(b"\0").decode() == code


def test_every_spelling_resolves_to_one_unit() -> None:
    codes = {unit.unit_id for unit in UNITS.values()}
    names = {unit.display_name.text for unit in UNITS.values() if unit.display_name}
    assert len(codes) == len(names)
