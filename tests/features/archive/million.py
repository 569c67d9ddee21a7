"""Makes an archive of many jobs: a year of a station with one job a minute, and more.

python -m tests.features.archive.million FILE [JOBS]
"""

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edge.features.archive.database import ArchiveFile, ArchiveLimits
from edge.features.archive.record import (
    CODE,
    EQUIPMENT,
    MATERIAL,
    ORDER,
    OUTCOME,
    PARAMETER,
    PERSON,
    SCOPE,
    VERDICT,
    VIOLATION,
    WORK_MASTER,
    Facts,
    JobRecord,
    term_of,
)
from edge.features.archive.search import ArchivePage, Search, find_jobs
from edge.store.archive_backlog import JobDocuments
from tests.station.plant import NOW

JOBS = 1_000_000
_BATCH = 1000
_MINUTE_MS = 60_000
_STEPS = ("Position", "Tighten", "Turn", "Tighten again", "Inspect", "Confirm")
_BOLTS = 8


def vin_of(number: int) -> str:
    """Return the VIN of a job."""
    return f"WVWZZZ1JZX{number * 7_919 % 10_000_000:07}"


def job(number: int, chance: random.Random) -> JobRecord:
    """Return a job as a station with a wrench of eight bolts and a camera has it."""
    job_id, vin, is_ok = f"ORDER-{number:07}", vin_of(number), chance.random() > 0.02
    work_master = f"WM-AXLE-{number % 12}"
    reasons = () if is_ok else (f"tighten: {chance.choice(('torque high', 'torque low', 'angle high'))}",)
    ended_at = NOW + number * _MINUTE_MS
    verdict = "ok" if is_ok else "not_ok"
    terms = [
        (ORDER, job_id),
        (SCOPE, "station-1"),
        (WORK_MASTER, work_master),
        (OUTCOME, "completed"),
        (VERDICT, verdict),
        (PARAMETER + "vin", vin),
        (PARAMETER + "colour", chance.choice(("red", "blue", "grey"))),
        (PARAMETER + "sequence", str(number)),
        (EQUIPMENT, f"wrench-{number % 3}"),
        (PERSON, f"A{number % 40}"),
        (MATERIAL, f"LOT-{number // 50}"),
        (CODE, f"(01)09501101530003(21){number:08}"),
        *((VIOLATION, reason) for reason in reasons),
        *((VIOLATION, reason.partition(": ")[2]) for reason in reasons),
    ]
    return JobRecord(
        id=f"{chance.getrandbits(128):032x}",
        revision=1,
        job_id=job_id,
        scope="station-1",
        work_master=work_master,
        started_at=ended_at - 48_000,
        ended_at=ended_at,
        outcome="completed",
        verdict=verdict,
        remark="; ".join(reasons),
        facts=Facts({"vin": vin}, {step: chance.randint(2000, 12_000) for step in _STEPS}, reasons),
        terms=tuple(term_of(name, value) for name, value in terms),
        recipe=f"the recipe of {work_master} " * 40,
        documents=_documents(job_id, vin, chance),
    )


def _documents(job_id: str, vin: str, chance: random.Random) -> JobDocuments:
    """Return documents of the size of a job with eight bolts; they cannot be decoded."""
    bolts = [
        {
            "evaluation": "OK",
            "torque": {"value": round(chance.gauss(85, 2), 2), "unit": "N·m"},
            "angle": {"value": round(chance.gauss(41, 3), 1), "unit": "°"},
            "trace": {
                "points": 4000,
                "channels": ["Angle", "Torque"],
                "size": 8379,
                "file": f"{job_id}/{chance.getrandbits(256):064x}.json.gz",
                "sha256": f"{chance.getrandbits(256):064x}",
            },
        }
        for _ in range(_BOLTS)
    ]
    text = msgspec.json.encode({"JobOrderID": job_id, "vin": vin, "results": bolts}).decode()
    decisions = tuple((f"{number}-{chance.randint(0, 50_000)}", {"ok": "[[1,2],[3]]"}) for number in range(30))
    return JobDocuments(
        {"order": text[:600]}, {"response": text}, {"action:tighten": text, "run": text[:300]}, decisions
    )


def fill(file: Path, jobs: int = JOBS) -> None:
    """Write jobs into a new archive."""
    archive, chance = ArchiveFile(file, ArchiveLimits(1 << 50, 1 << 50)), random.Random(1)
    for start in range(0, jobs, _BATCH):
        archive.write([job(number, chance) for number in range(start, min(start + _BATCH, jobs))], {"s": f"{start}-0"})
    archive.close()


def timed(file: Path) -> Iterator[tuple[str, int, float, float]]:
    """Yield for each question how many jobs it finds, and the milliseconds of the first try and of the best."""
    questions = {
        "VIN": Search(text=vin_of(123_456)),
        "newest": Search(),
        "not OK": Search(terms=(term_of(VERDICT, "not_ok"),)),
        "not OK of a person": Search(terms=(term_of(VERDICT, "not_ok"), term_of(PERSON, "A17"))),
        "beginning of a VIN": Search(text=vin_of(123_456)[:-1]),
        "common beginning": Search(text="WVW"),
    }
    for name, search in questions.items():
        took, page = list[float](), ArchivePage(jobs=())
        for _ in range(5):
            began = time.perf_counter()
            page = find_jobs(file, search, 50)
            took.append((time.perf_counter() - began) * 1000)
        yield name, len(page.jobs), took[0], min(took)


if __name__ == "__main__":
    target, many = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else JOBS
    if not target.exists():
        fill(target, many)
    for name, found, first, best in timed(target):
        sys.stdout.write(f"{name}: {found} jobs, first {first:.1f} ms, best {best:.1f} ms\n")
