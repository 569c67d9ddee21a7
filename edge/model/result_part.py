"""The parts of a result: the joinings of a batch, the spindles of a tool, each with what was measured."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

MEMBER: Final = "results"
"""The member of a result that holds the results of its parts, by their names or in a list."""
MOST_PARTS: Final = 500
_LEVELS: Final = 4
_LONGEST: Final = 200


class MeasuredValue(Struct, frozen=True, kw_only=True):
    """A measured value of a part, such as its torque."""

    name: str
    value: str | int | float | bool
    unit: str = ""


class ResultPart(Struct, frozen=True, kw_only=True):
    """One part: its path in the result, such as `3` or `2.3`, its evaluation, and what was measured."""

    name: str
    evaluation: str
    measured: tuple[MeasuredValue, ...] = ()

    @property
    def text(self) -> str:
        """Return the part as one line: `3: OK, torque 85.2 N·m, angle 31 °`."""
        values = (f"{measured.name} {_rounded(measured.value)} {measured.unit}".rstrip() for measured in self.measured)
        return f"{self.name}: {', '.join(filter(None, (self.evaluation, *values))) or 'no values'}"


def _rounded(value: str | float) -> str | float:
    return round(value, 6) if isinstance(value, float) else value


def parts_of(result: object, most: int = MOST_PARTS) -> tuple[ResultPart, ...]:
    """Return the first parts of a result, parts of parts by their own path; none for a result without parts."""
    return tuple(part for part, _ in zip(_parts("", result, _LEVELS), range(most), strict=False))


def _parts(path: str, result: object, levels: int) -> Iterator[ResultPart]:
    if not levels or not isinstance(result, Mapping):
        return
    for key, part in _members(result.get(MEMBER)):
        name = f"{path}.{key}" if path else key
        if not isinstance(part, Mapping):
            continue
        if part.get(MEMBER):
            yield from _parts(name, part, levels - 1)
        else:
            yield ResultPart(name=name, evaluation=str(part.get("evaluation") or ""), measured=tuple(_measured(part)))


def _members(parts: object) -> Iterator[tuple[str, Any]]:
    match parts:
        case Mapping():
            yield from ((str(key), part) for key, part in parts.items())
        case list() | tuple():
            yield from ((str(number), part) for number, part in enumerate(parts, 1))
        case _:
            return


def _measured(part: Mapping[str, Any]) -> Iterator[MeasuredValue]:
    """Yield the values of a part that have a unit."""
    for name, found in part.items():
        match found:
            case {"value": str() | int() | float() as value, "unit": str(unit)}:
                shown = value[:_LONGEST] if isinstance(value, str) else value
                yield MeasuredValue(name=str(name)[:_LONGEST], value=shown, unit=unit[:_LONGEST])
            case _:
                pass
