"""Samples from the Redis of another system: messages of its channels and texts of its keys, which are only read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

import structlog

from edge.app.feature_ports import SampleSink
from edge.equipment.value_payload import ValueDecoder
from edge.features.telemetry.settings import RedisSourceSettings
from edge.features.telemetry.sources.device_carriers import DeviceCarriers
from edge.features.telemetry.sources.mqtt import MISSING, SamplePlacement, resolve_pointer, tag_name
from edge.foundation.backoff import Backoff
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import TaskGroup
from edge.model.payload import UnreadablePayloadError
from edge.store.other_redis import open_foreign

logger = structlog.get_logger(__name__)

MAX_PAYLOAD: Final = 65_536
MAX_CHANNELS: Final = 10_000
"""Channels and keys whose latest value is kept."""
_BACKOFF_S: Final = (0.5, 10.0)


class ForeignReader(Protocol):
    """The read-only side of a Redis of another system."""

    async def read_texts(self, keys: tuple[str, ...], most: int) -> dict[str, bytes | None]:
        """Return the texts at keys, cut to one byte more than `most`; None for no text. Raises Unavailable."""

    def listen(self, patterns: tuple[str, ...]) -> AbstractAsyncContextManager[AsyncIterator[tuple[str, bytes]]]:
        """Subscribe to patterns of channels; yield each message. Raises Unavailable."""


class RedisSource:
    """Keeps the latest value of each channel and key, and samples what is new once in an interval."""

    def __init__(
        self,
        name: str,
        settings: RedisSourceSettings,
        foreign: ForeignReader,
        sink: SampleSink,
        clock: Clock,
        backoff_s: tuple[float, float] = _BACKOFF_S,
        max_channels: int = MAX_CHANNELS,
        carriers: DeviceCarriers | None = None,
    ) -> None:
        self.dropped = 0
        """Messages of channels beyond `max_channels`."""
        self._decoder = ValueDecoder(name, settings.encoding)
        self._placement = SamplePlacement(settings, carriers or DeviceCarriers(), ":")
        self._max_channels = max_channels
        self._name = name
        self._settings = settings
        self._foreign = foreign
        self._sink = sink
        self._clock = clock
        self._backoff_s = backoff_s
        self._latest: dict[str, tuple[int, bytes]] = {}
        """Values that were not sampled yet, with the instant of their arrival."""
        self._is_away: set[str] = set()
        self._faults = LogThrottle(logger)

    async def run(self) -> None:
        """Read until cancelled; an unavailable server is waited for."""
        async with TaskGroup() as tasks:
            if self._settings.patterns:
                tasks.create_task(self._listen(), name=f"source {self._name} channels")
            tasks.create_task(self._sample(), name=f"source {self._name} samples")

    async def _listen(self) -> None:
        backoff = Backoff(shortest=self._backoff_s[0], longest=self._backoff_s[1], stable=self._backoff_s[1])
        while True:
            try:
                async with self._foreign.listen(self._settings.patterns) as messages:
                    self._on_read("channels")
                    async for channel, payload in messages:
                        self._note(channel, payload)
            except Unavailable as error:
                self._on_away("channels", error)
            await backoff.pause()

    async def _sample(self) -> None:
        while True:
            if self._settings.keys:
                await self._read_keys()
            latest, self._latest = self._latest, {}
            for name, (at, payload) in latest.items():
                await self._sink.pause()
                self._put(name, at, payload)
            await asyncio.sleep(self._settings.interval)

    async def _read_keys(self) -> None:
        try:
            found = await self._foreign.read_texts(self._settings.keys, MAX_PAYLOAD)
        except Unavailable as error:
            self._on_away("keys", error)
            return
        self._on_read("keys")
        for key, payload in found.items():
            if payload is None:
                self._drop(key, "there is no text at this key")
            else:
                self._note(key, payload)

    def _note(self, name: str, payload: bytes) -> None:
        if name not in self._latest and len(self._latest) >= self._max_channels:
            self.dropped += 1
            self._refuse("", f"more than {self._max_channels} channels", dropped=self.dropped)
            return
        self._latest[name] = (self._clock(), payload)

    def _put(self, name: str, at: int, payload: bytes) -> None:
        if len(payload) > MAX_PAYLOAD:
            self._refuse(name, f"more than {MAX_PAYLOAD} bytes")
            return
        try:
            value = resolve_pointer(self._decoder.decode(name, payload), self._settings.pointer)
        except UnreadablePayloadError as error:
            self._refuse(name, str(error))
            return
        if value is MISSING:
            self._refuse(name, f"no value at {self._settings.pointer!r}")
        elif (sample := self._placement.sample_of(name, value, at)) is not None:
            self._sink.put(sample)

    def _refuse(self, name: str, reason: str, **facts: int) -> None:
        self._sink.refuse(self._name, 1)
        if name and not self._settings.carrier:
            self._sink.doubt(tag_name(self._settings.tag, name, separator=":"))
        self._drop(name, reason, **facts)

    def _drop(self, name: str, reason: str, **facts: int) -> None:
        advice = f"Correct [source.{self._name}], or the system that writes it."
        self._faults.warning(
            "sample dropped", name, source=self._name, name=name, reason=reason, advice=advice, **facts
        )

    def _on_away(self, part: str, error: Unavailable) -> None:
        if part not in self._is_away:
            reason, advice = error.message, error.advice
            logger.warning("source unavailable, retrying", source=self._name, part=part, reason=reason, advice=advice)
        self._is_away.add(part)

    def _on_read(self, part: str) -> None:
        if part in self._is_away:
            logger.info("source available again", source=self._name, part=part)
        self._is_away.discard(part)


@asynccontextmanager
async def open_redis_source(
    name: str, section: RedisSourceSettings, sink: SampleSink, carriers: DeviceCarriers
) -> AsyncIterator[RedisSource]:
    """Open the source of a section of the settings, with connections of its own."""
    async with open_foreign(section.url) as foreign:
        yield RedisSource(name, section, foreign, sink, now_ms, carriers=carriers)
