"""An archive of a million jobs answers at once, and a job costs little flash."""

import random
from pathlib import Path

import pytest

from edge.features.archive.database import ArchiveFile
from tests.features.archive.conftest import LIMITS
from tests.features.archive.million import fill, job, timed

_MOST_BYTES = 64 << 10
_VIN_MS, _PAGE_MS = 50.0, 300.0


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_million_jobs_are_searched_within_the_limits(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"
    fill(file)
    took = {name: best for name, _, _, best in timed(file)}
    assert took.pop("VIN") <= _VIN_MS
    assert {name: ms for name, ms in took.items() if ms > _PAGE_MS} == {}


def test_job_of_a_minute_costs_at_most_64_kib_of_flash(tmp_path: Path) -> None:
    file, chance = ArchiveFile(tmp_path / "results.sqlite", LIMITS), random.Random(1)
    for start in range(0, 5000, 1000):
        file.write([job(number, chance) for number in range(start, start + 1000)], {"s": "1-0"})
    file.close()
    before = written_bytes()
    for number in range(5000, 5200):
        file.write([job(number, chance)], {"s": f"{number}-0"})
    file.close()
    # A file system in memory counts nothing.
    assert (written_bytes() - before) / 200 <= _MOST_BYTES


def written_bytes() -> int:
    """Return the bytes that this process has written to disks."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])
