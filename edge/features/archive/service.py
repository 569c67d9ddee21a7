"""Opens the archive of a gateway: a writer for each scope, and what people and programs learn of it."""

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.config import password_of
from edge.features.archive.calls import calls_of
from edge.features.archive.database import ArchiveFile, ArchiveLimits
from edge.features.archive.settings import ArchiveSettings
from edge.features.archive.writer import ArchiveWriter
from edge.foundation.errors import SettingsError
from edge.foundation.instant import now_ms
from edge.foundation.metric import MetricFamily, counter, gauge
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick
from edge.ports.sample_lines import Sample
from edge.station.public_job import equipment_by_type
from edge.store import archive_backlog

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from edge.app.feature_ports import Telemetry
    from edge.features.archive.plant import Forwarder

_MONTH_MS: Final = 30 * 24 * 3600 * 1000 + 12 * 3600 * 1000
_SAMPLE_S: Final = 10.0
FAILING_TAG: Final = "gateway.archive_failing"
LOST_TAG: Final = "gateway.jobs_lost_to_archive"


class Archive(Struct, frozen=True):
    """The port of the archive: the file that the station page and calls read."""

    file: "Path"
    writers: "Sequence[ArchiveWriter]"
    forwarder: "Forwarder | None" = None

    def problems(self) -> "Iterable[Text]":
        """Yield why jobs are not archived now."""
        for fault in {writer.fault for writer in self.writers if writer.fault}:
            yield Text.of("results are not archived: {reason}", reason=fault)
        if self.forwarder is not None and self.forwarder.fault:
            yield Text.of("results wait for the plant: {reason}", reason=self.forwarder.fault)

    async def metrics(self) -> "Sequence[MetricFamily]":
        """Return what was archived, what waits, and what was lost, for a scrape."""
        writers = self.writers
        return (
            counter("archived_jobs", "Jobs that were archived.", (), [((), sum(item.archived for item in writers))]),
            gauge(
                "archive_backlog",
                "Removed jobs that wait for the archive.",
                (),
                [((), sum(item.waiting for item in writers))],
            ),
            counter(
                "forwarded_jobs",
                "Jobs that were copied to the PostgreSQL of the plant.",
                (),
                [((), self.forwarder.forwarded)] if self.forwarder else [],
            ),
            counter(
                "jobs_lost_to_archive",
                "Jobs that left the store before they could be archived.",
                (),
                [((), max((item.lost for item in writers), default=0))],
            ),
        )


async def open_archive(stack: AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Write the ended jobs of our scopes to the archive until the stack closes.

    Of several gateways on a store the one that publishes a scope archives it.
    """
    settings = core.settings.section(ArchiveSettings)
    limits = ArchiveLimits(settings.months * _MONTH_MS, settings.max_bytes)
    writers = []
    equipment = equipment_by_type(core.settings.southbound)
    for scope in core.scopes:
        file = ArchiveFile(settings.file, limits)
        writer = ArchiveWriter(core.store, scope, file, now_ms, settings.interval, equipment=equipment)
        stack.push_async_callback(writer.close)
        core.runs.listeners.append(writer.note)
        stack.callback(core.runs.listeners.remove, writer.note)
        writers.append(writer)
        work = partial(_archive, core, scope, writer)
        await core.keep_running_while(stack, core.instance.publisher_gates[scope], f"archive of {scope}", work)
    archive = Archive(settings.file, tuple(writers), await _open_forwarder(stack, core, settings))
    core.health.problems.append(archive.problems)
    if (telemetry := core.ports.get("telemetry")) is not None:
        await core.keep_running(stack, "samples of the archive", partial(_sample, archive, telemetry))
    return Opened(port=archive, calls=calls_of(settings.file), metrics=(archive.metrics,))


async def _open_forwarder(stack: AsyncExitStack, core: GatewayParts, settings: ArchiveSettings) -> "Forwarder | None":
    """Forward jobs to the plant until the stack closes, where the settings name a PostgreSQL. Raises SettingsError."""
    if not settings.url:
        return None
    try:
        # The library is an extra of the package.
        from edge.features.archive.plant import Forwarder  # noqa: PLC0415
    except ImportError as error:
        problem = Text.of("archive.url: needs a library that is not installed: {reason}", reason=error)
        raise SettingsError([problem], "Install it: pip install 'microdcs-edge[archive]'") from None
    gateway = core.settings.gateway.name
    forwarder = Forwarder(settings.file, settings.url, password_of(settings), gateway, settings.interval)
    await core.keep_running(stack, "results of the plant", forwarder.run)
    return forwarder


async def _archive(core: GatewayParts, scope: str, writer: ArchiveWriter) -> None:
    await core.store.commit(archive_backlog.announce(core.store.keys, scope, core.settings.gateway.name))
    await writer.run()


async def _sample(archive: Archive, telemetry: "Telemetry") -> None:
    """Queue samples of whether the archive fails, and how many jobs it lost, when that changes."""
    before: tuple[int, int] | None = None
    while True:
        values = (
            int(any(writer.fault for writer in archive.writers)),
            max((writer.lost for writer in archive.writers), default=0),
        )
        if values != before:
            for tag, value in zip((FAILING_TAG, LOST_TAG), values, strict=True):
                telemetry.queue.put(Sample(now_ms(), tag, value))
            before = values
        await next_tick(_SAMPLE_S)
