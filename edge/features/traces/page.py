"""The traces and files of the results of a job in the HTTP API."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from edge.app.page_part import ApiCall, ApiOperation, Download, PagePart, PageServices, Svg
from edge.features.traces.curves import drawn
from edge.features.traces.files import TraceFiles
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role
from edge.ports.result_trace import (
    FileReference,
    TraceReference,
    media_type_of,
    stored_in,
)
from edge.station.public_result import attempts_of
from edge.station.stored_job import StoredJob, load

_TRACE: Final = "/jobs/{job}/traces/{trace}"

_R = TypeVar("_R", TraceReference, FileReference)
_T = TypeVar("_T")


async def _file(services: PageServices, call: ApiCall) -> Download:
    digest = call.path["trace"]
    _, content = await _read(services, call.path["job"], digest, TraceReference, bytes)
    return Download(content, f"{digest}.json.gz", "application/gzip")


async def _offered_file(services: PageServices, call: ApiCall) -> Download:
    reference, content = await _read(services, call.path["job"], call.path["file"], FileReference, bytes)
    name = reference.file.rpartition("/")[2]
    return Download(content, name, media_type_of(name))


async def _curve(services: PageServices, call: ApiCall) -> Svg:
    draw = partial(drawn, channel=call.path["channel"])
    _, picture = await _read(services, call.path["job"], call.path["trace"], TraceReference, draw)
    return Svg(picture)


async def _read(
    services: PageServices, job_id: str, digest: str, kind: type[_R], use: Callable[[bytes], _T]
) -> tuple[_R, _T]:
    """Return the reference of a job to a file, and what is made of its content. Raises Refused."""
    files: TraceFiles | None = services.ports.get("traces")
    if files is None:
        raise Refused("unknown_trace", "this gateway stores no traces.", "Set [traces] directory.")
    reference = _reference(await load(services.store, job_id), digest, kind)
    return reference, await files.read(reference, use)


def _reference(stored: StoredJob, digest: str, kind: type[_R]) -> _R:
    for attempt in attempts_of(stored):
        for reference in stored_in(attempt.result):
            if isinstance(reference, kind) and reference.sha256 == digest:
                return reference
    job_id = stored.job.job_id
    reason = (
        Text.of("job {job_id!r} has no trace {digest!r}.", job_id=job_id, digest=digest)
        if kind is TraceReference
        else Text.of("job {job_id!r} has no file {digest!r}.", job_id=job_id, digest=digest)
    )
    raise Refused("unknown_trace", reason, "Look at the results of the job.")


PAGE: Final = PagePart(
    (
        ApiOperation("GET", _TRACE, "Return the file of a trace: gzipped JSON.", Role.OBSERVER, Download, _file),
        ApiOperation(
            "GET",
            "/jobs/{job}/files/{file}",
            "Return a file that equipment offered with a result, such as an image.",
            Role.OBSERVER,
            Download,
            _offered_file,
        ),
        ApiOperation(
            "GET", f"{_TRACE}/{{channel}}/curve.svg", "Return a curve; the first is 0.", Role.OBSERVER, Svg, _curve
        ),
    )
)
