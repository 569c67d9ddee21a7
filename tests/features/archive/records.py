"""Records of jobs as the archive writes them, made without a station."""

from collections.abc import Sequence

from edge.features.archive.record import ORDER, PARAMETER, WORK_MASTER, Facts, JobRecord, Term, term_of
from edge.store.archive_backlog import JobDocuments
from tests.station.plant import NOW

NO_DOCUMENTS = JobDocuments({}, {}, {}, ())


def record(number: int, *terms: Term, verdict: str = "ok", work_master: str = "axle", **facts: object) -> JobRecord:
    """Return a job that ended `number` seconds after the beginning."""
    job_id, vin = f"J{number}", f"VIN{number:08}"
    own = (term_of(ORDER, job_id), term_of(PARAMETER + "vin", vin), term_of(WORK_MASTER, work_master))
    return JobRecord(
        id=f"response-{number}",
        revision=1,
        job_id=job_id,
        scope="station-1",
        work_master=work_master,
        started_at=NOW + number * 1000 - 500,
        ended_at=NOW + number * 1000,
        outcome="completed",
        verdict=verdict,
        remark="",
        facts=Facts({"vin": vin}, **facts),  # type: ignore[arg-type]
        terms=(*own, term_of("verdict", verdict), *terms),
        recipe=f"recipe {work_master}",
        documents=NO_DOCUMENTS,
    )


def records(numbers: Sequence[int]) -> list[JobRecord]:
    """Return jobs of these numbers."""
    return [record(number) for number in numbers]
