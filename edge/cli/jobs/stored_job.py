"""Reads a job from the store of the settings."""

from pathlib import Path

from edge.cli.terminal.store_access import open_access
from edge.station.stored_job import StoredJob, load


async def read(settings_file: Path | None, job_id: str) -> StoredJob:
    """Read a job from the store of the settings. Raises Refused, SettingsError and Unavailable."""
    async with open_access(settings_file) as at:
        return await load(at.store, job_id)
