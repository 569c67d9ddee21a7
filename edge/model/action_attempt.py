"""The attempts of the actions of a job, and the parameters in which a job response shows attempts and results."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from edge.model.engineering_unit import engineering_unit
from edge.model.instant import utc
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


def _attempt_parameter(action_attempt: ActionAttempt) -> Parameter:
    parameters = [Parameter(id="state", value=action_attempt.state)]
    if action_attempt.late:
        parameters.append(Parameter(id="late", value=True))
    for name, at in (("start", action_attempt.started_at), ("end", action_attempt.ended_at)):
        if at is not None:
            parameters.append(Parameter(id=name, value=_instant(at)))
    for name, text in (("error", action_attempt.error), ("resolved_by", action_attempt.resolved_by)):
        if text:
            parameters.append(Parameter(id=name, value=text))
    if action_attempt.result is not None:
        parameters.append(result_parameter("result", action_attempt.result))
    return Parameter(id=action_attempt.id, subparameters=tuple(parameters))


def _instant(milliseconds: int) -> str:
    second, rest = divmod(milliseconds, 1000)
    return f"{_second(second)}.{rest:03d}+00:00"


@functools.lru_cache(maxsize=64)
def _second(second: int) -> str:
    """Return a second as text; the attempts of a job have few of them."""
    return utc(second * 1000).replace(tzinfo=None).isoformat()


def result_parameter(name: str, value: object) -> Parameter:
    """Return a result as a parameter; `{"value": 85.2, "unit": "Nm"}` becomes a value with its engineering unit."""
    if not isinstance(value, dict):
        return Parameter(id=name, value=value)
    if isinstance(value.get("unit"), str) and _MEASURED <= value.keys() <= _MEASURED_FURTHER:
        text = value.get("description")
        return Parameter(
            id=name,
            value=value["value"],
            description=(LocalizedText(text=text),) if isinstance(text, str) else None,
            engineering_units=engineering_unit(value["unit"]),
        )
    return Parameter(id=name, subparameters=tuple(result_parameter(str(key), item) for key, item in value.items()))


_PARAMETERS: Final = ("joining_process_id", "selection_name")


def joining_process_of(parameters: Mapping[str, Any]) -> str | None:
    """Return the joining process that parameters name; None when they name none."""
    return next((str(parameters[name]) for name in _PARAMETERS if parameters.get(name)), None)
