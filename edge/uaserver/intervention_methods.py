"""The methods by which a person intervenes in a job: their arguments, and the signal that each makes."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from asyncua import ua

from edge.opcua.binary import DecodeError
from edge.opcua.variant_json import to_json
from edge.sfc.signal import Intervene, Resolution, Resolve
from edge.uaserver.method_roles import INTERVENE_METHODS, RESOLVE_METHOD
from edge.uaserver.own_types import argument, base

_TEXT = base(ua.VariantType.String)
_DATA_TYPE = ua.NodeId(ua.ObjectIds.BaseDataType)
_JOB = argument("JobOrderID", _TEXT, "The job order that runs.")
_REASON = argument("Reason", _TEXT, "What the person has seen; it is kept with the job.")
_STEP_OF_ACTION = argument("Step", _TEXT, "The step of the action; empty where it stands in one step only.")

INTERVENTION_METHODS: Mapping[str, tuple[str, tuple[ua.Argument, ...]]] = MappingProxyType(
    {
        RESOLVE_METHOD: (
            "Decide about an action whose outcome the equipment could not find out.",
            (
                _JOB,
                argument("Action", _TEXT, "The action of unknown outcome."),
                argument("Resolution", _TEXT, "It counts as `done` or `failed`; `repeat` sends its command again."),
                argument("Reason", _TEXT, "What the operator has seen; it is kept with the job."),
                argument("Data", _DATA_TYPE, "The result of an action that is done; null for none."),
            ),
        ),
        "RetryAction": (
            "Start an action again that failed, timed out, or whose outcome is unknown.",
            (_JOB, argument("Action", _TEXT, "The action to start again."), _STEP_OF_ACTION, _REASON),
        ),
        "SkipAction": (
            "Complete an action in place of its equipment.",
            (
                _JOB,
                argument("Action", _TEXT, "The action to complete."),
                _STEP_OF_ACTION,
                _REASON,
                argument("Data", _DATA_TYPE, "The result of the action; null for none."),
            ),
        ),
        "ForceTransition": (
            "Clear a transition, whatever its condition says.",
            (
                _JOB,
                argument("Step", _TEXT, "The active step to leave."),
                argument("Target", _TEXT, "The step to enter."),
                _REASON,
            ),
        ),
        "CompleteStep": (
            "Complete a step: its open actions end, and its transitions are tested.",
            (_JOB, argument("Step", _TEXT, "The active step."), _REASON),
        ),
    }
)
"""The description and the input arguments of each method."""


def intervention_signal(name: str, arguments: Sequence[Any], by: str) -> Resolve | Intervene:
    """Return the signal of a call; `arguments` are those after the job order."""
    match name, arguments:
        case "RetryAction", (action, step, reason):
            return Intervene(INTERVENE_METHODS[name], action=action, step=step, reason=reason, by=by)
        case "SkipAction", (action, step, reason, data):
            return Intervene(INTERVENE_METHODS[name], action=action, step=step, data=data, reason=reason, by=by)
        case "ForceTransition", (step, target, reason):
            return Intervene(INTERVENE_METHODS[name], step=step, target=target, reason=reason, by=by)
        case "CompleteStep", (step, reason):
            return Intervene(INTERVENE_METHODS[name], step=step, reason=reason, by=by)
        case _, (action, resolution, reason, data):
            return Resolve(action, resolution, data, reason, by)
        case _:
            raise ValueError(f"{name} has no such arguments")


def read_text(argument: ua.Variant) -> str:
    """Read a text; null is the empty text."""
    if argument.VariantType is not ua.VariantType.String or argument.is_array:
        raise DecodeError("it is not a text")
    return argument.Value or ""


def read_reason(argument: ua.Variant) -> str:
    """Read a reason, which must not be empty."""
    reason = read_text(argument)
    if not reason.strip():
        raise DecodeError("the reason is empty")
    return reason


def _resolution(argument: ua.Variant) -> Resolution:
    try:
        return Resolution(read_text(argument))
    except ValueError as error:
        raise DecodeError("the resolution is `done`, `failed` or `repeat`") from error


def _data(argument: ua.Variant) -> object:
    """Return a result as JSON; a text with a JSON object or array is decoded, as OPC UA has no type for objects."""
    value = to_json(argument)
    if isinstance(value, str) and value.startswith(("{", "[")):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(value)
    return value


INTERVENTION_ARGUMENTS: Mapping[str, Sequence[Callable[[ua.Variant], Any]]] = MappingProxyType(
    {
        RESOLVE_METHOD: (read_text, read_text, _resolution, read_reason, _data),
        "RetryAction": (read_text, read_text, read_text, read_reason),
        "SkipAction": (read_text, read_text, read_text, read_reason, _data),
        "ForceTransition": (read_text, read_text, read_text, read_reason),
        "CompleteStep": (read_text, read_text, read_reason),
    }
)
"""The argument readers of each method."""
