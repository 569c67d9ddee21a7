"""Writes the response of a job from its run: ISA95JobResponseDataType of OPC 10031-4."""

from collections.abc import Iterator
from datetime import UTC, datetime

from edge.model.isa95 import JobResponse, LocalizedText, Parameter
from edge.model.job_state import state_entries
from edge.sfc.net import Net
from edge.sfc.run import Run, results
from edge.store.jobs import Job

ERROR_ID = "Error"


def job_response(job: Job, ran: tuple[Net, Run] | None) -> JobResponse:
    """Give the response as it stands: times, state, the result of each action, the error if the job failed."""
    return JobResponse(
        job_response_id=job.correlation_id,
        job_order_id=job.job_id,
        description=LocalizedText(text=job.error, locale="en") if job.error else None,
        start_time=_instant(job.started_at),
        end_time=_instant(job.ended_at),
        job_state=state_entries(job.status),
        job_response_data=tuple(_data(job, ran)) or None,
    )


def _data(job: Job, ran: tuple[Net, Run] | None) -> Iterator[Parameter]:
    if ran:
        for action, result in results(*ran).items():
            yield _parameter(action, result)
    if job.error:
        yield Parameter(id=ERROR_ID, value=job.error)


def _parameter(name: str, value: object) -> Parameter:
    if isinstance(value, dict):
        return Parameter(id=name, subparameters=tuple(_parameter(str(key), each) for key, each in value.items()))
    return Parameter(id=name, value=value)


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
