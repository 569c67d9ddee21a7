"""Results and commands of Open Protocol as the ledger of results takes them."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec
from msgspec import Struct

from edge.equipment.result_ledger import SINGLE, Identity, Program, ReportedResult, ResultClaim
from edge.features.openprotocol.conversion import (
    TighteningResult,
    identifier_of,
    instant_of,
    is_batch,
    is_last_of_batch,
    lacking,
    number_of,
)
from edge.features.openprotocol.protocol.mids import Mid
from edge.station.equipment import Command

_ENVELOPE = frozenset({"mid", "revision", "station", "spindle", "received", "kept", "confirmed"})


def claim_of(command: Command, identifier: str = "") -> ResultClaim:
    """Return what a command expects of its results; with `identifier`, they have to have it where they have one."""
    numbers = {kind: number_of(command, kind) for kind in ("parameter_set", "job")}
    program = {kind: frozenset({str(number)}) for kind, number in numbers.items() if number is not None}
    program |= {"identifier": frozenset({identifier})} if identifier else {}
    return ResultClaim(command.command_id, program, "batch" if is_batch(command) else "single")


def mark_of(command: Command, correlation: str) -> str:
    """Return the identifier by which the result of a command is recognized; empty where none is."""
    return identifier_of(command, correlation) if correlation == "mark" else ""


def reported(
    result: TighteningResult, marks: Mapping[str, str], *, correlation: str, origin: tuple[int, int] = (0, 0)
) -> ReportedResult:
    """Return a result for the ledger; one that the controller sent by itself has the second when it was received.

    `origin` are the station and the spindle in the header of the greeting: those of the connection.
    """
    identifier = str(result.get("identifier") or "")
    is_mark = correlation == "mark"
    received = result.get("received")
    return ReportedResult(
        payload=result,
        result_id=str(result.get("result") or 0),
        sequence=result.get("result") or 0,
        instant=instant_of(result),
        measured=(result.get("torque"), result.get("angle")),
        identifier=identifier if is_mark else "",
        command_id=marks.get(identifier) if is_mark else None,
        program=_program_of(result),
        completes=SINGLE | {"batch"} if is_last_of_batch(result) else SINGLE,
        frame="" if received is None else _digest(result),
        received=received or 0.0,
        is_foreign=_is_foreign(result, *origin),
    )


def _program_of(result: TighteningResult) -> Program:
    program = {"parameter_set": result.get("parameter_set"), "job": result.get("job") or None}
    program |= {"identifier": result.get("identifier") or None}
    return {kind: frozenset({str(name)}) for kind, name in program.items() if name is not None}


def _is_foreign(result: TighteningResult, station: int, spindle: int) -> bool:
    """Return whether another station or spindle than that of the connection made a result; a blank is the first."""
    is_system = result.get("mid") == Mid.SPINDLES_RESULT
    is_of_station = (result.get("station") or 1) == (station or 1)
    return not is_of_station or (not is_system and (result.get("spindle") or 1) != (spindle or 1))


def _digest(result: TighteningResult) -> str:
    """Return the digest of a frame: equal for equal fields."""
    fields = {name: value for name, value in result.items() if name not in _ENVELOPE}
    origin = [result.get(name) or 0 for name in ("mid", "revision", "station", "spindle")]
    return hashlib.sha256(msgspec.json.encode([origin, sorted(fields.items())])).hexdigest()[:16]


def batch_of(reports: Iterable[ReportedResult]) -> list[ReportedResult]:
    """Return the results of a batch in their order, without those after its end; all of them while it lacks some."""
    ordered = sorted(reports, key=lambda reported_result: reported_result.sequence)
    ended = (ordered[:count] for count, report in enumerate(ordered, 1) if "batch" in report.completes)
    return next((parts for parts in ended if not lacking([part.payload for part in parts])), ordered)


class RememberedResult(Struct, frozen=True, omit_defaults=True):
    """A result without its payload, with the command that it was kept for; one that was durable has none."""

    sequence: int = 0
    instant: datetime | None = None
    measured: tuple[float | None, ...] = ()
    identifier: str = ""
    frame: str = ""
    command_id: str = ""
    classification: str = ""

    @property
    def key(self) -> str | Identity:
        """What distinguishes the result from others."""
        return self.frame or self.report.identity

    @property
    def report(self) -> ReportedResult:
        """The result for the ledger."""
        return ReportedResult(
            payload=MappingProxyType({}),
            result_id=str(self.sequence),
            sequence=self.sequence,
            instant=self.instant,
            measured=self.measured,
            identifier=self.identifier,
            frame=self.frame,
        )


class ResultMemory(Struct, frozen=True, omit_defaults=True):
    """What survives a restart: the number up to which no result is missing, the last result, and those not settled."""

    number: int | None = None
    last: RememberedResult | None = None
    unsettled: tuple[RememberedResult, ...] = ()


def remembered(report: ReportedResult, command_id: str = "", classification: str = "") -> RememberedResult:
    """Return a result as it is remembered, with the command that it is kept for and what this expects."""
    return RememberedResult(
        report.sequence,
        report.instant,
        tuple(value if isinstance(value, int | float) else None for value in report.measured),
        report.identifier,
        report.frame,
        command_id,
        classification,
    )


def decode_memory(text: str) -> ResultMemory:
    """Decode what survived a restart; nothing is known from a text that is damaged or of a later release."""
    try:
        return msgspec.json.decode(text, type=ResultMemory) if text else ResultMemory()
    except msgspec.DecodeError:
        return ResultMemory()
