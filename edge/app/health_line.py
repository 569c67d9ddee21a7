"""The state of a gateway in words: what is wrong, what comes near a limit, jobs and store; pure functions of facts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from edge.foundation.clock_sync import Clock
from edge.foundation.text import Text, join_texts
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
    interfaces: Sequence[Text] = ()
    """Why interfaces cannot listen."""
    stalled_work: Sequence[str] = ()
    replication: Sequence[Text] = ()
    lost_equipment: Sequence[str | Text] = ()
    """Equipment that is not connected, with the kind of the reason."""
    maybe_active: Sequence[str] = ()
    """Tools that may still be active."""
    floods: Sequence[Text] = ()
    refused: Sequence[str] = ()
    """Topics that a broker refuses to publish."""
    others: Sequence[str | Text] = ()
    """Problems of other parts, and of certificates."""


def missing(facts: GatewayFacts) -> Iterator[Text]:
    """Yield the connections that are missing: a gateway that lacks one serves, but is degraded."""
    if away := [name for name, broker in facts.brokers.items() if not broker.connected]:
        yield Text.of("broker unavailable: {brokers}", brokers=", ".join(away))
    for name, broker in facts.brokers.items():
        if broker.connected and broker.refused:
            topics = ", ".join(broker.refused)
            yield Text.of("broker refuses subscriptions of {name}: {topics}", name=name, topics=topics)
    yield from facts.interfaces


def problems(facts: GatewayFacts) -> Iterator[str | Text]:
    """Yield what is wrong, the store aside."""
    if facts.stalled_work:
        yield Text.of("no progress: {work}", work=", ".join(facts.stalled_work))
    yield from facts.replication
    yield from missing(facts)
    for name, broker in facts.brokers.items():
        if broker.stalled:
            yield Text.of("messages for {name} wait: {topics}", name=name, topics=", ".join(broker.stalled))
    if facts.lost_equipment:
        yield Text.of("equipment disconnected: {equipment}", equipment=join_texts(", ", facts.lost_equipment))
    if facts.maybe_active:
        yield Text.of("tool may still be active: {equipment}", equipment=", ".join(facts.maybe_active))
    yield from facts.floods
    if facts.refused:
        yield Text.of("broker refuses: {topics}", topics=", ".join(facts.refused))
    yield from facts.others


def store_problems(state: ServerState) -> Iterator[Text]:
    """Yield what is wrong with the server of the store."""
    for problem in state.problems:
        yield Text.of("the Redis server {problem}", problem=problem)
    if not state.can_write:
        yield Text.of("Redis cannot write to its disk: is it full?")


def near_limits(counts: BoundedCounts) -> Iterator[Text]:
    """Yield the counts that are near their limit."""
    for scope, bounded_count in counts.undelivered.items():
        if bounded_count.is_nearly_full:
            yield Text.of(
                "{count} of at most {limit} undelivered results kept in {scope}",
                count=bounded_count.count,
                limit=bounded_count.limit,
                scope=scope,
            )
    for scope, count in counts.unconfirmed.items():
        if count.is_nearly_full and count != counts.undelivered.get(scope):
            yield Text.of(
                "{count} of at most {limit} results without a confirmation of the MES kept in {scope}",
                count=count.count,
                limit=count.limit,
                scope=scope,
            )
    if counts.marks.is_nearly_full:
        yield Text.of(
            "{count} of at most {limit} marks of messages kept", count=counts.marks.count, limit=counts.marks.limit
        )
    for sender, own in islice(counts.by_sender.nearly_full.items(), _MOST_SENDERS):
        yield Text.of(
            "{count} of at most {limit} marks kept of {sender}", count=own.count, limit=own.limit, sender=sender
        )


def summary(at_work: int, memory: MemoryUsage, clock: Clock) -> Iterator[Text]:
    """Yield how many jobs are at work, how full the store is, and whether the clock is right."""
    yield Text.of("1 job at work") if at_work == 1 else Text.of("{count} jobs at work", count=at_work)
    if memory.limit:
        yield Text.of("store {fullness:.0%} full", fullness=memory.fullness)
    else:
        yield Text.of("store holds {size} MiB", size=memory.used >> 20)
    if clock is Clock.UNSYNCHRONISED:
        yield Text.of("clock not synchronised")


def certificate_line(finding: HealthFinding) -> Text:
    """Return what was found about a certificate."""
    return join_texts(": ", (finding.subject, finding.found))


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
