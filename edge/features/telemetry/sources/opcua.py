"""Samples of variables of an OPC UA server: monitored over a session of their own, and never written."""

import asyncio
import contextlib
from typing import Final

import structlog

from edge.features.telemetry.sources.opcua_settings import OpcuaSourceSettings, node_list
from edge.features.telemetry.sources.sample_sink import SampleSink
from edge.foundation.backoff import Backoff
from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.instant import Clock
from edge.links.log_throttle import LogThrottle
from edge.links.opcua import ClientSession, open_client
from edge.links.opcua_values import MonitoredValue, ValueWatch
from edge.ports.sample_lines import Quality, Sample
from edge.ports.sample_value import as_number

logger = structlog.get_logger(__name__)

RETRY_NODES_S: Final = 30.0
"""Delay before the next search for nodes that the server did not have."""
_BACKOFF_S: Final = (0.5, 30.0)


class OpcuaSource:
    """Connects to the server and again after each loss; meanwhile its tags have bad quality."""

    def __init__(
        self,
        name: str,
        settings: OpcuaSourceSettings,
        sink: SampleSink,
        clock: Clock,
        retry_nodes_s: float = RETRY_NODES_S,
        backoff_s: tuple[float, float] = _BACKOFF_S,
    ) -> None:
        self._name = name
        self._settings = settings
        self._sink = sink
        self._clock = clock
        self._retry_nodes_s = retry_nodes_s
        self._backoff_s = backoff_s
        self._last: dict[str, Sample] = {}
        self._is_lost = False
        self._faults = LogThrottle(logger)

    async def run(self) -> None:
        """Monitor the variables until cancelled; an unavailable server is waited for."""
        backoff = Backoff(shortest=self._backoff_s[0], longest=self._backoff_s[1], stable=self._backoff_s[1])
        while True:
            try:
                async with open_client(self._settings.url, settings=self._settings.client) as session:
                    await self._follow(session)
            except EdgeError as error:
                self._on_lost(error)
            except Exception as error:  # a server that breaks our reader must not end the gateway
                logger.exception("source met a defect, retrying", source=self._name)
                self._on_lost(Unavailable(f"a defect of this software: {error!r}"))
            await backoff.pause()

    async def _follow(self, session: ClientSession) -> None:
        limits = self._settings.sampling_interval, self._settings.queue_size
        missing = [MonitoredValue(tag, node, *limits) for tag, node in node_list(self._settings.nodes)]
        async with session.watch_values(self._clock) as watch:
            missing = await self._add(watch, missing)
            self._is_lost = False
            logger.info("source connected", source=self._name, url=self._settings.url)
            clock = asyncio.get_running_loop().time
            retry_at = clock() + self._retry_nodes_s
            while True:
                # Also next to nodes that change all the time.
                if missing and clock() >= retry_at:
                    missing = await self._add(watch, missing)
                    retry_at = clock() + self._retry_nodes_s
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(retry_at if missing else None):
                        self._take(await watch.take())

    async def _add(self, watch: ValueWatch, values: list[MonitoredValue]) -> list[MonitoredValue]:
        """Monitor values; log the refused ones and return them."""
        refused = await watch.add(values)
        for tag, reason in refused.items():
            advice = f"Correct nodes of [source.{self._name}], or the server; it is tried again."
            self._faults.warning("source node refused", tag, source=self._name, tag=tag, reason=reason, advice=advice)
            self._take(Sample(self._clock(), tag, None, Quality.BAD))
        return [each for each in values if each.tag in refused]

    def _take(self, sample: Sample) -> None:
        """Queue a sample, except a change within the deadband.

        The server gets no deadband: some compare a value with the one before, and a slow drift never exceeds it.
        """
        last = self._last.get(sample.tag)
        if last is not None and last.quality is sample.quality:
            before, now = as_number(last.value), as_number(sample.value)
            if before is not None and now is not None and abs(now - before) <= self._settings.deadband > 0:
                return
            if sample.quality is Quality.BAD and sample.value == last.value:
                return
        self._last[sample.tag] = sample
        self._sink.put(sample)

    def _on_lost(self, error: EdgeError) -> None:
        if not self._is_lost:
            reason, advice = error.message, error.advice
            logger.warning("source disconnected, retrying", source=self._name, reason=reason, advice=advice)
        self._is_lost = True
        for tag, _ in node_list(self._settings.nodes):
            self._take(Sample(self._clock(), tag, None, Quality.BAD))
