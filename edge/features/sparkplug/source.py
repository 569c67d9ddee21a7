"""Samples of edge nodes of Sparkplug B: reads their births, data and deaths, and asks for births that it missed."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final

import structlog

from edge.app.feature_ports import MqttSource, SampleSink
from edge.features.sparkplug.births_and_deaths import MAX_PAYLOAD, BornNodes, NodeName
from edge.features.sparkplug.payload import DataType, Metric, MetricPayload, encode_payload
from edge.foundation.errors import EdgeError
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.links.mqtt import Message, MqttSession, Settle
from edge.ports.sample_lines import Sample

logger = structlog.get_logger(__name__)

LARGEST_PACKET: Final = 2 * MAX_PAYLOAD
_REBIRTH: Final = "Node Control/Rebirth"
_RETRY_S: Final = 1.0
"""Delay before the next look for edge nodes that may be asked by now."""
_LOGGED_FAULTS: Final = 3
"""Reasons of one message that are logged."""


class SparkplugSource:
    """Turns the messages of edge nodes into samples; while the broker is away their tags have bad quality."""

    def __init__(self, source: MqttSource, sink: SampleSink, clock: Clock) -> None:
        self._source = source
        self._sink = sink
        self._clock = clock
        self._nodes = BornNodes(source.tag)
        self._missing = set(_named(source.topic))
        """Edge nodes whose births we missed, to be asked as soon as they may be."""
        self._to_ask: deque[NodeName] = deque()
        self._awake = asyncio.Event()
        self._faults = LogThrottle(logger)

    async def open(self, session: MqttSession) -> None:
        """Subscribe to the topics. Raises Unavailable when the broker does not confirm."""
        session.listeners.append(self.on_connection)
        await session.subscribe(self._source.topic, self.take)
        self._awake.set()

    def on_connection(self, connected: bool) -> None:  # noqa: FBT001 - as the session calls its listeners
        """Forget the births when the broker is lost, and ask for them when it is back: some were missed."""
        if connected:
            self._awake.set()
            return
        if self._nodes.names:
            self._missing = {*_named(self._source.topic), *self._nodes.names}
        self._put(self._nodes.forget(self._clock()))

    async def take(self, message: Message) -> Settle:
        """Queue the samples of a message and return how to wait until they are stored, or were dropped."""
        await self._sink.pause()
        taken = self._nodes.take(message.topic, message.payload, self._clock())
        self._put(taken.samples)
        if taken.faults:
            self._sink.refuse(self._source.name, taken.refused)
            self._warn(message.topic[:200], "; ".join(taken.faults[:_LOGGED_FAULTS]), refused=taken.refused)
        if taken.ask is not None:
            self._to_ask.append(taken.ask)
            self._awake.set()
        return partial(self._sink.settle, self._sink.received)

    async def run(self, session: MqttSession) -> None:
        """Send the commands that ask edge nodes for their births, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S if self._missing else None):
                    await self._awake.wait()
            self._awake.clear()
            if not session.connected:
                continue
            # Those that were born again are asked too: a birth of one of their devices may have been missed.
            self._to_ask += (node_name for node_name in self._missing if self._nodes.may_ask(node_name, self._clock()))
            while self._to_ask:
                node = self._to_ask.popleft()
                self._missing.discard(node)
                await self._request_births(session, node)

    async def _request_births(self, session: MqttSession, node: NodeName) -> None:
        topic = f"spBv1.0/{node.group}/NCMD/{node.node}"
        now = self._clock()
        metric = Metric(value=True, name=_REBIRTH, timestamp=now, datatype=DataType.BOOLEAN)
        try:
            await session.publish(topic, encode_payload(MetricPayload(now, (metric,))), qos=0)
        except EdgeError as error:
            self._warn(topic, error.message)
        else:
            logger.info("sparkplug rebirth requested", source=self._source.name, group=node.group, node=node.node)

    def _put(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            self._sink.put(sample)

    def _warn(self, topic: str, reason: str, **facts: int) -> None:
        name = self._source.name
        advice = f"Correct the edge node, or [source.{name}]; it is asked for births that are missing."
        self._faults.warning(
            "sparkplug data refused",
            topic,
            source=self._source.name,
            topic=topic,
            reason=reason,
            advice=advice,
            **facts,
        )


def _named(topic: str) -> list[NodeName]:
    """Return the edge node that a topic filter names, if it names one."""
    match topic.split("/"):
        case [_, group, _, node, *_] if not {group, node} & {"+", "#"}:
            return [NodeName(group, node)]
        case _:
            return []
