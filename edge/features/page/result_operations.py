"""The operations of the HTTP API about the results of a job, their traces and files."""

from typing import Final

from edge.features.page import result_views
from edge.features.page.operation import ApiCall, ApiOperation, Download, Svg
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.model.user import Role
from edge.ports.result_trace import media_type_of

_TRACE: Final = "/jobs/{job}/traces/{trace}"
_LARGEST_CHANNEL: Final = 6


async def _results(services: WebServices, call: ApiCall) -> result_views.ResultList:
    return await result_views.job_results(services.store, call.path["job"])


async def _file(services: WebServices, call: ApiCall) -> Download:
    digest = call.path["trace"]
    content = await _traces(services).file(call.path["job"], digest)
    return Download(content, f"{digest}.json.gz", "application/gzip")


async def _offered_file(services: WebServices, call: ApiCall) -> Download:
    content, name = await _traces(services).offered_file(call.path["job"], call.path["file"])
    return Download(content, name, media_type_of(name))


async def _curve(services: WebServices, call: ApiCall) -> Svg:
    text = call.path["channel"]
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LARGEST_CHANNEL
    channel = int(text) if is_number else -1
    return Svg(await _traces(services).curve_svg(call.path["job"], call.path["trace"], channel))


def _traces(services: WebServices) -> result_views.TraceReader:
    if services.traces is None:
        raise Refused("unknown_trace", "this gateway stores no traces.", "Set [traces] directory.")
    return services.traces


RESULT_OPERATIONS: Final = (
    ApiOperation(
        "GET",
        "/jobs/{job}/results",
        f"Return the newest {result_views.MOST_RESULTS} results of a job.",
        Role.OBSERVER,
        result_views.ResultList,
        _results,
    ),
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
