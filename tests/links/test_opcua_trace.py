"""Each request of a session is reported once, with its result or its error."""

import pytest

from edge.errors import Refused, Unavailable
from edge.links.opcua_trace import CallTracer, ignore_request, traced
from edge.model.equipment_trace import TracedCall


class Session:
    """A session that fails as its argument says."""

    def __init__(self, trace_call: CallTracer) -> None:
        self.trace_call = trace_call

    @traced
    async def read(self, error: Exception | None = None) -> int:
        if error:
            raise error
        return 5


async def test_result_is_reported() -> None:
    reported: list[TracedCall] = []
    assert await Session(reported.append).read() == 5
    assert reported == [TracedCall("read", (), 5)]


@pytest.mark.parametrize(("error", "kind"), [(Refused("unreadable", "no"), "unreadable"), (Unavailable("no"), None)])
async def test_error_is_reported_and_raised(error: Refused | Unavailable, kind: str | None) -> None:
    reported: list[TracedCall] = []
    with pytest.raises(type(error)):
        await Session(reported.append).read(error)
    (only,) = reported
    assert (only.error, only.kind or None) == ("no", kind)


async def test_request_without_a_tracer_is_ignored() -> None:
    assert await Session(ignore_request).read() == 5
