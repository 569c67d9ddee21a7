"""The state of a gateway in words: what is wrong, what comes near a limit, jobs and store; pure functions of facts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from edge.foundation.clock_sync import Clock
from edge.model.finding import HealthFinding
from edge.store.bounds import BoundedCounts
from edge.store.server_check import MemoryUsage, ServerState

_MOST_SENDERS = 3
"""The senders of marks that the line names: they choose their names."""

Warnings: TypeAlias = Mapping[object, tuple[str, Mapping[str, object]]]
"""The event and the values of a record of the log, by what distinguishes one from others."""


class BrokerFacts(Struct, frozen=True):
    """The session with a broker: the topics that it refuses, and those whose messages are long with their handlers."""

    connected: bool
    refused: Sequence[str] = ()
    stalled: Sequence[str] = ()


class GatewayFacts(Struct, frozen=True):
    """What a gateway knows without its store: the brokers by their users, and sentences and names in their order."""

    brokers: Mapping[str, BrokerFacts] = {}
    interfaces: Sequence[str] = ()
    """Why interfaces cannot listen."""
    stalled_work: Sequence[str] = ()
    replication: Sequence[str] = ()
    lost_equipment: Sequence[str] = ()
    """Equipment that is not connected, with the kind of the reason."""
    maybe_active: Sequence[str] = ()
    """Tools that may still be active."""
    floods: Sequence[str] = ()
    refused: Sequence[str] = ()
    """Topics that a broker refuses to publish."""
    others: Sequence[str] = ()
    """Problems of other parts, and of certificates."""


def missing(facts: GatewayFacts) -> Iterator[str]:
    """Yield the connections that are missing: a gateway that lacks one serves, but is degraded."""
    if away := [name for name, broker in facts.brokers.items() if not broker.connected]:
        yield f"broker unavailable: {', '.join(away)}"
    for name, broker in facts.brokers.items():
        if broker.connected and broker.refused:
            yield f"broker refuses subscriptions of {name}: {', '.join(broker.refused)}"
    yield from facts.interfaces


def problems(facts: GatewayFacts) -> Iterator[str]:
    """Yield what is wrong, the store aside."""
    if facts.stalled_work:
        yield f"no progress: {', '.join(facts.stalled_work)}"
    yield from facts.replication
    yield from missing(facts)
    for name, broker in facts.brokers.items():
        if broker.stalled:
            yield f"messages for {name} wait: {', '.join(broker.stalled)}"
    if facts.lost_equipment:
        yield f"equipment disconnected: {', '.join(facts.lost_equipment)}"
    if facts.maybe_active:
        yield f"tool may still be active: {', '.join(facts.maybe_active)}"
    yield from facts.floods
    if facts.refused:
        yield f"broker refuses: {', '.join(facts.refused)}"
    yield from facts.others


def store_problems(state: ServerState) -> Iterator[str]:
    """Yield what is wrong with the server of the store."""
    for problem in state.problems:
        yield f"the Redis server {problem}"
    if not state.can_write:
        yield "Redis cannot write to its disk: is it full?"


def near_limits(counts: BoundedCounts) -> Iterator[str]:
    """Yield the counts that are near their limit."""
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


def summary(at_work: int, memory: MemoryUsage, clock: Clock) -> Iterator[str]:
    """Yield how many jobs are at work, how full the store is, and whether the clock is right."""
    yield f"{at_work} {'job' if at_work == 1 else 'jobs'} at work"
    yield f"store {memory.fullness:.0%} full" if memory.limit else f"store holds {memory.used >> 20} MiB"
    if clock is Clock.UNSYNCHRONISED:
        yield "clock not synchronised"


def certificate_line(finding: HealthFinding) -> str:
    """Return what was found about a certificate."""
    return f"{finding.subject}: {finding.found}"


def warnings_of(state: ServerState) -> Warnings:
    """Return what to log while the store comes near a limit, or may lose decisions."""
    return dict(_warnings(state))


def _warnings(state: ServerState) -> Iterator[tuple[object, tuple[str, Mapping[str, object]]]]:
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
