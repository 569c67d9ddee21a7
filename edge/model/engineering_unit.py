"""Engineering units by the symbols that equipment writes: EUInformation with the codes of UNECE Recommendation 20."""

from collections.abc import Mapping
from types import MappingProxyType

from edge.model.isa95 import EUInformation, LocalizedText

CEFACT = "http://www.opcfoundation.org/UA/units/un/cefact"
"""The namespace of the codes (OPC 10000-8, 5.6.4.3)."""

# Symbol, common code, name; then other spellings of the symbol.
_UNITS: tuple[tuple[str, ...], ...] = (
    ("N·m", "NU", "newton metre", "Nm"),
    ("cN·m", "J72", "centinewton metre", "cNm"),
    ("mN·m", "D83", "millinewton metre", "mNm"),
    ("kN·m", "B48", "kilonewton metre", "kNm"),
    ("lbf·ft", "M92", "pound-force foot", "ft·lbf"),
    ("N", "NEW", "newton"),
    ("kN", "B47", "kilonewton"),
    ("°", "DD", "degree [unit of angle]", "deg"),
    ("rad", "C81", "radian"),
    ("r/min", "RPM", "revolutions per minute", "rpm", "1/min"),
    ("°/s", "E96", "degree per second", "deg/s"),
    ("µm", "4H", "micrometre (micron)", "um"),
    ("mm", "MMT", "millimetre"),
    ("cm", "CMT", "centimetre"),
    ("m", "MTR", "metre"),
    ("in", "INH", "inch"),
    ("mm²", "MMK", "square millimetre", "mm2"),
    ("m²", "MTK", "square metre", "m2"),
    ("cm³", "CMQ", "cubic centimetre", "cm3"),
    ("m³", "MTQ", "cubic metre", "m3"),
    ("ml", "MLT", "millilitre", "mL"),
    ("l", "LTR", "litre", "L"),
    ("l/min", "L2", "litre per minute", "L/min"),
    ("mm/s", "C16", "millimetre per second"),
    ("m/s", "MTS", "metre per second"),
    ("m/min", "2X", "metre per minute"),
    ("µs", "B98", "microsecond", "us"),
    ("ms", "C26", "millisecond"),
    ("s", "SEC", "second [unit of time]"),
    ("min", "MIN", "minute [unit of time]"),
    ("h", "HUR", "hour"),
    ("d", "DAY", "day"),
    ("B", "AD", "byte"),
    ("MiB", "E63", "mebibyte"),
    ("mg", "MGM", "milligram"),
    ("g", "GRM", "gram"),
    ("kg", "KGM", "kilogram"),
    ("t", "TNE", "tonne (metric ton)"),
    ("Pa", "PAL", "pascal"),
    ("hPa", "A97", "hectopascal"),
    ("kPa", "KPA", "kilopascal"),
    ("MPa", "MPA", "megapascal"),
    ("mbar", "MBR", "millibar"),
    ("bar", "BAR", "bar [unit of pressure]"),
    ("lbf/in²", "PS", "pound-force per square inch", "psi"),
    ("N/mm²", "C56", "newton per square millimetre", "N/mm2"),
    ("°C", "CEL", "degree Celsius"),
    ("°F", "FAH", "degree Fahrenheit"),
    ("K", "KEL", "kelvin"),
    ("mV", "2Z", "millivolt"),
    ("V", "VLT", "volt"),
    ("kV", "KVT", "kilovolt"),
    ("mA", "4K", "milliampere"),
    ("A", "AMP", "ampere"),
    ("W", "WTT", "watt"),
    ("kW", "KWT", "kilowatt"),
    ("J", "JOU", "joule"),
    ("kJ", "KJO", "kilojoule"),
    ("W·h", "WHR", "watt hour", "Wh"),
    ("kW·h", "KWH", "kilowatt hour", "kWh"),
    ("Hz", "HTZ", "hertz"),
    ("kHz", "KHZ", "kilohertz"),
    ("\N{GREEK CAPITAL LETTER OMEGA}", "OHM", "ohm", "ohm"),
    ("%", "P1", "percent"),
    ("1", "C62", "one"),
    ("pcs", "H87", "piece"),
)


def _information(symbol: str, code: str, name: str) -> EUInformation:
    return EUInformation(
        namespace_uri=CEFACT,
        unit_id=int.from_bytes(code.encode()),
        display_name=LocalizedText(text=symbol),
        description=LocalizedText(text=name, locale="en"),
    )


def _normalize(symbol: str) -> str:
    """Return a symbol without dots and spaces, and with one of the two signs for micro and ohm."""
    return symbol.translate(_SPELLING)


_SPELLING = str.maketrans(
    {
        "·": None,
        "*": None,
        " ": None,
        "\N{GREEK SMALL LETTER MU}": "\N{MICRO SIGN}",
        "\N{OHM SIGN}": "\N{GREEK CAPITAL LETTER OMEGA}",
    }
)

UNITS: Mapping[str, EUInformation] = MappingProxyType(
    {
        _normalize(spelling): _information(symbol, code, name)
        for symbol, code, name, *others in _UNITS
        for spelling in (symbol, *others)
    }
)


_SYMBOLS: Mapping[str, str] = MappingProxyType({code: symbol for symbol, code, *_ in _UNITS})


def symbol_of(code: str) -> str:
    """Return the symbol of a code of UNECE Recommendation 20; the code itself where it is not known."""
    return _SYMBOLS.get(code, code)


def engineering_unit(symbol: str) -> EUInformation:
    """Return the unit of a symbol; an unknown unit keeps its symbol and has no code."""
    eu_information = UNITS.get(_normalize(symbol))
    return eu_information or EUInformation(display_name=LocalizedText(text=symbol))
