"""Results and commands of a joining system as the ledger of results takes them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from edge.equipment.result_ledger import Program, ReportedResult, ResultClaim
from edge.features.joining.conversion import (
    CLASSIFICATIONS,
    classification_of,
    classifications_of,
    command_id_of,
    entity_ids,
    measured_values,
    process,
    process_ids,
)
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.schema import Result
from edge.station.equipment import Command

# The null of OPC UA (OPC 10000-6, 5.2.2.5), its largest instant, and the null of many programs.
_NO_YEARS = frozenset({1, 1601, 9999})


def claim_of(command: Command, programs: JoiningPrograms) -> ResultClaim:
    """Return what a command expects of its results; a SelectionName is not compared: results do not have it."""
    ids = {value for field, value in process(command).items() if field != "SelectionName"}
    joint = {str(item) for item in [command.parameters.get("joint_id")] if item}
    classification = str(command.parameters.get("classification") or "")
    # The joinings of a batch may name its inner processes: only results of the same classification are compared.
    kinds = [classification] if classification else CLASSIFICATIONS
    program = {f"{kind} process": programs.names_of(ids) if ids else frozenset() for kind in kinds}
    program["name"] = frozenset({*process(command).values(), *joint})
    return ResultClaim(command.command_id, {kind: names for kind, names in program.items() if names}, classification)


def reported(result: Result, programs: JoiningPrograms) -> ReportedResult:
    """Return a result for the ledger. Its values belong to its identity only where it has no number and no time."""
    meta, command_id = result["ResultMetaData"], command_id_of(result)
    sequence, created = meta.get("SequenceNumber") or 0, meta.get("CreationTime")
    instant = created if isinstance(created, datetime) and created.year not in _NO_YEARS else None
    return ReportedResult(
        payload=result,
        result_id=meta["ResultId"] or "",
        sequence=sequence,
        instant=instant,
        measured=() if sequence or instant else measured_values(result),
        identifier=command_id or "",
        command_id=command_id,
        program=_program_of(meta, programs, has_command=command_id is not None),
        completes=classifications_of(result),
        size=len(msgspec.json.encode(result)),
    )


def _program_of(meta: Mapping[str, Any], programs: JoiningPrograms, *, has_command: bool) -> Program:
    """Return the process that a result names: by its entity, or by the name of a listed process.

    A result without a command is also compared by everything that it names.
    """
    name = str(meta.get("Name") or "")
    listed = {name} if name in programs.listed_names else set()
    classification = classification_of(meta)
    kinds = [classification] if classification else CLASSIFICATIONS
    program = {f"{kind} process": process_ids(meta) | listed for kind in kinds}
    program["name"] = set() if has_command else entity_ids(meta) | {name}
    return {kind: frozenset(names - {""}) for kind, names in program.items() if names - {""}}
