"""Checks the gateway each second; `health_line` says the state in one line: faults first, then jobs and store."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

import structlog
from msgspec.structs import replace

from edge.app.health_line import (
    BrokerFacts,
    GatewayFacts,
    certificate_line,
    missing,
    near_limits,
    problems,
    store_problems,
    summary,
    warnings_of,
)
from edge.app.systemd import Notify
from edge.foundation.clock_sync import Clock, read_clock
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.listeners import notify
from edge.foundation.text import Text, join_texts
from edge.foundation.ticks import next_tick
from edge.links.mqtt import MqttSession
from edge.model.equipment_connection import fault_text
from edge.model.finding import HealthFinding, Level
from edge.station.active_runs import ActiveRuns
from edge.station.equipment import EquipmentPort
from edge.station.equipment_watch import EquipmentWatch
from edge.store.bounds import NO_LIMITS, BoundedCounts, CountLimits
from edge.store.client import Store
from edge.store.dedupe import MarkCounter
from edge.store.fence import quorum_problem
from edge.store.observer import observer_of
from edge.store.server_check import MemoryUsage, ServerState, read_state
from edge.store.store_state import ProblemKind, StoreProblem, StoreState, find_problems

INTERVAL_S: Final = 5.0
_REPORTED_BY_HEALTH: Final = frozenset(
    {ProblemKind.NO_MAJORITY, ProblemKind.PRIMARY_AWAY, ProblemKind.QUORUM, ProblemKind.PRIORITIES}
)
_TAGS: Final = {
    "gateway.sentinels_away": ProblemKind.SENTINEL_AWAY,
    "gateway.store_replicas_away": ProblemKind.REPLICA_AWAY,
    "gateway.store_replicas_lagging": ProblemKind.REPLICA_LAGS,
    "gateway.store_without_file": ProblemKind.NO_AOF,
    "gateway.clocks_differing": ProblemKind.CLOCK_DIFFERS,
}
"""The tags of the built-in alarms: how many servers have the problem."""


class StoreWatch:
    """Holds the last state of the store; None before the first reading."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.state: StoreState | None = None
        self.problems: tuple[StoreProblem, ...] = ()

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Read the state until cancelled."""
        with contextlib.closing(observer_of(self._store)) as observer:
            while True:
                self.state = await observer.read()
                self.problems = find_problems(self.state)
                await next_tick(interval_s)

    def notes(self) -> Iterator[str | Text]:
        """Yield what the status line adds: work continues, with less protection."""
        if self._store.ha is not None:
            of_primary = [problem for problem in self.problems if problem.subject.startswith("primary")]
            for store_problem in self.problems:
                if store_problem.kind not in _REPORTED_BY_HEALTH and store_problem not in of_primary:
                    found = store_problem.found
                    yield found if str(found).startswith("the ") else join_texts(": ", (store_problem.subject, found))

    def tags(self) -> Iterator[tuple[str, float]]:
        """Yield the values of the tags of the built-in alarms; without Sentinel none."""
        if self._store.ha is None or self.state is None:
            return
        yield "gateway.primary_unconfirmed", int(bool(self._store.unconfirmed))
        counts = Counter(problem.kind for problem in self.problems)
        yield from ((tag, counts[kind]) for tag, kind in _TAGS.items())


logger = structlog.get_logger(__name__)

_CHECK_INTERVAL_S = 1.0
_STORE_WITHIN_S = 1.0
"""With the interval: a change is published within two seconds, even if the store hangs."""
_REPLICAS_WITHIN_S = 2.5
"""With `durability = "replicated"` in addition: a confirmation takes a second at most, and may wait for another one.
"""
_HANDLED_WITHIN_S = 60.0
"""A message that is longer with its handler is a problem: those behind it wait, and the broker sends no more."""
_CERTIFICATE_INTERVAL_S = 60.0
"""Reading a private key takes more CPU time than all other checks together."""


ReadState = Callable[[Store, CountLimits, MarkCounter], Awaitable[ServerState]]


class CertificateWatch:
    """The certificates of the gateway, examined once a minute: which cannot be used, and which expire soon."""

    def __init__(self, examine: Callable[[], Iterable[HealthFinding]]) -> None:
        self._examine = examine
        self._due = 0.0
        self._reported: frozenset[HealthFinding] = frozenset()
        self.problems: list[str | Text] = []
        self.notes: list[str | Text] = []
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
            self.expiring, self.notes, self.problems = 1, [], [error.text]
            return
        self.expiring = len(findings)
        unfit = frozenset(finding for finding in findings if finding.level is Level.FAILING)
        for finding in unfit - self._reported:
            logger.warning(
                "certificate unusable",
                subject=str(finding.subject),
                reason=str(finding.found),
                advice=str(finding.advice),
            )
        self._reported = unfit
        self.notes = [certificate_line(finding) for finding in findings if finding.level is Level.WARNING]
        self.problems = sorted(map(certificate_line, unfit), key=str)


class StoreWarnings:
    """Logs once when the store comes near a limit, or may lose decisions."""

    def __init__(self) -> None:
        self._reported: set[object] = set()

    def follow(self, state: ServerState) -> None:
        """Log what holds now and did not at the last call."""
        warnings = warnings_of(state)
        for reason, (event, values) in warnings.items():
            if reason not in self._reported:
                logger.warning(event, **values)
        self._reported = set(warnings)


class Health:
    """The state of everything the gateway depends on; `sessions` are those with brokers, by their user.

    `text`, `problem_text` (its beginning, without jobs and store), `memory` and `counts` are the results of the last
    check; `line` and `problem_line` are their English. `refusals` return the topics that a broker refuses now.
    `problems` return sentences of other parts. `certificates` examines the certificates of the gateway.
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
        self.text = Text.of("starting")
        self.problem_text: str | Text = ""
        self.memory = MemoryUsage(0, 0)
        self.counts = BoundedCounts()
        self.certificates = CertificateWatch(certificates)
        self.refusals: list[Callable[[], Iterable[str]]] = []
        self.problems: list[Callable[[], Iterable[str | Text]]] = []
        self.servers = StoreWatch(store)
        self.notes: list[Callable[[], Iterable[str | Text]]] = [self.servers.notes]
        """Return what the line adds although nothing is wrong with the gateway."""
        self.faulty_recipes: int | None = None
        """The stored recipes at which a job can stand still; None before they were examined."""
        self.has_store = True
        """Whether the store answered the last check."""
        self.work_waits: str | Text = ""
        """Why the store accepted no work at the last check; empty when it did."""
        self.listeners: list[Callable[[], None]] = []
        """Called after a check that found other problems than the one before."""
        self.interface_problems: dict[str, Text] = {}
        """Why interfaces cannot listen, by their names; OPC UA server, station page, metrics page, RPC server."""
        self._store = store
        self._active_runs = active_runs
        self._watch = watch
        self._clock = clock
        self._check_interval_s = check_interval_s
        self._limits = limits
        self._marks = MarkCounter()
        self._warnings = StoreWarnings()

    @property
    def line(self) -> str:
        """The state in one line."""
        return str(self.text)

    @property
    def problem_line(self) -> str:
        """What is wrong, in one line; empty when nothing is."""
        return str(self.problem_text)

    async def publish_status(self, notify: Notify, serving: str) -> None:
        """Publish the state and what is served to systemd whenever they differ, until cancelled."""
        published = ""
        while True:
            line = await self.check()
            mark = "serving, degraded: " if any(missing(self._connections())) else ""
            if (status := f"STATUS={mark}{line}; {serving}") != published:
                notify(status)
                published = status
            await next_tick(self._check_interval_s)

    def degraded_by(self, serving: str) -> str:
        """Return what is served, marked as degraded with the connections that are missing."""
        lacking = "; ".join(map(str, missing(self._connections())))
        return f"serving, degraded: {lacking}; {serving}" if lacking else serving

    async def check(self) -> str:
        """Check everything and return the state in one line."""
        before = self.has_store, self.problem_line
        self.text = await self._check()
        if before != (self.has_store, self.problem_line):
            notify(self.listeners)
        return self.line

    async def _check(self) -> Text:
        await self.certificates.look()
        troubles = [*problems(self._facts())]
        try:
            state = await self._read_server()
        except Unavailable as error:
            trouble = join_texts("; ", (error.text, *troubles))
            self.problem_text, self.has_store, self.work_waits = trouble, False, error.text
            return trouble
        self._warnings.follow(state)
        self.memory, self.counts = state.memory, state.counts
        self._store.marks, self._store.marks_by_sender = state.counts.marks, state.counts.by_sender
        troubles = [*store_problems(state), *troubles]
        self.problem_text, self.has_store, self.work_waits = join_texts("; ", troubles) if troubles else "", True, ""
        notes = (note for notes in self.notes for note in notes())
        facts = (*near_limits(state.counts), *summary(self._active_runs.count, state.memory, self._clock()))
        return join_texts("; ", (*troubles, *facts, *self.certificates.notes, *notes))

    async def _read_server(self) -> ServerState:
        """Read the state of the server. Raises Unavailable."""
        if reason := self._store.unconfirmed:
            raise Unavailable(Text.of("store unavailable, its primary is not confirmed: {reason}", reason=reason))
        try:
            async with asyncio.timeout(_STORE_WITHIN_S):
                state = await self._read_state(self._store, self._limits, self._marks)
        except TimeoutError:
            raise Unavailable(
                Text.of("Redis does not answer within {store_within_s:g} s", store_within_s=_STORE_WITHIN_S)
            ) from None
        replication = self._store.ha.replication if self._store.ha else None
        if replication is None or not replication.is_required:
            return state
        try:
            async with asyncio.timeout(_REPLICAS_WITHIN_S):
                await replication.confirm()
        except (Unavailable, TimeoutError) as error:
            reason = error.text if isinstance(error, Unavailable) else Text.of("no reply in time")
            raise Unavailable(
                Text.of("store unavailable, its replicas do not confirm: {reason}", reason=reason)
            ) from None
        return state

    def _connections(self) -> GatewayFacts:
        """Return what is known of brokers and interfaces."""
        brokers = {
            name: BrokerFacts(session.connected, session.refused(), session.stalled(self._handled_within_s))
            for name, session in self.sessions.items()
        }
        return GatewayFacts(brokers, tuple(self.interface_problems.values()))

    def _facts(self) -> GatewayFacts:
        facts, ha = self._connections(), self._store.ha
        replication = (quorum_problem(ha.sentinels.views.values()), ha.replication.problem) if ha else ()
        # The state of equipment behind an absent broker is unknown.
        away = {name for name, broker in facts.brokers.items() if not broker.connected}
        equipment = (watched.equipment for watched in self._watch.watched)
        return replace(
            facts,
            stalled_work=self._store.heartbeat.stalled(),
            replication=[*filter(None, replication)],
            lost_equipment=[_absent(port) for port in equipment if port.connected is False and port.name not in away],
            maybe_active=self._watch.maybe_active(),
            floods=[*self._watch.floods()],
            refused=[topic for refusal in self.refusals for topic in refusal()],
            others=[*(problem for report in self.problems for problem in report()), *self.certificates.problems],
        )


def _absent(equipment: EquipmentPort) -> str | Text:
    """Return the name of equipment that is not connected, with the kind of the reason."""
    if fault := fault_text(equipment.connection.fault):
        return Text.of("{equipment} ({fault})", equipment=equipment.name, fault=fault)
    return equipment.name
