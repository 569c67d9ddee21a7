"""The station side of the equipment port under control of a test."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.equipment_traffic import TrafficKind
from edge.station.equipment import (
    Begin,
    Command,
    EquipmentAnswer,
    EquipmentEvent,
    LateResult,
    NotSent,
    OutcomeUnknown,
    Task,
)
from edge.store.dead_letters import RefusedMessage


class RecordingStation:
    """A station that records its calls; `failures` are raised before anything else."""

    def __init__(self) -> None:
        self.answers: list[EquipmentAnswer] = []
        self.events: list[EquipmentEvent] = []
        self.task: Task | None = None
        self.failures: list[Exception] = []
        self.begun: list[str] = []
        self.stops: list[tuple[str, str | None]] = []
        self.unanswered_stops = 0
        self.late_results: list[LateResult] = []
        self.unknown: list[OutcomeUnknown] = []
        self.refused: list[RefusedMessage] = []
        self.unanswered: list[Command] = []
        self.stopped_meanwhile: set[str] = set()
        self.open_stops, self.stored_results = set[str](), set[str]()
        self.unsolicited = set[str | None]()
        self.traffic: list[tuple[TrafficKind, Any]] = []
        self.repeated_starts = 0
        self.clock_ahead_ms = 0
        self.unconfirmed = ""
        """Why no start may leave."""
        self.refused_starts = 0
        self.disabled: set[str] = set()
        self.memory: dict[str, dict[str, str]] = {}
        self.files: dict[str, bytes] = {}

    async def begin(self, command_id: str) -> Begin:
        if self.failures:
            raise self.failures.pop()
        if command_id in self.stopped_meanwhile:
            return Begin.GONE
        if command_id in self.begun:
            return Begin.AGAIN
        self.begun.append(command_id)
        return Begin.NEW

    def now(self) -> int:
        """Return the instant of the jobs' clock: that of this machine, and what a test sets it ahead."""
        return now_ms() + self.clock_ahead_ms

    def withhold(self, command_id: str) -> None:
        if command_id in self.begun:
            self.begun.remove(command_id)

    async def permit_start(self) -> None:
        if self.unconfirmed:
            self.refused_starts += 1
            raise NotSent(self.unconfirmed)

    async def stopped(self, command_id: str, error: str | Text | None, *, is_answer: bool = True) -> None:
        self.unanswered_stops += not is_answer
        self.stops.append((command_id, None if error is None else str(error)))

    async def late(self, result: LateResult) -> None:
        if self.failures:
            raise self.failures.pop()
        self.late_results.append(result)

    async def admits(self, command_id: str | None) -> bool:
        return command_id not in self.unsolicited

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        if self.failures:
            raise self.failures.pop()
        if isinstance(answer, OutcomeUnknown):
            self.unknown.append(replace(answer, reason=str(answer.reason)))
        else:
            self.answers.append(replace(answer, error=answer.error and str(answer.error)))

    async def event(self, event: EquipmentEvent) -> Task | None:
        if self.failures:
            raise self.failures.pop()
        self.events.append(event)
        return self.task

    async def record_refusal(self, message: RefusedMessage) -> None:
        self.refused.append(message)

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> Sequence[Command]:
        if self.failures:
            raise self.failures.pop()
        # As in the store: a command keeps its begun mark.
        return [
            replace(command, begun=True) if command.command_id in self.begun else command
            for command in self.unanswered
            if command.scope in scopes and command.type_id in type_ids
        ]

    async def is_outstanding(self, command_id: str) -> bool:
        return command_id not in self.stopped_meanwhile

    async def has_result(self, command_id: str, result_id: str) -> bool:
        return result_id in self.stored_results

    async def has_open_stop(self, command_id: str) -> bool:
        return command_id in self.open_stops

    async def is_disabled_elsewhere(self, place: str) -> bool:
        return place in self.disabled

    async def keep_disabled(self, place: str, *, disabled: bool) -> None:
        (self.disabled.add if disabled else self.disabled.discard)(place)

    @property
    def gateway(self) -> str:
        """The name of the gateway."""
        return "edge"

    async def recall(self, equipment: str) -> Mapping[str, str]:
        return self.memory.get(equipment, {})

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        self.memory[equipment] = self.memory.get(equipment, {}) | dict(texts)

    async def store_file(self, command_id: str, parts: AsyncGenerator[bytes, None]) -> Mapping[str, Any]:
        try:
            async with aclosing(parts):
                self.files[command_id] = b"".join([part async for part in parts])
        except Refused as refusal:
            return {"error": refusal.message}
        return {"file": command_id, "size": len(self.files[command_id])}

    def record_repeated_start(self) -> None:
        self.repeated_starts += 1

    def report_traffic(self, what: TrafficKind, data: Any) -> None:
        self.traffic.append((what, data))

    def outcomes(self) -> dict[str, Any]:
        """Return the data, or the error, of the first answer to each command."""
        first: dict[str, Any] = {}
        for answer in self.answers:
            first.setdefault(answer.command_id, answer.error or answer.data)
        return first
