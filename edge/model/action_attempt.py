"""The attempts of the actions of a job, and the parameters in which a job response shows attempts and results."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from edge.model.engineering_unit import engineering_unit
from edge.model.isa95 import LocalizedText, Parameter

ATTEMPTS_ID = "Attempts"

_MEASURED = frozenset({"value", "unit"})
_MEASURED_FURTHER = _MEASURED | {"description"}


class ActionAttempt(msgspec.Struct, frozen=True, array_like=True):
    """One attempt of an action; instants are milliseconds since the epoch.

    `late` says that the result came when no command waited for it. Stored as an array in this order.
    """

    id: str
    state: str
    started_at: int | None
    ended_at: int | None
    error: str | None = None
    resolved_by: str = ""
    late: bool = False
    result: Any = None


def attempts_parameter(attempts: Sequence[ActionAttempt]) -> Parameter:
    """Return the parameter `Attempts` of a job response."""
    return Parameter(id=ATTEMPTS_ID, subparameters=tuple(map(_attempt_parameter, attempts)))


def _attempt_parameter(each: ActionAttempt) -> Parameter:
    facts: dict[str, object] = {"state": each.state}
    if each.late:
        facts["late"] = True
    facts |= {name: _instant(at) for name, at in (("start", each.started_at), ("end", each.ended_at)) if at is not None}
    facts |= {name: text for name, text in (("error", each.error), ("resolved_by", each.resolved_by)) if text}
    parameters = [Parameter(id=name, value=fact) for name, fact in facts.items()]
    if each.result is not None:
        parameters.append(result_parameter("result", each.result))
    return Parameter(id=each.id, subparameters=tuple(parameters))


def _instant(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def result_parameter(name: str, value: object) -> Parameter:
    """Return a result as a parameter; `{"value": 85.2, "unit": "Nm"}` becomes a value with its engineering unit."""
    if not isinstance(value, dict):
        return Parameter(id=name, value=value)
    if _MEASURED <= value.keys() <= _MEASURED_FURTHER and isinstance(value["unit"], str):
        text = value.get("description")
        return Parameter(
            id=name,
            value=value["value"],
            description=(LocalizedText(text=text),) if isinstance(text, str) else None,
            engineering_units=engineering_unit(value["unit"]),
        )
    return Parameter(id=name, subparameters=tuple(result_parameter(str(key), each) for key, each in value.items()))
