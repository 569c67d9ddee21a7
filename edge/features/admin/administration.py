"""What the pages of administration work with."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from edge.access.web_audit import WebCaller
from edge.app.page_part import PageServices
from edge.config import Settings
from edge.foundation.errors import Refused
from edge.station.decision import LoadedJob


class Administration(Struct, frozen=True):
    """The settings of the gateway, the file that they came from, None without one, and the jobs that run."""

    settings: Settings
    settings_file: Path | None = None
    active_jobs: Callable[[], Iterable[LoadedJob]] = tuple
    uploading: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a backup is uploaded and checked: one at a time."""

    def waiting_for(self, equipment: str) -> list[str]:
        """Return the ids of the jobs that wait for an answer or an event of equipment."""
        section = self.settings.southbound.get(equipment)
        type_ids = section.type_ids if section else ()
        return [loaded.job.job_id for loaded in self.active_jobs() if _waits_for(loaded, type_ids)]


@contextmanager
def recorded(services: PageServices, caller: WebCaller, action: str, subject: str, comment: str = "") -> Iterator[None]:
    """Record a change in the audit trail; one that is refused with its reason, which is raised again."""
    try:
        yield
    except Refused as refusal:
        services.audit.called(caller, action, subject, comment, refusal.message)
        raise
    services.audit.called(caller, action, subject, comment)


def _waits_for(loaded: LoadedJob, type_ids: Collection[str]) -> bool:
    run, actions = loaded.stored.run, loaded.net.actions
    return any(actions[key.latest].type_id in type_ids for key in run.open)


def administration(services: PageServices) -> Administration:
    """Return what the gateway has opened for its pages."""
    opened: Administration = services.ports["admin"]
    return opened
