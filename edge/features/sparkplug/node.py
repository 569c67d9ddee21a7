"""The edge node: connects with a new birth number each time, and publishes for as long as it runs."""

from collections.abc import Callable, Mapping, Sequence

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.features.sparkplug import sample_streams as sparkplug
from edge.features.sparkplug.messages import NodeMessages, next_number, node_death
from edge.features.sparkplug.sample_streams import SampleStreams
from edge.features.sparkplug.session import HostOffline, NodeLimits, NodeParts, NodeSession, NodeStats
from edge.features.sparkplug.table import MetricTable, NodeTopics
from edge.foundation.backoff import Backoff
from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.instant import Clock
from edge.foundation.text import Text
from edge.links.mqtt_broker import Broker
from edge.links.mqtt_connection import RETRY_SECONDS, NotReached, connect
from edge.ports.sample_lines import Sample, parse_line
from edge.ports.tag import TagDefinitions, matches_any
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from edge.store.commit import Committed

logger = structlog.get_logger(__name__)


class NodeIdentity(Struct, frozen=True):
    """Topics of the edge node, its primary host (empty for none), and the patterns of the tags that it publishes."""

    topics: NodeTopics
    host: str
    patterns: tuple[str, ...]

    @property
    def client_id(self) -> str:
        """The client id: another gateway on the store that becomes the edge node ends the connection of this one."""
        return f"sparkplug-{self.topics.group}-{self.topics.node}"


class EdgeNode:
    """The edge node of a station. Only one instance on the store runs it."""

    def __init__(
        self,
        stores: Mapping[str, Store],
        brokers: Sequence[Broker],
        identity: NodeIdentity,
        definitions: TagDefinitions,
        gone: Callable[[], frozenset[str]],
        clock: Clock,
        limits: NodeLimits | None = None,
    ) -> None:
        """Publish the samples of `stores` at one broker at a time; the first store keeps what survives a restart."""
        self.problem: str | Text = ""
        """Why the edge node is not born; empty when it is, or when another instance is the edge node."""
        self.waits_for_host = False
        """Whether the primary host is the reason: nothing is wrong with the gateway."""
        self.stats = NodeStats()
        self._stores = stores
        self._store = next(iter(stores.values()))
        self._brokers = [replace(broker, clean_start=True, will_always=True) for broker in brokers]
        self._at = 0
        """The broker of the present connection; the next one follows when it, or the host there, is gone."""
        self._identity = identity
        self._definitions = definitions
        self._gone = gone
        self._clock = clock
        self._limits = limits or NodeLimits()

    async def run(self) -> None:
        """Run the edge node until cancelled; an unavailable broker, host or store is waited for."""
        backoff = Backoff(*RETRY_SECONDS, stable=5.0)
        parts: NodeParts | None = None
        bd_seq: int | None = None
        try:
            while True:
                failure: Sequence[BaseException] = ()
                try:
                    parts = parts or await self._load()
                    bd_seq = await self._take_number() if bd_seq is None else bd_seq
                    await self._connect(parts, bd_seq)
                except* Unavailable as group:
                    failure = _leaves(group)
                # Without a CONNECT the number was not used.
                bd_seq = bd_seq if any(isinstance(error, NotReached) for error in failure) else None
                self._report_failure(failure)
                self._at = (self._at + 1) % len(self._brokers)
                await backoff.pause()
        finally:
            self._note("")

    def _report_failure(self, failure: Sequence[BaseException]) -> None:
        first = next((error for error in failure if isinstance(error, EdgeError)), None)
        reason = first.text if first else Text.of("the connection has ended")
        if not self.problem:
            log = logger.info if isinstance(first, HostOffline) else logger.warning
            log("sparkplug edge node offline, retrying", reason=str(reason))
        self.problem, self.waits_for_host = reason, isinstance(first, HostOffline)

    async def _load(self) -> NodeParts:
        """Read what the edge node published before, and the last sample of each tag."""
        record = await sparkplug.load(self._store)
        table = MetricTable(self._definitions)
        streams = SampleStreams(self._stores, lambda tag: matches_any(self._identity.patterns, tag))
        table.announce(tag for tag in self._definitions.known if streams.wants(tag))
        for tag, text in (await tags.load_last(self._store)).items():
            sample = _sample(text)
            if streams.wants(tag) and sample is not None and sample.gateway in {None, self._store.consumer}:
                table.learn(sample)
        return NodeParts(
            self._store,
            self._identity.topics,
            self._identity.host,
            table,
            self._definitions,
            streams,
            {name: position for name, position in record.cursors.items() if name in self._stores},
            self._gone,
            self._clock,
            self._limits,
            self.stats,
            several_brokers=len(self._brokers) > 1,
        )

    async def _take_number(self) -> int:
        while True:
            former = (await sparkplug.load(self._store)).bd_seq
            number = 0 if former is None else next_number(former)
            saved = await self._store.commit(sparkplug.save_bd_seq(self._store.keys, number, former))
            if isinstance(saved, Committed):
                return number

    async def _connect(self, parts: NodeParts, bd_seq: int) -> None:
        will = node_death(self._identity.topics, bd_seq, self._clock())
        async with connect(replace(self._brokers[self._at], will=will)) as connection:
            messages = NodeMessages(self._identity.topics, parts.table, bd_seq)
            await NodeSession(connection, parts, messages, self._note).run()

    def _note(self, problem: str) -> None:
        self.problem, self.waits_for_host = problem, bool(problem)


def _sample(text: str) -> Sample | None:
    try:
        found = parse_line(text)
    except ValueError:
        return None
    return found if isinstance(found, Sample) else None


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    errors: list[BaseException] = []
    for exception in group.exceptions:
        errors += _leaves(exception) if isinstance(exception, BaseExceptionGroup) else [exception]
    return errors
