"""Jobs that have ended at a station, and what the archive has of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from edge.features.archive.database import ArchiveFile
from edge.features.archive.search import ArchivedJob, Search, find_jobs
from edge.features.archive.writer import ArchiveWriter
from edge.model.isa95 import Parameter
from edge.model.job_state import Cause, JobState
from edge.station.public_job import NO_EQUIPMENT
from edge.store import archive_backlog
from tests.station.plant import NOW, SCOPE, Plant, order


async def end_jobs(plant: Plant, job_ids: Sequence[str], master: str = "linear") -> None:
    """Run jobs to their end, each with its id as its VIN."""
    async with plant.at_work():
        for job_id in job_ids:
            parameters = (Parameter(id="vin", value=f"VIN-{job_id}"),)
            await plant.order(Cause.STORE_AND_START, order(job_id, master, job_order_parameters=parameters))
        for job_id in job_ids:
            await plant.until_state(job_id, JobState.ENDED)


async def open_writer(plant: Plant, file: ArchiveFile, equipment: Mapping[str, str] = NO_EQUIPMENT) -> ArchiveWriter:
    """Return a writer for the scope of the station; from now on removed jobs wait for it."""
    await plant.store.commit(archive_backlog.announce(plant.store.keys, SCOPE, "edge"))
    return ArchiveWriter(plant.store, SCOPE, file, lambda: NOW, 60.0, equipment=equipment)


def jobs_in(file: Path, search: Search | None = None) -> list[ArchivedJob]:
    """Return what the archive has, the newest first."""
    return list(find_jobs(file, search or Search(), 1000).jobs)


def ids_in(file: Path, search: Search | None = None) -> list[str]:
    """Return the JobOrderIDs that the archive has, in the order of their names."""
    return sorted(job.job_order_id for job in jobs_in(file, search))
