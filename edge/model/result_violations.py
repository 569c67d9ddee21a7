"""States which limits a result violates, with what was measured: `torque 3.1 N·m below 8 N·m`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from edge.foundation.text import Text

_MEMBER: Final = "violations"
_NAMES: Final = {"torque": Text.of("torque"), "angle": Text.of("angle")}


def violation_texts(result: Any, levels: int) -> Iterator[Text]:
    """Yield each violated limit of a result and of its parts, to a number of levels."""
    if not levels or not isinstance(result, Mapping | list):
        return
    for name, inner in result.items() if isinstance(result, Mapping) else enumerate(result):
        if name == _MEMBER and isinstance(inner, Mapping):
            yield from (_text(str(measured), violation) for measured, violation in inner.items())
        else:
            yield from violation_texts(inner, levels - 1)


def quantity_name(name: str) -> str | Text:
    """Return the name of a measured value for people; one that is not known as it stands."""
    return _NAMES.get(name.casefold(), name)


def _text(name: str, violation: Any) -> Text:
    members = violation if isinstance(violation, Mapping) else {}
    measured, low, high = (_number(members.get(member)) for member in ("measured", "low", "high"))
    quantity, value = quantity_name(name), _worded(members.get("measured"))
    side = str(members.get("violation", "")).casefold()
    if side == "low" or (not side and measured is not None and low is not None and measured < low):
        if low is None:
            return Text.of("{name} {value} too low", name=quantity, value=value)
        return Text.of("{name} {value} below {limit}", name=quantity, value=value, limit=_worded(members["low"]))
    if side == "high" or (not side and measured is not None and high is not None and measured > high):
        if high is None:
            return Text.of("{name} {value} too high", name=quantity, value=value)
        return Text.of("{name} {value} above {limit}", name=quantity, value=value, limit=_worded(members["high"]))
    return Text.of("{name} {value} out of limits", name=quantity, value=value)


def _number(quantity: Any) -> float | None:
    value = quantity.get("value") if isinstance(quantity, Mapping) else quantity
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _worded(quantity: Any) -> str:
    """Return a value with its unit; empty without one."""
    number = _number(quantity)
    if number is None:
        return ""
    unit = str(quantity.get("unit") or "") if isinstance(quantity, Mapping) else ""
    return f"{number:.5g} {unit}".rstrip()
