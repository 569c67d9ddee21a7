"""Polls the health of the equipment and writes reports of it to the store for other processes."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog
from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, Latency
from edge.foundation.listeners import notify_async
from edge.foundation.text import Text, join_texts
from edge.foundation.ticks import next_tick
from edge.model.equipment_connection import NOT_CONNECTED_YET
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, OpenSafing
from edge.station.active_runs import ActiveRuns
from edge.station.equipment import EquipmentPort, programs_of
from edge.station.safing_tries import INTERVALS_S, problem_of
from edge.store import equipment_memory
from edge.store.client import Store

ROUND_TRIP_S = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds of command round trips in seconds, from a lamp to a batch of joinings."""


class EquipmentStats:
    """Counts for people and their monitoring; no decision uses them. Instants are milliseconds since the epoch."""

    def __init__(self) -> None:
        self.last_seen: int | None = None
        self.answered = 0
        self.failed = 0
        self.ok = 0
        self.not_ok = 0
        self.repeated_starts = 0
        self.unknown = 0
        self.late = 0
        self.unsolicited = 0
        self.declined_stops = 0
        self.lost_traces = 0
        self.lost_since_stored = 0
        """The traces and files that were lost since the last one was stored."""
        self.skipped_since_answer = 0
        """The results and messages beyond a size limit since the last command that the equipment carried out."""
        self.ignored = 0
        self.refused = 0
        self.last_error: str | Text = ""
        self.last_late: str | Text = ""
        self.last_late_at: int | None = None
        self.round_trips = Latency(ROUND_TRIP_S)
        """From the decision to send a command until its answer has arrived."""

    def record_contact(self, at: int) -> None:
        """Record a message, a connection or a disconnection."""
        self.last_seen = at

    def record_answer(self, at: int, sent_at: int | None, error: str | Text | None) -> None:
        """Record the answer to a command sent at `sent_at`; None where this process does not know the instant."""
        self.answered += 1
        if sent_at is not None:
            self.round_trips.record(max(0, at - sent_at) / 1000)
        if error is not None:
            self.failed += 1
            self.last_error = error
        else:
            self.skipped_since_answer = 0

    def record_result(self, data: object) -> None:
        """Record the evaluation of a result, where the equipment reports one: `OK` or `NotOK`."""
        match data:
            case {"evaluation": "OK"}:
                self.ok += 1
            case {"evaluation": "NotOK"}:
                self.not_ok += 1
            case _:
                pass

    def record_repeated_start(self) -> None:
        """Record a start that the equipment may have received before."""
        self.repeated_starts += 1

    def record_unknown(self, reason: str | Text) -> None:
        """Record a command whose outcome cannot be found."""
        self.unknown += 1
        self.last_error = Text.of("outcome unknown: {reason}", reason=reason)

    def record_late(self, at: int, reason: str | Text) -> None:
        """Record a result that no command waits for, and why it does not count."""
        self.late += 1
        self.last_late, self.last_late_at = reason, at

    def record_unsolicited(self) -> None:
        """Record an answer that no command waits for, and that is not kept."""
        self.unsolicited += 1

    def record_declined_stop(self, reason: str | Text) -> None:
        """Record a stop or reset that the equipment did not carry out."""
        self.declined_stops += 1
        self.last_error = Text.of("not stopped: {reason}", reason=reason)

    def record_traces(self, stored: int, lost: Sequence[str]) -> None:
        """Record how many traces and files of a result are stored, and why others are lost."""
        self.lost_traces += len(lost)
        if stored:
            self.lost_since_stored = 0
        self.lost_since_stored += len(lost)
        if lost:
            self.last_error = Text.of("trace not stored: {reason}", reason=lost[-1])

    def record_ignored(self) -> None:
        """Record a repeated answer, an answer to an unknown command, or an event that no job waits for."""
        self.ignored += 1

    def record_refused(self, kind: str, reason: str) -> None:
        """Record a refused message; one of the kind `too_large` is also counted until the next carried out command."""
        self.refused += 1
        self.skipped_since_answer += kind == "too_large"
        self.last_error = reason


logger = structlog.get_logger(__name__)

POLL_INTERVAL_S = 5.0
_FIRST_POLLS_S = 0.5
"""The interval of the polls until the first tries to connect have ended: they take less than one of the others."""
_FIRST_TRY_MS = 1000 * INTERVALS_S[0]
CONFIRMED_WITHIN_MS = 10_000
"""The time within which equipment must confirm a stop or a reset, in milliseconds."""
_OPEN_SAFING = 20
"""The most unconfirmed stops, resets and releases of a piece of equipment in a report."""
_PROGRAMS = 200
"""The most programs of a piece of equipment in a report."""
_FLOOD = 100
"""The unsolicited answers of a piece of equipment between two polls from which on it is a problem."""
_COUNTS_EVERY_MS = 30_000
"""The shortest interval between two reports with changed counts only: each write wears the flash."""
_AFRESH_EVERY_MS = equipment_memory.REPORT_LIFETIME_MS // 4


class WatchedEquipment(Struct, frozen=True):
    """A piece of equipment, the commands that it takes, and its statistics."""

    equipment: EquipmentPort
    kind: str
    type_ids: Collection[str]
    stats: EquipmentStats


class EquipmentWatch:
    """The health of all equipment as of the last poll, with its open commands; `listeners` are called after each."""

    def __init__(
        self, store: Store, active_runs: ActiveRuns, clock: Clock, poll_interval_s: float = POLL_INTERVAL_S
    ) -> None:
        self.watched: list[WatchedEquipment] = []
        self.health: tuple[EquipmentHealth, ...] = ()
        self.listeners: list[Callable[[], Awaitable[None]]] = []
        self.open_safing: Callable[[EquipmentPort], Sequence[OpenSafing]] = lambda _: ()
        """Returns the stops, resets and releases that equipment has not confirmed."""
        self._poll_interval_s = poll_interval_s
        self._store = store
        self._active_runs = active_runs
        self._clock = clock
        self._written: EquipmentReport | None = None
        self._floods: dict[str, int] = {}
        """The unsolicited answers between the last two polls, by the equipment that has many."""

    async def run(self) -> None:
        """Poll and report until cancelled; a report waits for an unavailable store."""
        while True:
            before = {device.name: device.unsolicited for device in self.health}
            self.health = self._look()
            counts = {device.name: device.unsolicited - before.get(device.name, 0) for device in self.health}
            self._floods = {name: count for name, count in counts.items() if count >= _FLOOD}
            try:
                await self._report()
            except Unavailable as error:
                logger.debug("equipment report waits for the store", reason=error.message)
            await notify_async(self.listeners)
            await next_tick(self._poll_interval_s if self._has_tried else min(_FIRST_POLLS_S, self._poll_interval_s))

    @property
    def _has_tried(self) -> bool:
        """Whether each piece of equipment is connected, or its first try has ended."""
        return all(device.connection != NOT_CONNECTED_YET for device in self.health)

    def _look(self) -> tuple[EquipmentHealth, ...]:
        before = {device.name: device.connected for device in self.health}
        for watched_equipment in self.watched:
            name, connected = watched_equipment.equipment.name, watched_equipment.equipment.connected
            if before.get(name) is not connected and (name in before or connected):
                watched_equipment.stats.record_contact(self._clock())
        waiting = Counter(
            outgoing.type_id for loaded in self._active_runs.loaded.values() for outgoing in loaded.unanswered()
        )
        return tuple(
            _health(equipment, _sum(waiting, equipment.type_ids), self._late_safing(equipment.equipment))
            for equipment in self.watched
        )

    def _late_safing(self, equipment: EquipmentPort) -> list[OpenSafing]:
        # What is on its way for the first time is not yet a trouble: people would see each stop as one.
        due = self._clock() - _FIRST_TRY_MS
        return [safing for safing in self.open_safing(equipment) if safing.reason or safing.since < due]

    def maybe_active(self) -> list[str]:
        """Return the equipment that declined a stop, or has not confirmed one in time: it may still be active."""
        due = self._clock() - CONFIRMED_WITHIN_MS
        return [
            watched.equipment.name
            for watched in self.watched
            if any(safing.reason or safing.since < due for safing in self.open_safing(watched.equipment))
        ]

    @property
    def flooding(self) -> Collection[str]:
        """The equipment that floods its answers topic."""
        return self._floods.keys()

    def floods(self) -> list[Text]:
        """Return a sentence for each piece of equipment that floods its answers topic."""
        return [
            Text.of(
                "{count} unsolicited answers at {name} in {seconds:g} s: its broker may drop others",
                count=count,
                name=name,
                seconds=self._poll_interval_s,
            )
            for name, count in self._floods.items()
        ]

    async def _report(self) -> None:
        report = EquipmentReport(at=self._clock(), equipment=self.health)
        if self.watched and is_due(self._written, report):
            await self._store.commit(equipment_memory.save_report(self._store.keys, self._store.consumer, report))
            self._written = report


def is_due(written: EquipmentReport | None, report: EquipmentReport) -> bool:
    """Return whether to write a report: faults at once, counts at intervals, the same after a few hours."""
    if written is None or _troubles(written.equipment) != _troubles(report.equipment):
        return True
    age = report.at - written.at
    return age >= (_COUNTS_EVERY_MS if written.equipment != report.equipment else _AFRESH_EVERY_MS)


def _troubles(equipment: Sequence[EquipmentHealth]) -> list[tuple[object, ...]]:
    return [
        (
            device.name,
            device.obstacle,
            device.connected,
            device.failed,
            device.refused,
            device.last_error,
            device.last_late,
            device.unknown,
            device.safing,
        )
        for device in equipment
    ]


def _sum(counts: Counter[str], type_ids: Collection[str]) -> int:
    return sum(counts[type_id] for type_id in type_ids)


def _health(watched: WatchedEquipment, outstanding: int, open_safing: Sequence[OpenSafing]) -> EquipmentHealth:
    stats = watched.stats
    problems = watched.equipment.problem, problem_of(open_safing)
    return EquipmentHealth(
        name=watched.equipment.name,
        kind=watched.kind,
        connected=watched.equipment.connected,
        last_seen=stats.last_seen,
        outstanding=outstanding,
        answered=stats.answered,
        failed=stats.failed,
        ignored=stats.ignored,
        refused=stats.refused,
        ok=stats.ok,
        not_ok=stats.not_ok,
        repeated_starts=stats.repeated_starts,
        unknown=stats.unknown,
        late=stats.late,
        unsolicited=stats.unsolicited,
        declined_stops=stats.declined_stops,
        lost_traces=stats.lost_traces,
        problem=join_texts("; ", filter(None, problems)) if any(problems) else "",
        safing=len(open_safing),
        open_safing=tuple(open_safing[:_OPEN_SAFING]),
        last_error=stats.last_error,
        last_late=stats.last_late,
        last_late_at=stats.last_late_at,
        programs=programs_of(watched.equipment)[:_PROGRAMS],
        connection=watched.equipment.connection,
    )
