"""Checks the gateway and summarizes its state in one line: faults first, then jobs and store."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice

import structlog

from edge.app.store_watch import StoreWatch
from edge.app.systemd import Notify
from edge.foundation.clock_sync import Clock, read_clock
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.listeners import notify
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick
from edge.links.mqtt import MqttSession
from edge.model.finding import HealthFinding, Level
from edge.station.active_runs import ActiveRuns
from edge.station.equipment import EquipmentPort
from edge.station.equipment_watch import EquipmentWatch
from edge.store.bounds import NO_LIMITS, BoundedCounts, CountLimits
from edge.store.client import Store
from edge.store.dedupe import MarkCounter
from edge.store.fence import quorum_problem
from edge.store.server_check import MemoryUsage, ServerState, read_state

logger = structlog.get_logger(__name__)

_CHECK_INTERVAL_S = 1.0
_STORE_WITHIN_S = 1.0
"""With the interval: a change is published within two seconds, even if the store hangs."""
_HANDLED_WITHIN_S = 60.0
"""A message that is longer with its handler is a problem: those behind it wait, and the broker sends no more."""
_MOST_SENDERS = 3
"""The senders of marks that the line names: they choose their names."""
_CERTIFICATE_INTERVAL_S = 60.0
"""Reading a private key takes more CPU time than all other checks together."""


ReadState = Callable[[Store, CountLimits, MarkCounter], Awaitable[ServerState]]


class CertificateWatch:
    """The certificates of the gateway, examined once a minute: which cannot be used, and which expire soon."""

    def __init__(self, examine: Callable[[], Iterable[HealthFinding]]) -> None:
        self._examine = examine
        self._due = 0.0
        self._reported: frozenset[HealthFinding] = frozenset()
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.expiring: int | None = None
        """Certificates that expire soon or cannot be used; None before the first examination."""

    async def look(self) -> None:
        """Examine the certificates when it is time; log each that has become unusable."""
        if (now := time.monotonic()) >= self._due:
            await asyncio.to_thread(self._look)
            self._due = now + _CERTIFICATE_INTERVAL_S

    def _look(self) -> None:
        try:
            findings = [finding for finding in self._examine() if finding.level is not Level.OK]
        except SettingsError as error:
            self.expiring, self.notes, self.problems = 1, [], [error.message]
            return
        self.expiring = len(findings)
        unfit = frozenset(finding for finding in findings if finding.level is Level.FAILING)
        for finding in unfit - self._reported:
            logger.warning("certificate unusable", subject=finding.subject, reason=finding.found, advice=finding.advice)
        self._reported = unfit
        self.notes = [_line(finding) for finding in findings if finding.level is Level.WARNING]
        self.problems = sorted(map(_line, unfit))


class StoreWarnings:
    """Logs once when the store comes near a limit, or may lose decisions."""

    def __init__(self) -> None:
        self._reported: set[object] = set()

    def follow(self, state: ServerState) -> None:
        """Log what holds now and did not at the last call."""
        warnings = dict(_warnings_of(state))
        for reason, (event, values) in warnings.items():
            if reason not in self._reported:
                logger.warning(event, **values)
        self._reported = set(warnings)


def _warnings_of(state: ServerState) -> Iterator[tuple[object, tuple[str, Mapping[str, object]]]]:
    """Yield each warning with what distinguishes it: its event and the values of its record."""
    for problem in state.problems:
        reason = f"the Redis server {problem}"
        advice = "A power cut or a full memory would lose decisions. Correct the configuration of the server."
        yield reason, ("store may lose decisions", {"reason": reason, "advice": advice})
    marks = state.counts.marks
    if marks.is_nearly_full:
        advice = "Find the sender: edge marks list. Or raise [retention] marks: at it new orders are refused."
        yield "marks", ("marks above half of limit", {"count": marks.count, "limit": marks.limit, "advice": advice})
    for sender, own in state.counts.by_sender.nearly_full.items():
        advice = f"Correct the sender, or drop its marks: edge marks drop {sender}. At the limit it is refused."
        values = {"sender": sender, "count": own.count, "limit": own.limit, "advice": advice}
        yield ("marks", sender), ("marks of sender above half of share", values)
    memory = state.memory
    if memory.is_nearly_full:
        advice = "Raise `maxmemory` of the Redis server or shorten [retention]: a full store takes no new job."
        yield "memory", ("store filling up", {"used": memory.used, "limit": memory.limit, "advice": advice})


class Health:
    """The state of everything the gateway depends on; `sessions` are those with brokers, by their user.

    `line`, `problem_line` (its beginning, without jobs and store), `memory` and `counts` are the results of the last
    check. `refusals` return the topics that a broker refuses now. `problems` return sentences of other parts.
    `certificates` examines the certificates of the gateway.
    """

    def __init__(
        self,
        store: Store,
        active_runs: ActiveRuns,
        watch: EquipmentWatch,
        certificates: Callable[[], Iterable[HealthFinding]] = tuple,
        clock: Callable[[], Clock] = read_clock,
        check_interval_s: float = _CHECK_INTERVAL_S,
        limits: CountLimits = NO_LIMITS,
        read_state: ReadState = read_state,
        handled_within_s: float = _HANDLED_WITHIN_S,
    ) -> None:
        self._read_state = read_state
        self._handled_within_s = handled_within_s
        self.sessions: dict[str, MqttSession] = {}
        self.line = "starting"
        self.problem_line = ""
        self.memory = MemoryUsage(0, 0)
        self.counts = BoundedCounts()
        self.certificates = CertificateWatch(certificates)
        self.refusals: list[Callable[[], Iterable[str]]] = []
        self.problems: list[Callable[[], Iterable[str]]] = []
        self.servers = StoreWatch(store)
        self.notes: list[Callable[[], Iterable[str]]] = [self.servers.notes]
        """Return what the line adds although nothing is wrong with the gateway."""
        self.has_store = True
        """Whether the store answered the last check."""
        self.listeners: list[Callable[[], None]] = []
        """Called after a check that found other problems than the one before."""
        self.interface_problems: dict[str, str] = {}
        """Why interfaces cannot listen, by their names; OPC UA server, station page, metrics page, RPC server."""
        self._store = store
        self._active_runs = active_runs
        self._watch = watch
        self._clock = clock
        self._check_interval_s = check_interval_s
        self._limits = limits
        self._marks = MarkCounter()
        self._warnings = StoreWarnings()

    async def publish_status(self, notify: Notify, serving: str) -> None:
        """Publish the state and what is served to systemd whenever they differ, until cancelled."""
        published = ""
        while True:
            line = await self.check()
            mark = "serving, degraded: " if any(self._missing()) else ""
            if (status := f"STATUS={mark}{line}; {serving}") != published:
                notify(status)
                published = status
            await next_tick(self._check_interval_s)

    def degraded_by(self, serving: str) -> str:
        """Return what is served, marked as degraded with the connections that are missing."""
        missing = "; ".join(self._missing())
        return f"serving, degraded: {missing}; {serving}" if missing else serving

    def _missing(self) -> Iterator[str]:
        if away := [name for name, session in self.sessions.items() if not session.connected]:
            yield f"broker unavailable: {', '.join(away)}"
        refusing = {name: session.refused() for name, session in self.sessions.items() if session.connected}
        for name, topics in refusing.items():
            if topics:
                yield f"broker refuses subscriptions of {name}: {', '.join(topics)}"
        yield from self.interface_problems.values()

    async def check(self) -> str:
        """Check everything and return the state in one line."""
        before = self.has_store, self.problem_line
        self.line = await self._check()
        if before != (self.has_store, self.problem_line):
            notify(self.listeners)
        return self.line

    async def _check(self) -> str:
        await self.certificates.look()
        troubles = [*self._problems(), *self.certificates.problems]
        try:
            state = await self._read_server()
        except Unavailable as error:
            self.has_store = False
            return "; ".join((error.message, *troubles))
        self._warnings.follow(state)
        self.memory, self.counts = state.memory, state.counts
        self._store.marks, self._store.marks_by_sender = state.counts.marks, state.counts.by_sender
        if not state.can_write:
            troubles.insert(0, "Redis cannot write to its disk: is it full?")
        troubles = [*(f"the Redis server {problem}" for problem in state.problems), *troubles]
        self.problem_line, self.has_store = "; ".join(troubles), True
        return "; ".join((*troubles, *_many(state.counts), *self._summary(state.memory)))

    async def _read_server(self) -> ServerState:
        """Read the state of the server. Raises Unavailable."""
        if reason := self._store.unconfirmed:
            raise Unavailable(Text.of("store unavailable, its primary is not confirmed: {reason}", reason=reason))
        try:
            async with asyncio.timeout(_STORE_WITHIN_S):
                return await self._read_state(self._store, self._limits, self._marks)
        except TimeoutError:
            raise Unavailable(
                Text.of("Redis does not answer within {store_within_s:g} s", store_within_s=_STORE_WITHIN_S)
            ) from None

    def _summary(self, memory: MemoryUsage) -> Iterator[str]:
        at_work = self._active_runs.count
        yield f"{at_work} {'job' if at_work == 1 else 'jobs'} at work"
        yield f"store {memory.fullness:.0%} full" if memory.limit else f"store holds {memory.used >> 20} MiB"
        if self._clock() is Clock.UNSYNCHRONISED:
            yield "clock not synchronised"
        yield from self.certificates.notes
        for notes in self.notes:
            yield from notes()

    def _problems(self) -> Iterator[str]:
        if silent := self._store.heartbeat.stalled():
            yield f"no progress: {', '.join(silent)}"
        if ha := self._store.ha:
            yield from filter(None, (quorum_problem(ha.sentinels.views.values()), ha.replication.problem))
        yield from self._missing()
        for name, session in self.sessions.items():
            if stalled := session.stalled(self._handled_within_s):
                yield f"messages for {name} wait: {', '.join(stalled)}"
        yield from self._equipment_problems()
        if refused := [topic for refusal in self.refusals for topic in refusal()]:
            yield f"broker refuses: {', '.join(refused)}"
        for problems in self.problems:
            yield from problems()

    def _equipment_problems(self) -> Iterator[str]:
        # The state of equipment behind an absent broker is unknown.
        away = [name for name, session in self.sessions.items() if not session.connected]
        equipment = (watched_equipment.equipment for watched_equipment in self._watch.watched)
        if lost := [
            _absent(equipment_port)
            for equipment_port in equipment
            if equipment_port.connected is False and equipment_port.name not in away
        ]:
            yield f"equipment disconnected: {', '.join(lost)}"
        if active := self._watch.maybe_active():
            yield f"tool may still be active: {', '.join(active)}"
        yield from self._watch.floods()


def _line(finding: HealthFinding) -> str:
    return f"{finding.subject}: {finding.found}"


def _absent(equipment: EquipmentPort) -> str:
    """Return the name of equipment that is not connected, with the kind of the reason."""
    fault = equipment.connection.fault.replace("_", " ")
    return f"{equipment.name} ({fault})" if fault else equipment.name


def _many(counts: BoundedCounts) -> Iterator[str]:
    """Return the counts that are near their limit."""
    for scope, bounded_count in counts.undelivered.items():
        if bounded_count.is_nearly_full:
            yield f"{bounded_count.count} of at most {bounded_count.limit} undelivered results kept in {scope}"
    for scope, count in counts.unconfirmed.items():
        if count.is_nearly_full and count != counts.undelivered.get(scope):
            yield f"{count.count} of at most {count.limit} results without a confirmation of the MES kept in {scope}"
    if counts.marks.is_nearly_full:
        yield f"{counts.marks.count} of at most {counts.marks.limit} marks of messages kept"
    for sender, own in islice(counts.by_sender.nearly_full.items(), _MOST_SENDERS):
        yield f"{own.count} of at most {own.limit} marks kept of {sender}"
