"""Samples of variables of an OPC UA server: monitored over a session of their own, and never written."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Annotated, Final, Literal

import structlog
from msgspec import Meta

from edge.app.feature_ports import SampleSink
from edge.config import OpcuaEquipmentSettings, Settings
from edge.features.telemetry.settings import SourceSettings
from edge.foundation.backoff import Backoff
from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, open_client
from edge.links.opcua_subscription import MonitoredValue, ValueWatch
from edge.ports.sample_lines import Quality, Sample
from edge.ports.sample_value import as_number

_NODE: Final = r"^[^=\s]+\s*=\s*(nsu=[^;]+;[isgb]=.+|ns=\d+;[isgb]=.+|[isgb]=.+|/.+)$"
_NODE_EXPECTED: Final = "TAG = NODE, as in oven.temp = nsu=urn:oven;s=Temperature or oven.temp = /Oven/Temperature"


class OpcuaSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """`[source.<name>]`: samples of variables of an OPC UA server, which is only read."""

    kind: Annotated[Literal["opcua"], Meta(description="Where the samples come from.")]
    url: Annotated[
        str,
        Meta(
            description="The server.",
            extra={"schemes": ("opc.tcp",)},
        ),
    ]
    nodes: Annotated[
        tuple[Annotated[str, Meta(pattern=_NODE, extra={"expected": _NODE_EXPECTED})], ...],
        Meta(
            description="Tags with their variables: a NodeId, best with the URI of its namespace (`nsu=`), or the "
            "names of a path below Objects.",
            min_length=1,
        ),
    ]
    sampling_interval: Annotated[
        float, Meta(ge=0, le=3_600_000, description="Milliseconds; 0 is the fastest that the server has.")
    ] = 1000.0
    deadband: Annotated[
        float,
        Meta(
            ge=0, description="Smaller changes of a number since its last sample are not sampled; 0 takes each change."
        ),
    ] = 0.0
    queue_size: Annotated[
        int, Meta(ge=1, le=10_000, description="Values that the server queues; on overflow it drops the oldest.")
    ] = 10
    security: Annotated[
        Literal["encrypted", "none"],
        Meta(
            description="`encrypted` takes the strongest policy a server offers; `none` is for a network with "
            "trusted devices only."
        ),
    ] = "encrypted"
    cert_file: Annotated[str, Meta(description="Our certificate, for `encrypted`.", extra={"must_be": "file"})] = ""
    key_file: Annotated[str, Meta(description="Private key of our certificate.", extra={"must_be": "file"})] = ""
    trusted: Annotated[
        str, Meta(description="Directory of the certificates of servers that we trust.", extra={"must_be": "directory"})
    ] = ""
    username: Annotated[str, Meta(description="User name; empty logs in as anonymous.")] = ""
    password: Annotated[str, Meta(description="Password of that user.", extra={"secret": True})] = ""
    password_file: Annotated[
        str,
        Meta(
            description="File that holds the password; systemd's credentials are found by their bare name.",
            extra={"must_be": "file"},
        ),
    ] = ""

    @property
    def client(self) -> OpcuaEquipmentSettings:
        """Return the settings of the session."""
        return OpcuaEquipmentSettings(
            kind=self.kind,
            type_ids=(),
            url=self.url,
            security=self.security,
            cert_file=self.cert_file,
            key_file=self.key_file,
            trusted=self.trusted,
            username=self.username,
            password=self.password,
        )

    def conflicts(self, _settings: Settings) -> Iterator[str | Text]:
        """Yield missing TLS files, TLS files that are unused without encryption, and tags that occur twice."""
        yield from self.client.tls_conflicts()
        tags = [tag for tag, _ in node_list(self.nodes)]
        yield from (
            Text.of("nodes: the tag {tag} occurs twice", tag=tag)
            for tag in sorted({text for text in tags if tags.count(text) > 1})
        )


def node_list(nodes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the tags with their nodes."""
    split = (text.partition("=") for text in nodes)
    return [(tag.strip(), node.strip()) for tag, _, node in split]


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
                self._on_lost(Unavailable(Text.of("a defect of this software: {reason}", reason=repr(error))))
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
            advice = f"Correct nodes of [source.{self._name}], or the server; it is retried."
            self._faults.warning("source node refused", tag, source=self._name, tag=tag, reason=reason, advice=advice)
            self._take(Sample(self._clock(), tag, None, Quality.BAD))
        return [value for value in values if value.tag in refused]

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
