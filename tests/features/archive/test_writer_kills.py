"""Killed at any point, the writer loses no job and archives none twice."""

import asyncio
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.features.archive.database import ArchiveFile
from edge.foundation.fault_points import FaultPoint
from edge.model.job_state import Cause
from tests.features.archive.archived import end_jobs, jobs_in, open_writer
from tests.station.plant import Plant

_ROUND = 6
"""The jobs that end for each kill; the MES clears every other one at once."""


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
async def test_killed_writer_loses_and_doubles_no_job(
    plant: Plant, redis: RedisSettings, archive_file: ArchiveFile, kills: int
) -> None:
    await open_writer(plant, archive_file)
    chance, correlation_ids = random.Random(1), list[str]()
    for number in range(kills):
        points = [f"{point}:1" for point in (FaultPoint.ARCHIVING, FaultPoint.ARCHIVED)]
        point = points[number % 3] if number % 3 < len(points) else ""
        process = await _start(redis, archive_file.file, point)
        job_ids = [f"J{number}-{index}" for index in range(_ROUND)]
        await end_jobs(plant, job_ids)
        correlation_ids += [(await plant.job(job_id)).correlation_id for job_id in job_ids]
        for job_id in job_ids[::2]:
            await plant.ask(Cause.CLEAR, job_id)
        if not point:
            await asyncio.sleep(chance.uniform(0, 0.02))  # the instant of the kill is to differ
            process.kill()
        assert await asyncio.wait_for(process.wait(), 60) == -9
    writer = await open_writer(plant, archive_file)
    await writer.flush()
    while await writer.flush():
        pass
    archived = Counter(job.id for job in jobs_in(archive_file.file))
    assert archived == Counter(correlation_ids)


async def _start(redis: RedisSettings, file: Path, point: str) -> asyncio.subprocess.Process:
    arguments = ("-m", "tests.features.archive.writer_process", redis.url, redis.prefix, str(file))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=os.environ | {"EDGE_FAULT": point}, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
    return process
