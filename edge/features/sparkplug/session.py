"""One connection of the edge node: births when its host is there, then data, until the broker or the host is gone."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from edge.features.sparkplug import sample_streams as sparkplug
from edge.features.sparkplug.messages import REBIRTH, DraftMessage, NodeMessages
from edge.features.sparkplug.payload import MalformedPayload, Metric, decode_payload
from edge.features.sparkplug.sample_streams import SampleBatch, SampleStreams
from edge.features.sparkplug.table import NODE, MetricTable, NodeTopics, state_topic
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock
from edge.foundation.metric import MetricFamily, counter, gauge
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_connection import Connection
from edge.ports.tag import TagDefinitions
from edge.store.client import Store
from edge.store.commit import join


class NodeStats(Struct):
    """Whether the edge node is born, and its births, its messages and the commands that it refused."""

    is_born: bool = False
    births: int = 0
    messages: int = 0
    refused: int = 0

    async def metrics(self) -> Sequence[MetricFamily]:
        """Return what is counted, for a scrape."""
        born = "Whether the edge node of Sparkplug is born at this gateway: 1 or 0."
        return (
            gauge("sparkplug_born", born, (), [((), self.is_born)]),
            *(
                counter(f"sparkplug_{name}", meaning, (), [((), count)])
                for name, meaning, count in (
                    ("births", "Births of the edge node of Sparkplug.", self.births),
                    ("messages", "Messages that the edge node of Sparkplug published.", self.messages),
                    ("commands_refused", "Commands of Sparkplug hosts that were refused.", self.refused),
                )
            ),
        )


_MAX_STATE: Final = 4_096


class _StateMessage(Struct):
    online: bool
    timestamp: int


_DECODER: Final = msgspec.json.Decoder(_StateMessage)


class HostState(Struct, frozen=True):
    """Whether the host is online, as of the newest message by its own timestamp."""

    online: bool = False
    timestamp: int | None = None


def read_state(known: HostState, payload: bytes) -> HostState | str:
    """Return the state after a message; the reason for one that does not count."""
    if len(payload) > _MAX_STATE:
        return f"it has more than {_MAX_STATE} bytes"
    try:
        message = _DECODER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"it is not a state: {error}"
    if known.timestamp is not None and message.timestamp < known.timestamp:
        return "it is older than the state before"
    return HostState(message.online, message.timestamp)


logger = structlog.get_logger(__name__)

_WAITING_BATCHES: Final = 8
_DEATH_WITHIN_S: Final = 2.0
_TURN: Final = 100
"""Metrics that are encoded at once."""


class HostOffline(Unavailable):
    """The primary host is offline: the edge node connects again and waits for it."""


class NodeLimits(Struct, frozen=True):
    """Times of an edge node in seconds: how often it looks at its devices, and how often at most the other things."""

    look_s: float = 1.0
    birth_s: float = 1.0
    """Births because of new tags."""
    rebirth_s: float = 5.0
    """Births on request of a host."""
    retype_s: float = 60.0
    """Births because a value has another type."""
    confirm_s: float = 5.0
    """Writing down what the broker has received."""
    host_s: float = 5.0
    """How long the primary host is waited for at one of several brokers."""


class NodeParts(Struct, frozen=True):
    """What the connections of an edge node share; `gone` returns the devices whose equipment is not connected.

    With `several_brokers` the edge node goes to the next one when its host is not there.
    """

    store: Store
    topics: NodeTopics
    host: str
    table: MetricTable
    definitions: TagDefinitions
    streams: SampleStreams
    published: dict[str, str]
    gone: Callable[[], frozenset[str]]
    clock: Clock
    limits: NodeLimits
    stats: NodeStats
    several_brokers: bool = False


class NodeSession:
    """One connection; `report` is called with what the edge node waits for, and with nothing once it is born."""

    def __init__(
        self, connection: Connection, parts: NodeParts, messages: NodeMessages, report: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._parts = parts
        self._messages = messages
        self._report = report
        self._host = HostState()
        self._host_changed = asyncio.Event()
        self._batches: asyncio.Queue[SampleBatch | None] = asyncio.Queue(_WAITING_BATCHES)
        """Samples to publish; None: there is something else to do."""
        self._wants_rebirth = False
        self._known = parts.definitions.known
        self._loop = asyncio.get_running_loop()
        self._born_at = self._reborn_at = self._looked_at = -math.inf
        self._confirmed_at = self._loop.time()
        self._sent: dict[str, str] = dict(parts.published)
        self._faults = LogThrottle(logger)

    async def run(self) -> None:
        """Publish until the connection or the host is gone. Raises Unavailable, alone or in exception groups."""
        await self._subscribe()
        async with background_task(self._listen(), "sparkplug commands"):
            await self._wait_for_host()
            try:
                await self._publish_all()
            finally:
                self._parts.stats.is_born = False
                await self._die()

    async def _subscribe(self) -> None:
        topics = [self._parts.topics.of_node("NCMD")]
        if self._parts.host:
            topics.append(state_topic(self._parts.host))
        for topic in topics:
            if refusal := await self._connection.follow(topic):
                raise self._connection.read_refused(topic, refusal)
        # Only to answer them with a line in the log.
        device_commands = self._parts.topics.of_device("DCMD", "+")
        if refusal := await self._connection.subscribe(device_commands):
            logger.warning("sparkplug subscription refused", topic=device_commands, reason=refusal)

    async def _wait_for_host(self) -> None:
        """Wait until the primary host is online. Raises HostOffline when it may be at another broker."""
        try:
            async with asyncio.timeout(self._parts.limits.host_s if self._parts.several_brokers else None):
                while self._parts.host and not self._host.online:
                    self._report(f"waits for the primary host {self._parts.host}")
                    self._host_changed.clear()
                    await self._host_changed.wait()
        except TimeoutError:
            raise HostOffline(
                Text.of("the primary host {host} is not online at this broker", host=self._parts.host)
            ) from None

    async def _publish_all(self) -> None:
        parts = self._parts
        await parts.streams.read_up(parts.table.learn)
        await self._bear()
        logger.info("sparkplug edge node born", devices=len(self._messages.alive), left_out=parts.table.left_out)
        self._report("")
        async for sample_batch in parts.streams.stored(dict(parts.published)):
            await self._send(self._messages.historical(sample_batch.samples, parts.clock()))
            self._sent[sample_batch.stream] = sample_batch.position
            await self._look()
        self._sent |= parts.streams.read
        async with background_task(parts.streams.follow(self._batches.put), "sparkplug samples"):
            while True:
                if (batch := await self._next()) is not None:
                    await self._send(self._messages.data(batch.samples, parts.clock()))
                    self._sent[batch.stream] = parts.streams.read[batch.stream] = batch.position
                await self._look()

    async def _next(self) -> SampleBatch | None:
        """Return the next samples; None when it is time to look at the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._parts.limits.look_s):
                return await self._batches.get()
        return None

    def _wake(self) -> None:
        # A full queue is worked on.
        with contextlib.suppress(asyncio.QueueFull):
            self._batches.put_nowait(None)

    async def _bear(self) -> None:
        self._known = self._parts.definitions.known
        self._wants_rebirth = False
        self._born_at = self._loop.time()
        await self._send(self._messages.births(self._parts.gone(), self._parts.clock()))
        self._parts.stats.births += 1
        self._parts.stats.is_born = True

    async def _send(self, drafts: Iterable[DraftMessage]) -> None:
        for draft in drafts:
            await self._connection.stream.drain()
            parts: list[bytes] = []
            for part in draft.parts:
                parts.append(part)
                if len(parts) % _TURN == 0:
                    # Other work gets its turn.
                    await asyncio.sleep(0)
            try:
                await self._connection.publish(Message(draft.topic, b"".join(parts)), 0)
                self._parts.stats.messages += 1
            except Refused as refused:
                self._faults.warning("sparkplug message not published", draft.topic, reason=refused.message)
            await asyncio.sleep(0)

    async def _look(self) -> None:
        """Send the births and deaths that are due, and save what was published. Raises HostOffline."""
        now, limits, table = self._loop.time(), self._parts.limits, self._parts.table
        if self._parts.host and not self._host.online:
            raise HostOffline(Text.of("the primary host {host} is offline", host=self._parts.host))
        if self._wants_rebirth and now - self._reborn_at >= limits.rebirth_s:
            self._reborn_at = now
            await self._bear()
        elif self._known is not self._parts.definitions.known and now - self._born_at >= limits.birth_s:
            table.announce(self._known_tags())
            await self._bear()
        elif table.mismatched and now - self._born_at >= limits.retype_s:
            await self._bear()
        if now - self._looked_at >= limits.look_s:
            self._looked_at = now
            await self._look_at_devices(now)
        if now - self._confirmed_at >= limits.confirm_s:
            self._confirmed_at = now
            await self._confirm()

    def _known_tags(self) -> list[str]:
        return [tag for tag in self._parts.definitions.known if self._parts.streams.wants(tag)]

    async def _look_at_devices(self, now: float) -> None:
        gone, at = self._parts.gone(), self._parts.clock()
        await self._send([self._messages.device_death(text, at) for text in sorted(self._messages.alive & gone)])
        unborn = self._parts.table.unborn
        if NODE in unborn and now - self._born_at >= self._parts.limits.birth_s:
            await self._bear()
            return
        missing = (unborn | set(self._parts.table.devices) - self._messages.alive) - gone - {NODE}
        await self._send([self._messages.device_birth(text, at) for text in sorted(missing)])

    async def _confirm(self) -> None:
        """Write down what was published, once the broker has answered a request that followed it."""
        sent = {name: position for name, position in self._sent.items() if self._parts.published.get(name) != position}
        if not sent:
            return
        await self._connection.subscribe(self._parts.topics.of_node("NCMD"))
        keys = self._parts.store.keys
        await self._parts.store.commit(join(sparkplug.save_cursor(keys, *row) for row in sent.items()))
        self._parts.published.update(sent)

    async def _die(self) -> None:
        """Publish the death certificate; the broker does it when this is not possible."""
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(_DEATH_WITHIN_S):
                await self._connection.publish(self._messages.death(self._parts.clock()), 1)
                await self._confirm()

    async def _listen(self) -> None:
        async for received in self._connection.messages():
            if received.packet_id:
                self._connection.acknowledge(received.packet_id)
            message = received.message
            if self._parts.host and message.topic == state_topic(self._parts.host):
                self._take_state(message.payload)
            elif message.retain:
                self._refuse(message.topic, "a retained command is older than this connection")
            else:
                self._take_command(message)

    def _take_state(self, payload: bytes) -> None:
        found = read_state(self._host, payload)
        if isinstance(found, str):
            self._faults.warning("sparkplug state ignored", "STATE", host=self._parts.host, reason=found)
            return
        self._host = found
        self._host_changed.set()
        self._wake()

    def _take_command(self, message: Message) -> None:
        try:
            metrics = decode_payload(message.payload).metrics
        except MalformedPayload as error:
            self._refuse(message.topic, f"it is not a payload: {error}")
            return
        is_of_node = message.topic == self._parts.topics.of_node("NCMD")
        for metric in metrics:
            if is_of_node and metric.name == REBIRTH:
                self._wants_rebirth = self._wants_rebirth or metric.value is True
                self._wake()
            else:
                self._refuse(message.topic, f"the gateway has no metric to write: {_called(metric)}")

    def _refuse(self, topic: str, reason: str) -> None:
        self._parts.stats.refused += 1
        self._faults.warning("sparkplug command refused", topic, topic=topic, reason=reason)


def _called(metric: Metric) -> str:
    return (metric.name or f"alias {metric.alias}")[:200]
