"""Parses GS1 element strings, as a scanner sends them of a GS1-128 or GS1 DataMatrix, into Application Identifiers.

The table and the rules are those of the GS1 General Specifications, sections 3.2 (identifiers), 5.4.3.2 (symbology
identifiers), 7.8.5 (predefined lengths), 7.9 (check digit) and 7.11 (character sets).
"""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

SEPARATOR = "\x1d"
"""FNC1 between two element strings, as a scanner transmits it."""

SYMBOLOGY_IDENTIFIERS = ("]C1", "]e0", "]d2", "]Q3", "]J1")
"""GS1-128, GS1 DataBar, GS1 DataMatrix, GS1 QR Code, GS1 DotCode."""

_FORMATS = {
    "00 8006 8017-8018 8026": "N18",
    "01-03 8001": "N14",
    "10 21-22 243 254 7020-7022 7240 710-717 8002 8012 420 4318": "X..20",
    "11-13 15-17 3100-3105 3110-3115 3120-3125 3130-3135 3140-3145 3150-3155 3160-3165 8005 7006 4326": "N6",
    "3200-3205 3210-3215 3220-3225 3230-3235 3240-3245 3250-3255 3260-3265 3270-3275 3280-3285 3290-3295": "N6",
    "3300-3305 3310-3315 3320-3325 3330-3335 3340-3345 3350-3355 3360-3365 3370-3375": "N6",
    "3400-3405 3410-3415 3420-3425 3430-3435 3440-3445 3450-3455 3460-3465 3470-3475 3480-3485 3490-3495": "N6",
    "3500-3505 3510-3515 3520-3525 3530-3535 3540-3545 3550-3555 3560-3565 3570-3575": "N6",
    "3600-3605 3610-3615 3620-3625 3630-3635 3640-3645 3650-3655 3660-3665 3670-3675 3680-3685 3690-3695": "N6",
    "3950-3955": "N6",
    "20 7241": "N2",
    "235": "X..28",
    "240-241 250-251 400-401 403 4308 4319 7002 7023 8004 90": "X..30",
    "242": "N..6",
    "253": "N13 [X..17]",
    "255": "N13 [N..12]",
    "30 37": "N..8",
    "3900-3909 3920-3929": "N..15",
    "3910-3919 3930-3939": "N3 N..15",
    "3940-3943 8111": "N4",
    "402": "N17",
    "410-417 7001": "N13",
    "421": "N3 X..9",
    "422 424 426": "N3",
    "423 425": "N3 [N3] [N3] [N3] [N3]",
    "427 7008": "X..3",
    "4300-4301 4310-4311 4320": "X..35",
    "4302-4306 4312-4316 7257 8110 8112 8200": "X..70",
    "4307 4317": "X2",
    "4309": "N20",
    "4321-4323 7252": "N1",
    "4324-4325 7003": "N10",
    "4330-4333": "N6 [X1]",
    "7004": "N..4",
    "7005": "X..12",
    "7007": "N6 [N6]",
    "7009 7255": "X..10",
    "7010": "X..2",
    "7011": "N6 [N4]",
    "7030-7039": "N3 X..27",
    "7040": "N1 X3",
    "7041": "X..4",
    "7230-7239": "X2 X..28",
    "7242 8013-8014 8020": "X..25",
    "7250": "N8",
    "7251": "N12",
    "7253-7254 7259": "X..40",
    "7256 91-99": "X..90",
    "7258": "X3",
    "8003": "N14 [X..16]",
    "8007": "X..34",
    "8008": "N8 [N2] [N2]",
    "8009": "X..50",
    "8010": "Y..30",
    "8011": "N..12",
    "8019": "N..10",
    "8030": "Z..90",
    "8040-8041": "N15",
    "8042": "N32",
    "8043": "N18 [N..2]",
}
"""The format of each Application Identifier, in the notation of the specification; a range is inclusive."""

_PREDEFINED_LENGTHS = frozenset(f"{number:02}" for number in (*range(5), *range(11, 21), 31, 32, 33, 34, 35, 36, 41))
"""The first two digits of identifiers whose element strings need no separator after them."""

_KEY_DIGITS = {
    "00 8017-8018": 18,
    "402": 17,
    "01-03 8003 8006 8026": 14,
    "253 255 410-417": 13,
}
"""The number of leading digits of a GS1 key, the last of them its check digit."""

_CHARACTERS = {
    "N": "[0-9]",
    "X": r"""[!"%&'()*+,\-./0-9:;<=>?A-Z_a-z]""",
    "Y": r"[#\-/0-9A-Z]",
    "Z": r"[\-0-9A-Z_a-z=]",
}


class NotGs1Error(ValueError):
    """A text that is not a GS1 element string; the message states the reason."""


class ApplicationIdentifier(Struct, frozen=True):
    """An Application Identifier: the form of its value, and whether this ends without a separator."""

    form: re.Pattern[str]
    is_predefined: bool
    key_digits: int


def parse_element_strings(code: str) -> dict[str, str]:
    """Return the values of a code by their Application Identifiers, in the order of the code.

    Symbology identifiers and separators at the beginning or after a predefined length are skipped. Raises NotGs1Error.

    >>> parse_element_strings("010950110153000317261231" + "10AB-123")
    {'01': '09501101530003', '17': '261231', '10': 'AB-123'}
    """
    rest = code[3:] if code.startswith(SYMBOLOGY_IDENTIFIERS) else code
    rest = rest.removeprefix(SEPARATOR)
    if not rest:
        raise NotGs1Error("the code is empty")
    values: dict[str, str] = {}
    while rest:
        number, identifier = _identifier_at(rest)
        value, rest = _value_at(rest[len(number) :], number, identifier)
        if values.setdefault(number, value) != value:
            raise NotGs1Error(f"({number}) comes twice with different values")
    return values


def _identifier_at(text: str) -> tuple[str, ApplicationIdentifier]:
    identifiers = application_identifiers()
    for length in (2, 3, 4):
        if (number := text[:length]) in identifiers:
            return number, identifiers[number]
    raise NotGs1Error(f"there is no Application Identifier at {text[:4]!r}")


def _value_at(text: str, number: str, identifier: ApplicationIdentifier) -> tuple[str, str]:
    """Return the value at the beginning of a text, and the text after it and its separator."""
    if identifier.is_predefined:
        match = identifier.form.match(text)
        end = match.end() if match else 0
        value, rest = text[:end], text[end:].removeprefix(SEPARATOR)
    else:
        value, _, rest = text.partition(SEPARATOR)
        match = identifier.form.fullmatch(value)
    if match is None:
        raise NotGs1Error(f"({number}) has a value of another form: {text.partition(SEPARATOR)[0]!r}")
    if identifier.key_digits and not _is_checked(value[: identifier.key_digits]):
        raise NotGs1Error(f"({number}) has a wrong check digit: {value!r}")
    return value, rest


def _is_checked(digits: str) -> bool:
    """Return whether the last digit is the check digit: the weights are 3 and 1 in turn, from the right."""
    numbers = [int(digit) for digit in reversed(digits)]
    return (sum(numbers[::2]) + 3 * sum(numbers[1::2])) % 10 == 0


@cache
def application_identifiers() -> dict[str, ApplicationIdentifier]:
    """Return each Application Identifier by its number."""
    key_digits = {number: digits for numbers, digits in _KEY_DIGITS.items() for number in _numbers(numbers)}
    return {
        number: ApplicationIdentifier(form, number[:2] in _PREDEFINED_LENGTHS, key_digits.get(number, 0))
        for numbers, notation in _FORMATS.items()
        for form in (_form(notation),)
        for number in _numbers(numbers)
    }


def _numbers(ranges: str) -> Iterator[str]:
    """Yield the numbers of ranges such as `01-03 8006`."""
    for span in ranges.split():
        first, _, last = span.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield f"{number:0{len(first)}}"


def _form(notation: str) -> re.Pattern[str]:
    """Return the regular expression of a format such as `N3 [N..12]`."""
    parts = []
    for part in notation.split():
        characters, _, most = part.strip("[]").rpartition("..")
        length = f"{{1,{most}}}" if characters else f"{{{most[1:]}}}"
        pattern = f"{_CHARACTERS[(characters or most)[0]]}{length}"
        parts.append(f"(?:{pattern})?" if part.startswith("[") else pattern)
    return re.compile("".join(parts))
