"""Job responses: written with the job, whose revision guards them, and found by it, by its scope or their id."""

from collections.abc import Mapping

import msgspec

from edge.model.acceptance import RESERVED_ID_STARTS
from edge.model.isa95 import JobResponse
from edge.store import version
from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.tolerant_read import load_readable
from edge.store.version import Document

DATASCHEMA = "https://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/ISA95JobResponseDataType/v2.0.0"


def save(keys: Keys, job: Job, response: JobResponse) -> Commit:
    """Write the response of a job; it changes only together with the job, whose revision guards it."""
    key = keys.jobresponse(response.job_response_id)
    return join(
        (
            operation(
                "HSET",
                key,
                *("_dataschema", DATASCHEMA, version.FIELD, version.current_version(Document.JOB_RESPONSE)),
                *("scope", job.scope, "job_order_id", job.job_id),
                *("rev", str(job.revision), "response", msgspec.json.encode(response).decode()),
            ),
            operation("ZADD", keys.jobresponse_list(job.scope), job.started_at or 0, response.job_response_id),
        )
    )


async def load(store: Store, job: Job) -> JobResponse | None:
    """Read the response of a job; None while it has not started."""
    stored = await store.execute("HGETALL", store.keys.jobresponse(job.correlation_id))
    return _response(stored) if stored else None


def _response(stored: Mapping[str, str]) -> JobResponse:
    fields = version.upgrade_fields(Document.JOB_RESPONSE, stored)
    return msgspec.json.decode(fields["response"], type=JobResponse)


async def find_job(store: Store, correlation_id: str) -> str | None:
    """Give the id of the started job whose correlation id this is: it is the id of its response, too."""
    if correlation_id.startswith(RESERVED_ID_STARTS):
        return None
    job_id: str | None = await store.execute("HGET", store.keys.jobresponse(correlation_id), "job_order_id")
    return job_id


async def load_all(store: Store, scope: str) -> list[JobResponse]:
    """Read the responses of all jobs of a scope that have started, in the order of their start.

    One that cannot be read is logged and left out.
    """
    ids = await store.execute("ZRANGE", store.keys.jobresponse_list(scope), 0, -1)
    return await load_readable(store, [store.keys.jobresponse(each) for each in ids], _response)
