"""Fills an empty store from the station files of this gateway, and watches how the store differs from them."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import structlog
from msgspec import Struct, field

from edge.access.initialization import FillOutcome
from edge.app.component import ComponentPart
from edge.app.documents import GuardedStore
from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.features.station_files.apply import fill_store, find_differences, load_mark, read_files
from edge.features.station_files.content import Signature, StationFiles, signature
from edge.features.station_files.documents import StationDocuments
from edge.features.station_files.objects import ObjectChange, ObjectDifference, summary
from edge.foundation.instant import now_ms
from edge.foundation.metric import MetricFamily, gauge
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.store import initialization
from edge.store.background import poll_store
from edge.store.initialization import FillState

logger = structlog.get_logger(__name__)

_MOST_NAMED = 5


class StationDrift(Struct):
    """The result of the last comparison of the store with the station files.

    `text` is None without station files, and empty without a difference; `counts` are the differences by their kind,
    `faults` are those of the files: if there are any, the store is not compared.
    """

    text: str | Text | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    faults: int = 0

    def notes(self) -> Iterable[Text]:
        """Yield what the status of the gateway adds."""
        if self.text:
            yield Text.of("station differs from its files: {differences}", differences=self.text)

    async def metrics(self) -> Sequence[MetricFamily]:
        """Return the differences, for a scrape; nothing without station files."""
        if self.text is None:
            return ()
        differing = [((change,), count) for change, count in self.counts.items()]
        meaning = "Objects of the store that differ from the station files."
        return (
            gauge("station_drift", meaning, ("change",), differing),
            gauge("station_file_faults", "Faults in the station files.", (), [((), self.faults)]),
        )


async def open_station_files(stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Fill an empty store, then compare the store with the files until the stack closes."""
    documents = StationDocuments(core.settings, core.ports)
    await fill_from_files(core, documents)
    drift = StationDrift()
    core.health.notes.append(drift.notes)
    await core.keep_running(stack, "station files", StationWatch(core, documents, drift).run)

    async def describe() -> ComponentPart:
        return ComponentPart({"drift": drift.text})

    return Opened(described=(describe,), metrics=(drift.metrics,))


async def fill_from_files(core: GatewayParts, documents: StationDocuments) -> None:
    """Fill an empty store from the station files, once for all gateways on it.

    Raises SettingsError with all faults of the files of an empty store, or for an unknown mark of the store.
    """
    state = await initialization.load_state(core.store)
    folder = _folder(core)
    if state is FillState.FILLED or folder is None or not await asyncio.to_thread(_holds_files, folder):
        return

    target = GuardedStore(core.store, now_ms)
    outcome, written = await fill_store(target, core.instance.token, core.scopes, folder, documents)
    logger.info("store filling ended", outcome=outcome.value, folder=str(folder), objects=written)
    if outcome is FillOutcome.FILLED_HERE:
        core.trail.record(
            AuditRecord(
                at=now_ms(),
                kind="station.fill",
                instance=core.settings.gateway.name,
                user=core.settings.gateway.name,
                action="station apply",
                subject=str(folder),
                status="Good",
                comment=f"{written} objects into an empty store",
            )
        )


class StationWatch:
    """Compares the store with the files again and again; reads either of them only after a change."""

    def __init__(self, core: GatewayParts, documents: StationDocuments, drift: StationDrift) -> None:
        self._core = core
        self._drift = drift
        self._documents = documents
        self._signature: Signature | None = None
        self._read: StationFiles | None = None
        self._compared: object = None
        """The marks of the files and of the store at the last comparison."""
        self._reported: str | Text | None = None

    async def run(self) -> None:
        """Compare until cancelled."""
        await poll_store(self._core.store.defects, "station files", self.compare, self._core.settings.station.compare)

    async def compare(self) -> None:
        """Compare once. Raises Unavailable without the store."""
        folder = _folder(self._core)
        if folder is None or not await asyncio.to_thread(_holds_files, folder):
            self._compared = None
            self._set(None, {}, 0, ())
            return

        files = await self._files(folder)
        # The marks are read before the objects: what changes meanwhile is compared again.
        marks = self._signature, await load_mark(self._core.store, self._documents)
        if marks == self._compared:
            return
        if files.faults:
            count = len(files.faults)
            text = (
                Text.of("1 fault in the files") if count == 1 else Text.of("{count} faults in the files", count=count)
            )
            self._set(text, {}, count, files.faults)
            self._compared = marks
            return
        object_differences = await find_differences(self._core.store, self._core.scopes, files.objects, self._documents)
        counts = {
            change.value: sum(object_difference.change is change for object_difference in object_differences)
            for change in ObjectChange
        }
        self._set(summary(object_differences), counts, 0, _names(object_differences))
        self._compared = marks

    async def _files(self, folder: Path) -> StationFiles:
        now = await asyncio.to_thread(signature, folder)
        if self._read is None or now != self._signature:
            self._read = await read_files(folder, self._documents)
            self._signature = now
        return self._read

    def _set(self, text: str | Text | None, counts: Mapping[str, int], faults: int, examples: Sequence[str]) -> None:
        drift = self._drift
        drift.text, drift.counts, drift.faults = text, counts, faults
        if text and text != self._reported:
            advice = "Show all with `edge station diff`; apply the files, or export the store into them."
            logger.warning("station drift", drift=str(text), examples=list(examples[:_MOST_NAMED]), advice=advice)
        elif self._reported and not text:
            logger.info("station drift ended")
        self._reported = text


def _names(found: Iterable[ObjectDifference]) -> list[str]:
    return [f"{object_difference.subject} {object_difference.change}" for object_difference in found]


def _folder(core: GatewayParts) -> Path | None:
    files = core.settings.station.files
    return Path(files) if files else None


def _holds_files(folder: Path) -> bool:
    """Return whether a folder may hold station files; what reads them, and reports faults, is imported only then."""
    try:
        if not folder.is_dir():
            return False
        found = (path.relative_to(folder) for path in folder.rglob("*.json"))
        return not os.access(folder, os.R_OK | os.X_OK) or any(not _is_hidden(item) for item in found)
    except PermissionError:  # another user's settings are near it
        return False


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
