"""Converts commands to data of OPC 40100-1, and results of a camera to answers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.station.equipment import Command

_RESULT_STATES = {0: "Undefined", 1: "Completed", 2: "Processing", 3: "Aborted", 4: "Failed"}
_COMPLETED = 1


class _Identifier(Struct):
    Id: str | None = None


class _VisionResult(Struct):
    """The fields that are read from a result, whether reported or requested; its ids are read before."""

    ResultId: _Identifier | None = None
    PartId: _Identifier | None = None
    ExternalRecipeId: _Identifier | None = None
    HasTransferableDataOnFile: bool | None = None
    IsPartial: bool | None = None
    IsSimulated: bool | None = None
    ResultState: int | None = None
    CreationTime: datetime | None = None
    ResultContent: Any = None


def recipe_of(command: Command) -> dict[str, str] | None:
    """Return the recipe that a command names; None when it names none."""
    recipe = command.parameters.get("recipe_id")
    return {"Id": str(recipe)} if recipe else None


def meas_id_of(command: Command) -> str:
    """Return the MeasId for the job of a command: the id of the command, unless its parameters name one."""
    return str(command.parameters.get("meas_id", command.command_id))


def parse_result(raw: Any) -> Mapping[str, Any]:
    """Return data of a camera as a validated result. Raises Refused(`unreadable`) when it is not a valid result.

    One of JobId and MeasId says whose result it is: the other one may be missing.
    """
    try:
        msgspec.convert(raw, _VisionResult)
    except msgspec.ValidationError as error:
        raise Refused("unreadable", Text.of("a result is not as OPC 40100-1 has it: {reason}", reason=error)) from error
    ids = {field: raw_id(raw.get(field)) for field in ("JobId", "MeasId")}
    if not any(ids.values()):
        raise Refused("unreadable", "a result is not as OPC 40100-1 has it: it has neither JobId nor MeasId")
    return {**raw, **{field: identifier and {"Id": identifier} for field, identifier in ids.items()}}


def raw_id(raw: Any) -> str | None:
    """Return the text of an id that a camera sends; None when it has none, or none that can be read."""
    found = raw.get("Id") if isinstance(raw, Mapping) else None
    return found if isinstance(found, str) and found else None


def id_of(result: Mapping[str, Any], field: str) -> str | None:
    """Return the id in a field of a result."""
    found: str | None = (result.get(field) or {}).get("Id")
    return found


def offers_file(result: Mapping[str, Any]) -> bool:
    """Return whether the camera offers a file with a result."""
    return bool(result.get("HasTransferableDataOnFile")) and bool(id_of(result, "ResultId"))


def is_completed(result: Mapping[str, Any]) -> bool:
    """Return whether the job of a result is completed."""
    return (result.get("ResultState") or 0) == _COMPLETED


def answer_data(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as plain JSON; raises Refused when its job is not completed."""
    state: int = result.get("ResultState") or 0
    if state != _COMPLETED:
        raise Refused(
            "device",
            Text.of("the result has the state {result_states}", result_states=_RESULT_STATES.get(state, state)),
        )
    named = {"job_id": "JobId", "meas_id": "MeasId", "part_id": "PartId", "recipe_id": "ExternalRecipeId"}
    return {
        "result_state": _RESULT_STATES[state],
        "result_id": id_of(result, "ResultId"),
        **{name: id_of(result, field) for name, field in named.items()},
        "is_simulated": bool(result.get("IsSimulated")),
        "created_at": result.get("CreationTime"),
        "content": result.get("ResultContent") or [],
    }
